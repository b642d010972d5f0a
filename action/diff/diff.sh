#!/usr/bin/env bash
# Writes the changes of a pull request to ACP_DIFF, and checks out the base branch.
#
# The checkout must be the merge commit that GitHub makes for a pull request, with its parents: `actions/checkout` with
# `fetch-depth: 2`. An agent that works in the base branch reads no instructions, settings or hooks of the pull request.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../untrusted.sh"

# The largest diff to review, in bytes. A part of a diff is worse than none, since it looks like all of it.
max_bytes=1000000

merge=$(git rev-parse --verify HEAD)
base=$(git rev-parse --verify --quiet 'HEAD^1') && git rev-parse --verify --quiet 'HEAD^2' >/dev/null ||
  fail "the checkout is not the merge commit of a pull request with its parents: use actions/checkout with fetch-depth: 2"
# First the checkout: which files have a diff is then up to the .gitattributes of the base branch.
git -c core.hooksPath=/dev/null checkout --quiet --detach "$base"
git diff --no-ext-diff --no-textconv --no-color "$base" "$merge" | { iconv -f UTF-8 -t UTF-8 -c || true; } >"$ACP_DIFF"
size=$(wc -c <"$ACP_DIFF")
[ "$size" -gt 0 ] || fail "the pull request changes nothing"
[ "$size" -le "$max_bytes" ] || fail "the diff is too large to review: $size bytes (limit: $max_bytes)"
set_output diff "$ACP_DIFF"
