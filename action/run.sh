#!/usr/bin/env bash
# Runs one task with `acp run`. The inputs of action.yml are in variables, such as ACP_PROMPT.
#
# What the agent says goes to files in ACP_OUT, and never to the log as it is: see untrusted.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/untrusted.sh"

: "${ACP_PROGRAM:?}" "${ACP_PROMPT:?}" "${ACP_OUT:?}"
rm -rf "$ACP_OUT"
mkdir -p "$ACP_OUT/config/acp"
printf '%s' "$ACP_PROMPT" >"$ACP_OUT/prompt.txt"

# The run is the same on every machine: nothing comes from the configuration of this user.
export XDG_CONFIG_HOME=$ACP_OUT/config
if [ -n "${ACP_CONFIG-}" ]; then cp -- "$ACP_CONFIG" "$XDG_CONFIG_HOME/acp/config.toml"; fi
if [ -n "${ACP_PERMISSIONS-}" ]; then cp -- "$ACP_PERMISSIONS" "$XDG_CONFIG_HOME/acp/permissions.toml"; fi

words=(run --format quiet --output "$ACP_OUT/result.json" --file "$ACP_OUT/prompt.txt")
while IFS= read -r option; do
  if [ -n "$option" ]; then words+=("$option"); fi
done <<<"${ACP_OPTIONS-}"
names=(${ACP_ENV-})
for name in ${names[@]+"${names[@]}"}; do
  # With a value, the variable would be on the command line, where every process can see it.
  [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || fail "\`env\` must contain names of variables, without values: $name"
  [ -n "${!name-}" ] || fail "the variable $name is not set. Secrets are not available to pull requests from forks"
  words+=(--env "$name")
done
if [ -n "${ACP_INSTALL-}" ]; then
  [[ $ACP_INSTALL == *@* ]] || fail "\`install\` must be ID@VERSION, so that each run uses the same agent: $ACP_INSTALL"
  registry=()
  if [ -n "${ACP_REGISTRY-}" ]; then registry=(--registry "$ACP_REGISTRY"); fi
  if ! "$ACP_PROGRAM" agents install "$ACP_INSTALL" --yes ${registry[@]+"${registry[@]}"} >"$ACP_OUT/install.txt" 2>&1; then
    print_untrusted "$ACP_OUT/install.txt"
    fail "cannot install $ACP_INSTALL"
  fi
  words+=(--agent "$ACP_INSTALL")
elif [ -n "${ACP_COMMAND-}" ]; then
  words+=(--)
  while IFS= read -r word; do
    if [ -n "$word" ]; then words+=("$word"); fi
  done <<<"$ACP_COMMAND"
fi

code=0
"$ACP_PROGRAM" "${words[@]}" <"${ACP_INPUT:-/dev/null}" >"$ACP_OUT/answer.txt" 2>"$ACP_OUT/messages.txt" || code=$?
touch "$ACP_OUT/result.json"

# An agent that was deceived might give its key away. This finds only a key that it has not disguised.
for name in ${names[@]+"${names[@]}"}; do
  if grep -qF -- "${!name}" "$ACP_OUT/answer.txt" "$ACP_OUT/result.json" "$ACP_OUT/messages.txt"; then
    rm "$ACP_OUT/answer.txt" "$ACP_OUT/result.json" "$ACP_OUT/messages.txt"
    fail "the agent has written the value of $name. Its answer was deleted. Replace the key"
  fi
done

set_output exit-code "$code"
set_output answer "$ACP_OUT/answer.txt"
set_output result "$ACP_OUT/result.json"
print_untrusted "$ACP_OUT/messages.txt"
echo "acp run ended with exit code $code. docs/command-line.md lists the exit codes"
exit "$code"
