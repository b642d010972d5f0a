# The command `acp` in a container: docker build -t acp . && docker run -i --rm -v "$PWD:/work" acp run "/help"
#
# `docker run -it` is for `acp chat`. An agent that works for the bundled one, such as a compiler, is not in here: build
# your own image on this one.

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
# The registry and what is built stay in Docker's cache between builds.
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/src/target \
    cargo build --locked --profile dist --package acp-toolkit \
    && cp target/dist/acp /acp

FROM debian:bookworm-slim
# git for the agent's commands; certificates for language models; a user, so that nothing runs as root.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 acp \
    && mkdir /work && chown acp /work
COPY --from=build /acp /usr/local/bin/acp
USER acp
WORKDIR /work
ENTRYPOINT ["acp"]
CMD ["--help"]
