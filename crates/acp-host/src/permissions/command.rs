//! Command lines that an agent wants to run.

use std::path::{Path, PathBuf};

use super::command_parts::{CommandPart, split_command};
use super::shell;
use crate::program;

/// The longest line that is looked at closely, in bytes.
const LONGEST: usize = 1024 * 1024;

/// How many shells may be started in each other.
const DEEPEST: usize = 4;

/// Shells whose `-c LINE` is read as the line itself.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"];

/// Where a shell is the system's own. One elsewhere may be anything.
#[cfg(unix)]
const SHELL_PLACES: [&str; 5] = [
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
];

/// A command that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// As one types it in a shell. Of a shell that is started to run a line, that line.
    line: String,
    /// Who makes words of the line.
    origin: WordOrigin,
    /// Where it is to run, if that is said.
    pub(crate) cwd: Option<PathBuf>,
    /// The variables that it is given and that could make it another command, such as `PATH`.
    pub(crate) env: Vec<(String, String)>,
}

/// Who makes words of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordOrigin {
    /// A shell, which also expands them.
    Shell,
    /// The agent gave words; they are quoted in the line, and no shell sees them.
    Words,
    /// It is a line or the path of a program, depending on which files there are.
    Ambiguous,
}

impl CommandLine {
    /// A line for a shell.
    pub(crate) fn from_line(line: &str) -> Self {
        let mut line = trim_line(line);
        let mut inner;
        for _ in 0..DEEPEST {
            let reading = (line.len() <= LONGEST).then(|| shell::read(line));
            let words = reading.flatten().and_then(|reading| reading.words);
            let Some(script) = words.as_deref().and_then(shell_script) else {
                break;
            };
            inner = trim_line(script).to_owned();
            line = &inner;
        }
        Self::new(line.to_owned(), WordOrigin::Shell)
    }

    /// A program with its arguments.
    pub(crate) fn from_words<S: AsRef<str>>(words: &[S]) -> Self {
        match shell_script(words) {
            Some(line) => Self::from_line(line),
            None => Self::new(
                shell_words::join(words.iter().map(AsRef::as_ref)),
                WordOrigin::Words,
            ),
        }
    }

    /// What [`SessionTerminals::create`](crate::SessionTerminals::create) runs, which takes a command without arguments for a line
    /// if it looks like one.
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

    /// Whether both are shown alike: the same line, in the same directory, with the same variables. Words are quoted in
    /// the line, so that it does not matter who makes words of it.
    pub(crate) fn looks_same(&self, other: &Self) -> bool {
        self.line == other.line && self.cwd == other.cwd && self.env == other.env
    }

    /// The line.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// The line, with a mark before each character that no wildcard may allow, since a shell makes something else of
    /// it. `None` if nothing can be said of it.
    pub(super) fn marked(&self) -> Option<String> {
        if self.line.len() > LONGEST || self.line.contains(shell::MARK) {
            return None;
        }
        match self.origin {
            WordOrigin::Shell => shell::read(&self.line).map(|reading| reading.marked),
            WordOrigin::Words => Some(self.line.clone()),
            WordOrigin::Ambiguous => Some(shell::escape_wildcards(&self.line)),
        }
    }

    /// Everything in the line that could be a command, more rather than less. `None` if that is too much to be looked
    /// at.
    pub(super) fn parts(&self) -> Option<Vec<CommandPart>> {
        match self.line.len() > LONGEST {
            true => None,
            false => split_command(&self.line),
        }
    }
}

/// The line without the blanks and line ends around it that mean nothing to a shell.
fn trim_line(line: &str) -> &str {
    line.trim_matches([' ', '\t', '\n'])
}

/// The line that a shell is started with, if this starts a shell of the system's with nothing but a line.
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
        Some((place, name)) if SHELL_PLACES.contains(&place) => name,
        Some(_) => return None,
    };
    let flags = flags.as_ref().strip_prefix('-')?.strip_suffix('c')?;
    let plain = flags.chars().all(|flag| "eilux".contains(flag));
    (SHELLS.contains(&name) && plain).then_some(line.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_runs_a_line_is_that_line() {
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
        // These are not only that line, or no shell that one knows.
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
