//! `acp completions`: prints scripts that make a shell complete `acp` commands.
//!
//! The script of a shell runs `acp` whenever the user presses Tab, with the name of the shell in a variable and the
//! words typed so far as arguments. `clap_complete` finds the candidates from the definition of the command line. What
//! values there are, beyond those that never change, is in `args/candidates.rs`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::engine::complete;
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Shells, Zsh};

use crate::args::CliArgs;
use crate::args::candidates::unquote;
use crate::args::completions::{CompletionsArgs, ShellArg};
use crate::exit::CommandExit;
use crate::screen::print;

/// The environment variable that a completion script sets when it runs `acp`.
const COMPLETE_VARIABLE: &str = "ACP_COMPLETE";

/// The program name that the scripts run when the user presses Tab.
const PROGRAM_NAME: &str = "acp";

const SHELLS: Shells<'_> = Shells(&[&AcpBash, &AcpZsh, &AcpFish]);

/// Prints the script for a shell.
pub(crate) fn print_completions(args: &CompletionsArgs) -> CommandExit {
    let shell: &dyn EnvCompleter = match args.shell {
        ShellArg::Bash => &AcpBash,
        ShellArg::Zsh => &AcpZsh,
        ShellArg::Fish => &AcpFish,
    };
    let mut script = Vec::new();
    match shell.write_registration(
        COMPLETE_VARIABLE,
        PROGRAM_NAME,
        PROGRAM_NAME,
        PROGRAM_NAME,
        &mut script,
    ) {
        Ok(()) => {
            print(&script);
            CommandExit::SUCCESS
        }
        Err(e) => CommandExit::failed(format!("cannot generate the completion script: {e}")),
    }
}

/// Prints the candidates and returns `true` if this process was started by a shell's completion script.
///
/// Call this before any thread starts: it removes a variable from the environment.
pub(crate) fn complete_for_shell() -> Result<bool, clap::Error> {
    let directory = std::env::current_dir().ok();
    CompleteEnv::with_factory(CliArgs::command)
        .var(COMPLETE_VARIABLE)
        .shells(SHELLS)
        .try_complete(std::env::args_os(), directory.as_deref())
}

/// Completion for Bash. Bash passes words as they were typed, splits them at `=`, and inserts candidates without
/// quoting them.
struct AcpBash;

impl EnvCompleter for AcpBash {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        Bash.write_registration(var, name, bin, completer, buf)
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let number = |name| std::env::var(name).ok()?.parse().ok();
        let index: usize = number("_CLAP_COMPLETE_INDEX").unwrap_or_default();
        let separator = std::env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        let typed = BashWords::from_args(args, index);
        let mut first = true;
        for candidate in complete(cmd, typed.words, typed.index, current_dir)? {
            let value = candidate.get_value().to_string_lossy();
            // A name with control characters cannot be passed on, and would garble the terminal.
            let Some(value) = value.strip_prefix(typed.kept.as_str()) else {
                continue;
            };
            if value.contains(char::is_control) {
                continue;
            }
            if !first {
                buf.write_all(separator.as_bytes())?;
            }
            first = false;
            buf.write_all(quote_for_bash(value).as_bytes())?;
        }
        Ok(())
    }
}

/// The words of a command line, as the command would receive them.
struct BashWords {
    words: Vec<OsString>,
    /// The index of the word that is being completed.
    index: usize,
    /// The beginning of that word, which Bash treats as one or more separate words.
    kept: String,
}

impl BashWords {
    /// Rejoins words that Bash has split: `--agent=go` arrives as `--agent`, `=` and `go`.
    fn from_args(passed: Vec<OsString>, at: usize) -> Self {
        let mut words: Vec<OsString> = Vec::with_capacity(passed.len());
        let (mut index, mut kept) = (0, String::new());
        let mut joins = false;
        for (i, word) in passed.into_iter().enumerate() {
            let is_equals = word == "=" && i > 0;
            let is_joined = is_equals || joins;
            let word = OsString::from(unquote(&word.to_string_lossy()));
            match words.last_mut() {
                Some(last) if is_joined => {
                    if i == at && !is_equals {
                        kept = last.to_string_lossy().into_owned();
                    }
                    last.push(word);
                }
                _ => words.push(word),
            }
            joins = is_equals;
            if i == at {
                index = words.len() - 1;
            }
        }
        Self { words, index, kept }
    }
}

/// Returns a value as it must be typed in Bash. Leaves a leading `~/` unquoted.
fn quote_for_bash(value: &str) -> String {
    let (home, rest) = match value.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None => ("", value),
    };
    let mut quoted = String::from(home);
    for c in rest.chars() {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !"-_./,=:+@%^".contains(c) {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted
}

/// Completion for Zsh. Zsh passes words as they were typed, and loads a script from its function directory at the first
/// Tab.
struct AcpZsh;

impl EnvCompleter for AcpZsh {
    fn name(&self) -> &'static str {
        Zsh.name()
    }

    fn is(&self, name: &str) -> bool {
        Zsh.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        Zsh.write_registration(var, name, bin, completer, buf)?;
        // As the file `_acp`, the script is the function that completes the command. So that it does so the first
        // time, too, and not only from the second on:
        writeln!(
            buf,
            "if [[ \"${{funcstack[1]}}\" == _{name} ]]; then\n    _clap_dynamic_completer_{name} \"$@\"\nfi"
        )
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        let words = args.into_iter();
        let words = words.map(|word| OsString::from(unquote(&word.to_string_lossy())));
        Zsh.write_complete(cmd, words.collect(), current_dir, buf)
    }
}

/// Completion for Fish. Fish passes the word that is being completed as it was typed.
struct AcpFish;

impl EnvCompleter for AcpFish {
    fn name(&self) -> &'static str {
        Fish.name()
    }

    fn is(&self, name: &str) -> bool {
        Fish.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        Fish.write_registration(var, name, bin, completer, buf)
    }

    fn write_complete(
        &self,
        cmd: &mut clap::Command,
        mut args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn Write,
    ) -> io::Result<()> {
        if let Some(word) = args.last_mut() {
            *word = OsString::from(unquote(&word.to_string_lossy()));
        }
        Fish.write_complete(cmd, args, current_dir, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join_words(words: &[&str], at: usize) -> (Vec<String>, usize, String) {
        let typed = BashWords::from_args(words.iter().map(OsString::from).collect(), at);
        let words = typed.words.iter();
        let words = words.map(|word| word.to_string_lossy().into_owned());
        (words.collect(), typed.index, typed.kept)
    }

    fn to_owned_words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn words_split_at_an_equals_sign_are_joined() {
        let (words, index, kept) = join_words(&["acp", "run", "--agent", "=", "go"], 4);
        assert_eq!(words, to_owned_words(&["acp", "run", "--agent=go"]));
        assert_eq!((index, kept.as_str()), (2, "--agent="));
        let (words, index, kept) =
            join_words(&["acp", "run", "--cwd", "=", r"a\ b", "--mode", ""], 6);
        assert_eq!(
            words,
            to_owned_words(&["acp", "run", "--cwd=a b", "--mode", ""])
        );
        assert_eq!((index, kept.as_str()), (4, ""));
    }

    #[test]
    fn values_inserted_in_bash_are_quoted() {
        for (value, typed) in [
            ("build", "build"),
            ("the build", r"the\ build"),
            ("it's $5", r"it\'s\ \$5"),
            ("~/src/", "~/src/"),
            ("a~b", r"a\~b"),
            ("überarbeiten", "überarbeiten"),
        ] {
            assert_eq!(quote_for_bash(value), typed, "{value}");
            if !value.starts_with('~') {
                assert_eq!(unquote(typed), value);
            }
        }
    }
}
