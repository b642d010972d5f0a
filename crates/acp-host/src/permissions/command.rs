//! Command lines, as far as one can tell what they do without running them.

use std::path::PathBuf;

/// The longest line that is taken apart, in bytes, and the most parts it is taken into.
const LONGEST: usize = 1024 * 1024;
const MOST_PARTS: usize = 64 * 1024;

/// How many shells may be started in each other.
const DEEPEST: usize = 4;

/// Programs that run the text they are given.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "eval"];

/// Programs that run the command behind them, and words that may stand before one.
const WRAPPERS: [&str; 24] = [
    "sudo", "doas", "env", "command", "builtin", "exec", "nohup", "nice", "time", "timeout",
    "stdbuf", "setsid", "xargs", "busybox", "!", "if", "then", "elif", "else", "while", "until",
    "do", "coproc", "eval",
];

/// How many words a wrapper may have before the command that it runs.
const WRAPPER_WORDS: usize = 6;

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
    /// Where it is to run, if that is said.
    pub(crate) cwd: Option<PathBuf>,
    /// The variables that it is given and that could make it another command, such as `PATH`.
    pub(crate) env: Vec<(String, String)>,
}

impl CommandLine {
    /// A line for a shell.
    pub(crate) fn of_line(line: &str) -> Self {
        let mut line = line.trim().to_owned();
        for _ in 0..DEEPEST {
            // Of several lines, the shell may be only one.
            let words = match line.len() > LONGEST || line.contains(['\n', '\r']) {
                true => break,
                false => shell_words::split(&line),
            };
            match words
                .ok()
                .and_then(|words| script(&words).map(str::to_owned))
            {
                Some(inner) => line = inner.trim().to_owned(),
                None => break,
            }
        }
        Self {
            line,
            cwd: None,
            env: Vec::new(),
        }
    }

    /// A program with its arguments.
    pub(crate) fn of_words<S: AsRef<str>>(words: &[S]) -> Self {
        let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
        match script(&words) {
            Some(line) => Self::of_line(line),
            None => Self {
                line: shell_words::join(words),
                cwd: None,
                env: Vec::new(),
            },
        }
    }

    /// The line.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// Everything in the line that could be a command: more rather than less, since a quoted `;` is taken
    /// for one that separates. `None` if the line is too long to be taken apart.
    pub(crate) fn parts(&self) -> Option<Vec<String>> {
        let mut parts = vec![self.line.clone()];
        if self.line.len() > LONGEST {
            return None;
        }
        take_apart(&self.line, DEEPEST, &mut parts);
        (parts.len() < MOST_PARTS).then_some(parts)
    }
}

/// The line that a shell is started with, if this starts a shell of the system's with nothing but a line.
fn script<S: AsRef<str>>(words: &[S]) -> Option<&str> {
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
    (name != "eval" && SHELLS.contains(&name) && plain).then_some(line.as_ref())
}

fn take_apart(line: &str, depth: usize, parts: &mut Vec<String>) {
    let joined = line.replace("\\\r\n", "").replace("\\\n", "");
    let ends = |c: char| ";|&<>`(){}\n\r".contains(c);
    // Whole, too: what stands in quotes is one word there, and in pieces below.
    let whole = std::iter::once(joined.as_str());
    for piece in whole.chain(joined.split(ends)) {
        if parts.len() >= MOST_PARTS {
            return;
        }
        let piece = piece.trim().trim_end_matches('$').trim_end();
        if piece.is_empty() {
            continue;
        }
        let words = shell_words::split(piece).unwrap_or_else(|_| {
            // Cut within quotes.
            let bare = |word: &str| word.replace(['"', '\'', '\\'], "");
            piece.split_whitespace().map(bare).collect()
        });
        commands_of(&words, parts);
        let runs_text = words.iter().any(|word| SHELLS.contains(&name(word)));
        if runs_text && depth > 0 {
            for word in words
                .iter()
                .filter(|word| word.contains(char::is_whitespace))
            {
                take_apart(word, depth - 1, parts);
            }
        }
    }
}

/// The command that these words are, without what stands before it.
fn commands_of(words: &[String], parts: &mut Vec<String>) {
    let is_assignment = |word: &&String| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        })
    };
    let skipped = words.iter().take_while(is_assignment).count();
    let words = words.get(skipped..).unwrap_or_default();
    let Some((program, rest)) = words.split_first() else {
        return;
    };
    let add = |program: &str, rest: &[String], parts: &mut Vec<String>| {
        let mut command = program.to_owned();
        for word in rest {
            command.push(' ');
            command.push_str(word);
        }
        parts.push(command);
    };
    if name(program) != program {
        add(program, rest, parts);
    }
    add(name(program), rest, parts);
    if WRAPPERS.contains(&name(program)) {
        // How many of the words are the wrapper's own depends on it: any may be the command.
        for start in 0..rest.len().min(WRAPPER_WORDS) {
            if let Some((program, rest)) = rest.get(start..).and_then(<[String]>::split_first) {
                add(name(program), rest, parts);
            }
        }
    }
}

/// A program without its directory and its ending.
fn name(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name.strip_suffix(".exe").unwrap_or(name)
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
                CommandLine::of_words(words).line(),
                "cargo test",
                "{words:?}"
            );
        }
        let line = |line| CommandLine::of_line(line).line;
        assert_eq!(line("bash -lc 'cargo test'"), "cargo test");
        assert_eq!(line(r#"sh -c "a; b""#), "a; b");
        // These are not only that line, or no shell that one knows.
        for other in [
            "./bash -c x",
            "/tmp/sh -c x",
            "bash -c x y",
            "bash -c x; rm y",
            "sh -c\nx",
            "A=1 sh -c x",
            "bash --rcfile evil -c x",
            "bash -O x",
            "eval -c x",
        ] {
            assert_eq!(line(other), other);
        }
        let words = ["git", "commit", "-m", "a; b"];
        assert_eq!(CommandLine::of_words(&words).line(), "git commit -m 'a; b'");
    }

    #[test]
    fn whatever_could_run_is_a_part() {
        for line in [
            "git push",
            "cd x && git push",
            "true;git push",
            "a | b || git push",
            "echo `git push`",
            "echo \"$(git push)\"",
            "(git push)",
            "{ git push; }",
            "x & git push",
            "a\ngit push",
            "git \\\npush",
            "FOO=1 BAR='a b' git push",
            "/usr/bin/git push",
            "g'i't \"push\"",
            "sudo -n git push",
            "env -i A=1 git push",
            "timeout 5 git push",
            "if true; then git push; fi",
            "bash -lc 'cd x; git push'",
            "sudo bash -c \"exec git push\"",
            "bash --norc -c 'sh -c \"git push\"'",
            "find . | xargs -n 1 git push",
            "eval 'git push'",
        ] {
            let parts = CommandLine::of_line(line).parts().unwrap();
            assert!(
                parts.iter().any(|part| part == "git push"),
                "{line}: {parts:?}"
            );
        }
        let parts = CommandLine::of_line("git commit -m 'git push'")
            .parts()
            .unwrap();
        assert!(!parts.contains(&"git push".to_owned()), "{parts:?}");
        assert_eq!(CommandLine::of_line(&"x".repeat(LONGEST + 1)).parts(), None);
        assert_eq!(CommandLine::of_line(&"x;".repeat(MOST_PARTS)).parts(), None);
    }
}
