# Functions for text that nobody should trust, such as an agent's answer. The other scripts read this file.

# The longest part of a text to show, in bytes. GitHub accepts comments of 65,536 characters.
untrusted_bytes=50000

# Prints the text of a file without control characters, with each line after four spaces. In Markdown, such lines are
# code: nobody is notified, no issue is closed, and no image is loaded. No line of the text can end the code.
quote_untrusted() {
  head -c "$untrusted_bytes" -- "$1" | iconv -f UTF-8 -t UTF-8 -c 2>/dev/null |
    LC_ALL=C tr -d '\000-\010\013-\037\177' | sed 's/^/    /' || true
  echo
  if [ "$(wc -c <"$1")" -gt "$untrusted_bytes" ]; then
    printf '\n(The rest is not shown.)\n'
  fi
}

# Prints the text of a file to the log. A GitHub runner obeys lines of the log such as `::error::`. Until it sees a word
# that nobody can guess, it obeys none.
print_untrusted() {
  local word
  word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  if [ "${GITHUB_ACTIONS-}" = true ]; then echo "::stop-commands::$word"; fi
  quote_untrusted "$1"
  if [ "${GITHUB_ACTIONS-}" = true ]; then echo "::$word::"; fi
}

# Writes an output of the step. The value must be our own text: an agent's text could add outputs.
set_output() {
  echo "$1=$2" >>"${GITHUB_OUTPUT:-/dev/null}"
}

fail() {
  echo "$*" >&2
  exit 1
}
