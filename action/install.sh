#!/usr/bin/env bash
# Provides the program `acp`: an installed one (ACP_PROGRAM), or the one in the archive of a release (ACP_ARCHIVE) with
# this SHA-256 hash (ACP_SHA256), which is unpacked to ACP_DIRECTORY.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/untrusted.sh"

if [ -n "${ACP_PROGRAM-}" ]; then
  program=$(command -v -- "$ACP_PROGRAM") || fail "program not found: $ACP_PROGRAM"
else
  [ -n "${ACP_ARCHIVE-}" ] || fail "set \`archive\` and \`sha256\`, or \`program\`"
  [[ ${ACP_SHA256-} =~ ^[0-9a-f]{64}$ ]] || fail "\`sha256\` must be 64 hexadecimal digits in lower case"
  mkdir -p "$ACP_DIRECTORY"
  archive=$ACP_DIRECTORY/archive.tar.gz
  case $ACP_ARCHIVE in
  https://*) curl --proto =https --fail --silent --show-error --location --retry 3 --output "$archive" "$ACP_ARCHIVE" ;;
  *://*) fail "the URL of the archive must begin with https://: $ACP_ARCHIVE" ;;
  *) cp -- "$ACP_ARCHIVE" "$archive" ;;
  esac
  hash=$({ sha256sum "$archive" 2>/dev/null || shasum -a 256 "$archive"; } | cut -d ' ' -f 1)
  [ "$hash" = "$ACP_SHA256" ] || fail "the SHA-256 hash of the archive is $hash, not $ACP_SHA256: $ACP_ARCHIVE"
  # The archive contains one directory.
  tar -xzf "$archive" -C "$ACP_DIRECTORY" --strip-components 1
  program=$ACP_DIRECTORY/acp
  rm "$archive"
fi
"$program" --version
set_output program "$program"
