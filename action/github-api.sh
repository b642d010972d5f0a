# A function for GitHub's API. The other scripts read this file.

# Sends the JSON file to this path of the repository. The token is not on the command line, where every process could
# see it, and the response, which repeats an agent's text, is not printed.
post_to_github() {
  printf 'authorization: Bearer %s\n' "${GITHUB_TOKEN:?}" |
    curl --fail --silent --show-error --output /dev/null --header @- --header 'accept: application/vnd.github+json' \
      --header 'content-type: application/json' --data-binary "@$2" \
      "${GITHUB_API_URL:?}/repos/${GITHUB_REPOSITORY:?}/$1"
}
