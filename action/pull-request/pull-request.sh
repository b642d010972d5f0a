#!/usr/bin/env bash
# Commits ACP_PATCH to a new branch ACP_BRANCH, pushes it, and opens a pull request for ACP_BASE.
#
# The job has a token that can write, so nothing in the patch is run, and no file of it is written to the checkout.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../untrusted.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../github-api.sh"

# Files that could run programs with the rights of the repository or of its developers.
forbidden='^(\.github|\.acp|\.vscode|\.devcontainer|\.husky)/|(^|/)(\.gitattributes|\.gitmodules|\.envrc|CODEOWNERS)$'

git() { command git -c core.hooksPath=/dev/null "$@"; }
git apply --cached --whitespace=nowarn -- "$ACP_PATCH" || fail "the patch does not apply to this commit"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git diff --cached --no-renames --name-only -z HEAD | tr '\0' '\n' | { grep -iE "$forbidden" || true; } >"$work/names"
if [ -s "$work/names" ]; then
  print_untrusted "$work/names"
  fail "the patch changes files that an agent must not change"
fi
if git diff --cached --no-renames --raw HEAD | grep -qE '^:[0-9]+ 1[26]0000 '; then
  fail "the patch contains a symbolic link or a submodule"
fi

git -c user.name='acp' -c user.email='acp@users.noreply.github.com' commit --quiet --message "$ACP_TITLE"
# git asks this command for the password, so that the token is not on a command line.
helper='!printf "username=x-access-token\npassword=%s\n" "$GITHUB_TOKEN" && :'
git -c credential.helper= -c credential.helper="$helper" push --quiet origin "HEAD:refs/heads/$ACP_BRANCH"

{
  printf 'A coding agent has made this change. It can be wrong and can be deceived by what it has read. It wrote:\n\n'
  quote_untrusted "$ACP_ANSWER"
} >"$work/body.md"
jq --null-input --rawfile body "$work/body.md" --arg title "$ACP_TITLE" --arg head "$ACP_BRANCH" --arg base "$ACP_BASE" \
  '{title: $title, head: $head, base: $base, body: $body}' >"$work/request.json"
post_to_github pulls "$work/request.json"
echo "opened a pull request from $ACP_BRANCH"
