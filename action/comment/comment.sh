#!/usr/bin/env bash
# Posts the text in ACP_ANSWER as a comment on the pull request ACP_NUMBER, after the line ACP_HEADING.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../untrusted.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../github-api.sh"

[[ ${ACP_NUMBER-} =~ ^[1-9][0-9]*$ ]] || fail "not the number of a pull request: ${ACP_NUMBER-}"
[ -s "$ACP_ANSWER" ] || fail "there is no answer to post: $ACP_ANSWER"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
  printf '%s\n\n' "$ACP_HEADING"
  quote_untrusted "$ACP_ANSWER"
} >"$work/body.md"
jq --null-input --rawfile body "$work/body.md" '{body: $body}' >"$work/request.json"
post_to_github "issues/$ACP_NUMBER/comments" "$work/request.json"
echo "posted on pull request $ACP_NUMBER"
