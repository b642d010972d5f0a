#!/usr/bin/env bash
# Writes all changes in the checkout to ACP_PATCH, including new files that git does not ignore.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../untrusted.sh"

# No program that the checkout names is run.
git() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
git add --all
git diff --cached --binary --full-index --no-ext-diff --no-textconv --no-color HEAD >"$ACP_PATCH"
[ -s "$ACP_PATCH" ] || fail "the agent has changed nothing"
git diff --cached --stat HEAD >"$ACP_PATCH.stat"
print_untrusted "$ACP_PATCH.stat"
rm "$ACP_PATCH.stat"
