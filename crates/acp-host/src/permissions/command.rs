//! Parses the command lines that an agent wants to run.

use std::path::{Path, PathBuf};

use super::command_parts::{CommandPart, split_command};
use super::shell;
use crate::program;

/// The maximum length of a line to be examined, in bytes.
const MAX_LINE_BYTES: usize = 1024 * 1024;

/// The maximum nesting depth of shell commands.
const MAX_NESTING_DEPTH: usize = 4;

/// Shells that can run a line with `-c LINE`. The line itself is then examined.
const SHELL_NAMES: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"];

/// The directories that contain the system's own shells. A shell elsewhere may be a different program.
#[cfg(unix)]
const SHELL_DIRECTORIES: [&str; 5] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
];

/// A command that an agent wants to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The line as the user would type it in a shell. If the command is a shell that runs a line, this is that line.
    line: String,
    /// How the line is split into words.
    origin: WordOrigin,
    /// The working directory, if the request specifies one.
    pub(crate) cwd: Option<PathBuf>,
    /// Environment variables that could change which command runs, such as `PATH`.
    pub(crate) env: Vec<(String, String)>,
}

/// The program that splits a line into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordOrigin {
    /// A shell, which also expands the words.
    Shell,
    /// The agent, without a shell. The words are quoted in the line.
    Words,
    /// Either a shell or nothing, depending on which files exist: the whole line may be the path of a program.
    Ambiguous,
}

impl CommandLine {
    /// Creates a command from a shell command line.
    pub(crate) fn from_line(line: &str) -> Self {
        let mut line = trim_line(line);
        let mut inner;
        for _ in 0..MAX_NESTING_DEPTH {
            let reading = (line.len() <= MAX_LINE_BYTES).then(|| shell::parse_line(line));
            let words = reading.flatten().and_then(|reading| reading.words);
            let Some(script) = words.as_deref().and_then(shell_script) else {
                break;
            };
            inner = trim_line(script).to_owned();
            line = &inner;
        }
        Self::new(line.to_owned(), WordOrigin::Shell)
    }

    /// Creates a command from a program and its arguments.
    pub(crate) fn from_words<S: AsRef<str>>(words: &[S]) -> Self {
        match shell_script(words) {
            Some(line) => Self::from_line(line),
            None => Self::new(
                shell_words::join(words.iter().map(AsRef::as_ref)),
                WordOrigin::Words,
            ),
        }
    }

    /// Creates the command that [`SessionTerminals::create`](crate::SessionTerminals::create) would run. A command
    /// without arguments is run as a shell line if it looks like one.
    pub(crate) fn from_terminal_request(command: &str, args: &[String]) -> Self {
        if !args.is_empty() || !program::is_shell_line(command) {
            let words: Vec<&str> = std::iter::once(command)
                .chain(args.iter().map(String::as_str))
                .collect();
            return Self::from_words(&words);
        }
        let line = Self::from_line(command);
        match Path::new(command).is_absolute() {
            true => Self {
                origin: WordOrigin::Ambiguous,
                ..line
            },
            false => line,
        }
    }

    fn new(line: String, origin: WordOrigin) -> Self {
        Self {
            line,
            origin,
            cwd: None,
            env: Vec::new(),
        }
    }

    /// Returns `true` if both commands look the same to the user: their lines, directories and variables are equal.
    /// Since words are quoted in the line, it does not matter how the line is split.
    pub(crate) fn looks_same_as(&self, other: &Self) -> bool {
        self.line == other.line && self.cwd == other.cwd && self.env == other.env
    }

    /// Returns the command as a shell command line.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// Returns the line with a mark before each character that a shell would interpret. Wildcards in a pattern do not
    /// match marked characters. Returns `None` if the line cannot be parsed.
    pub(super) fn marked_line(&self) -> Option<String> {
        if self.line.len() > MAX_LINE_BYTES || self.line.contains(shell::LITERAL_MARK) {
            return None;
        }
        match self.origin {
            WordOrigin::Shell => shell::parse_line(&self.line).map(|reading| reading.marked),
            WordOrigin::Words => Some(self.line.clone()),
            WordOrigin::Ambiguous => Some(shell::escape_wildcards(&self.line)),
        }
    }

    /// Returns every part of the line that could be a command, although not every part may be one. Returns `None` if
    /// the line is too long to examine.
    pub(super) fn parts(&self) -> Option<Vec<CommandPart>> {
        match self.line.len() > MAX_LINE_BYTES {
            true => None,
            false => split_command(&self.line),
        }
    }
}

/// Removes leading and trailing blanks and line breaks, which shells ignore.
fn trim_line(line: &str) -> &str {
    line.trim_matches([' ', '\t', '\n'])
}

/// If the words are a system shell, `-c` and a line, returns that line.
fn shell_script<S: AsRef<str>>(words: &[S]) -> Option<&str> {
    let [program, flags, line] = words else {
        return None;
    };
    let program = program.as_ref();
    #[cfg(windows)]
    if program.eq_ignore_ascii_case("cmd") || program.eq_ignore_ascii_case("cmd.exe") {
        return flags
            .as_ref()
            .eq_ignore_ascii_case("/c")
            .then_some(line.as_ref());
    }
    let name = match program.rsplit_once('/') {
        None => program,
        #[cfg(unix)]
        Some((place, name)) if SHELL_DIRECTORIES.contains(&place) => name,
        Some(_) => return None,
    };
    let flags = flags.as_ref().strip_prefix('-')?.strip_suffix('c')?;
    let plain = flags.chars().all(|flag| "eilux".contains(flag));
    (SHELL_NAMES.contains(&name) && plain).then_some(line.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_invocation_equals_its_script() {
        for words in [
            &["cargo", "test"][..],
            &["sh", "-c", "cargo test"],
            &["/bin/bash", "-lc", " cargo test "],
            &["bash", "-c", "sh -c 'cargo test'"],
        ] {
            assert_eq!(
                CommandLine::from_words(words).line(),
                "cargo test",
                "{words:?}"
            );
        }
        let line = |line| CommandLine::from_line(line).line;
        assert_eq!(line("bash -lc 'cargo test'"), "cargo test");
        assert_eq!(line(r#"sh -c "a; b""#), "a; b");
        // These words are more than one line for a shell, or the shell is not known.
        for other in [
            "./bash -c x",
            "/tmp/sh -c x",
            "bash -c x y",
            "bash -c x; rm y",
            "sh -c\nx",
            "sh -c 'x '*",
            "sh -c \"$x\"",
            "\u{2003}sh -c x",
            "A=1 sh -c x",
            "bash --rcfile evil -c x",
            "bash -O x",
            "eval -c x",
        ] {
            assert_eq!(line(other), other);
        }
        let words = ["git", "commit", "-m", "a; b"];
        assert_eq!(
            CommandLine::from_words(&words).line(),
            "git commit -m 'a; b'"
        );
    }
}
