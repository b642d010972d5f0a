//! Patterns for paths and command lines.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::Regex;

use super::command::CommandLine;
use super::command_parts::CommandPart;
use super::shell::LITERAL_MARK;

/// The directory in a project that contains its permissions files. An "allow" rule matches it only if the rule's
/// pattern contains this name.
pub(super) const PERMISSION_DIRECTORY: &str = ".acp";

/// A pattern for file paths. `*` and `?` match anything except `/`, and `**` matches any number of directories.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    text: String,
    /// Globs for "allow" rules.
    allow_globs: GlobSet,
    /// Globs for "ask" and "deny" rules. Symlinks in the pattern itself are resolved, and the resulting paths also
    /// match.
    deny_globs: GlobSet,
}

impl PathPattern {
    /// Parses a pattern. A relative pattern is resolved against `base`, which must be an existing directory without
    /// symlinks.
    pub(crate) fn new(text: &str, base: &Path) -> Result<Self, String> {
        let home = || std::env::home_dir().ok_or("cannot expand `~`: no home directory");
        let (start, rest) = match text.strip_prefix("~/") {
            _ if text.is_empty() => return Err("empty pattern".to_owned()),
            Some(rest) => (home()?, rest),
            None if text == "~" => (home()?, ""),
            None if Path::new(text).has_root() || Path::new(text).is_absolute() => {
                (PathBuf::new(), text)
            }
            None => (base.to_owned(), text),
        };
        if Path::new(rest)
            .components()
            .any(|c| c == Component::ParentDir)
        {
            return Err(
                "patterns cannot contain `..`; use an absolute path, or a path inside the project"
                    .to_owned(),
            );
        }
        let mut rest = rest.trim_start_matches("./").to_owned();
        if rest.is_empty() || rest.ends_with('/') {
            rest.push_str("**");
        }
        let (narrow, wide) = (
            pattern_variants(&start, &rest, base, false),
            pattern_variants(&start, &rest, base, true),
        );
        Ok(Self {
            text: text.to_owned(),
            allow_globs: build_globs(&narrow)?,
            deny_globs: build_globs(&wide)?,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the pattern of an "allow" rule matches this path, which must not contain symlinks.
    pub(crate) fn matches_to_allow(&self, real: &Path) -> bool {
        self.allow_globs.is_match(real)
            && (!is_permission_directory(real) || self.text.contains(PERMISSION_DIRECTORY))
    }

    /// Returns `true` if the pattern of an "ask" or "deny" rule matches this path or one of its parent directories.
    pub(crate) fn matches_to_deny(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.deny_globs.is_match(path))
    }
}

/// Returns `true` if the path is a directory that contains permissions files, or is inside one.
pub(super) fn is_permission_directory(path: &Path) -> bool {
    path.components()
        .any(|c| c.as_os_str() == PERMISSION_DIRECTORY)
}

/// Returns the pattern both as written and with the symlinks in its leading directories resolved. For "allow" rules,
/// resolves only symlinks that the project does not control.
fn pattern_variants(start: &Path, rest: &str, base: &Path, to_deny: bool) -> Vec<String> {
    let is_literal = |c: &&str| !c.contains(['*', '?', '[', '{', '\\']);
    let literal: Vec<&str> = rest.split('/').take_while(is_literal).collect();
    let behind: Vec<&str> = rest.split('/').skip(literal.len()).collect();
    let prefix = match rest.starts_with('/') {
        true => PathBuf::from("/").join(literal.join("/").trim_start_matches('/')),
        false => start.join(literal.join("/")),
    };
    let write = |prefix: &Path| {
        let mut text = globset::escape(&prefix.to_string_lossy());
        for component in &behind {
            if !text.is_empty() && !text.ends_with('/') {
                text.push('/');
            }
            text.push_str(component);
        }
        text
    };
    let mut written = vec![write(&prefix)];
    // Resolve the part that exists.
    let there = prefix.ancestors().find_map(|above| {
        let real = std::fs::canonicalize(above).ok()?;
        Some((above.to_owned(), real))
    });
    if let Some((above, real)) = there
        && (to_deny || !(above.starts_with(base) || real.starts_with(base)))
        && let Ok(below) = prefix.strip_prefix(&above)
    {
        let real = match below.as_os_str().is_empty() {
            true => real,
            false => real.join(below),
        };
        written.push(write(&real));
    }
    written
}

fn build_globs(patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(cfg!(not(windows)))
            // The usual file systems of these operating systems also ignore case.
            .case_insensitive(cfg!(any(windows, target_os = "macos")))
            .build();
        set.add(glob.map_err(|e| e.kind().to_string())?);
    }
    set.build().map_err(|e| e.kind().to_string())
}

/// A pattern for command lines. `*` matches any text, `?` matches any character, and all other characters match
/// themselves. A trailing ` *` matches any arguments, or none.
#[derive(Debug, Clone)]
pub(crate) struct CommandPattern {
    text: String,
    /// A regular expression that matches a marked line, for "allow" rules.
    allow_regex: Regex,
    /// A regular expression that matches a command, for "ask" and "deny" rules.
    deny_regex: Regex,
    /// Like `deny_regex`, but also matches options before and between subcommands.
    deny_regex_with_options: Regex,
}

/// A regular expression for options between two words of an "ask" or "deny" pattern: flags with or without a value,
/// toolchains such as `+nightly`, and variables.
const OPTIONS_PATTERN: &str = r"\s+(?:(?:-\S*(?:\s+\S+)?|\+\S+|\w+=\S*)\s+)*";

impl CommandPattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err("empty pattern".to_owned());
        }
        if trimmed.contains(LITERAL_MARK) {
            return Err("patterns cannot contain NUL".to_owned());
        }
        // Program names ignore case where file names do.
        let ignore_case = match cfg!(any(windows, target_os = "macos")) {
            true => "(?i)",
            false => "",
        };
        let any = r"[\s\S]";
        let literal = |c: char| regex::escape(c.encode_utf8(&mut [0; 4]));
        let narrow = |c| format!("{LITERAL_MARK}?{}", literal(c));
        let with_options = |c| match c {
            ' ' => OPTIONS_PATTERN.to_owned(),
            c => literal(c),
        };
        Ok(Self {
            text: text.to_owned(),
            allow_regex: build_regex(trimmed, "", &format!("[^{LITERAL_MARK}]"), narrow)?,
            deny_regex: build_regex(trimmed, ignore_case, any, literal)?,
            deny_regex_with_options: build_regex(trimmed, ignore_case, any, with_options)?,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `true` if the pattern of an "allow" rule matches the whole command. Wildcards match only literal text.
    /// Characters that a shell interprets match only if the pattern itself contains them.
    pub(crate) fn matches_to_allow(&self, command: &CommandLine) -> bool {
        let marked = || command.marked_line();
        command.env.is_empty() && marked().is_some_and(|marked| self.allow_regex.is_match(&marked))
    }

    /// Returns `true` if the pattern of an "ask" or "deny" rule matches this part of a command.
    pub(super) fn matches_to_deny(&self, part: &CommandPart) -> bool {
        self.deny_regex.is_match(part.text()) || self.deny_regex_with_options.is_match(part.words())
    }
}

/// Builds a regular expression from a pattern. Wildcards become `any`, and other characters are converted with
/// `literal`.
fn build_regex(
    pattern: &str,
    flags: &str,
    any: &str,
    literal: impl Fn(char) -> String,
) -> Result<Regex, String> {
    let (pattern, arguments) = match pattern.strip_suffix(" *") {
        Some(command) => (command, format!(r"(?:[ \t]{any}*)?")),
        None => (pattern, String::new()),
    };
    let mut text = format!(r"{flags}\A");
    for c in pattern.chars() {
        match c {
            '*' => text.push_str(&format!("{any}*")),
            '?' => text.push_str(any),
            c => text.push_str(&literal(c)),
        }
    }
    text.push_str(&arguments);
    text.push_str(r"\z");
    Regex::new(&text).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(pattern: &str, line: &str) -> bool {
        let pattern = CommandPattern::new(pattern).unwrap();
        pattern.matches_to_allow(&CommandLine::from_line(line))
    }

    #[test]
    fn wildcard_does_not_match_shell_syntax() {
        for line in [
            "cargo test",
            "cargo test --all",
            "cargo test\n",
            "bash -lc 'cargo test -p x'",
            "cargo test 'a b'",
            "cargo test 'a; b' \"(c)\" d\\&e",
        ] {
            assert!(allows("cargo test*", line), "{line}");
        }
        for line in [
            "cargo test; rm x",
            "cargo test && rm x",
            "cargo test | sh",
            "cargo test & rm x",
            "cargo test > ~/.bashrc",
            "cargo test < x",
            "cargo test $(rm x)",
            "cargo test `rm x`",
            "cargo test ${x@P}",
            "cargo test $X",
            "cargo test \"$(rm x)\"",
            "cargo test\nrm x",
            "cargo test \nrm x",
            "cargo test\rrm x",
            "cargo test\u{b}rm x",
            "cargo test (x)",
            "cargo test *",
            "cargo test a?",
            "cargo test [a]",
            "cargo test {a,b}",
            "cargo test ~",
            "cargo test =ls",
            "cargo test !!",
            "cargo test # x",
            "cargo test 'x",
            "bash -c 'cargo test; rm x'",
            "bash -c 'cargo test '*",
            "PATH=/evil cargo test",
            "./cargo test",
            "rm x; cargo test",
            "  \n cargo test\nrm",
            "\u{a0}cargo test",
        ] {
            assert!(!allows("cargo test*", line), "{line:?}");
            assert!(!allows("cargo test *", line), "{line:?}");
        }
        assert!(allows("cd web && npm *", "cd web && npm test"));
        assert!(!allows("cd web && npm *", "cd web && npm test && rm x"));
        assert!(!allows("cd web && npm *", "cd web && npm test *"));
        assert!(!allows("* test", "A=1 cargo test"));
        assert!(!allows("*", "a; b"));
        assert!(!allows("*", "*"));
    }

    #[test]
    fn literal_words_need_no_shell_quoting() {
        let allows = |pattern: &str, words: &[&str]| {
            let pattern = CommandPattern::new(pattern).unwrap();
            pattern.matches_to_allow(&CommandLine::from_words(words))
        };
        assert!(allows(
            "git log *",
            &["git", "log", "*", "$x", "a\nb", "a\\"]
        ));
        assert!(!allows("git log *", &["git log", "x"]));
        assert!(!allows("git log *", &["git log ;sh evil.sh"]));
        assert!(!allows("git log *", &["sh", "-c", "git log *"]));
    }

    #[test]
    fn terminal_command_is_a_line_or_a_program() {
        let allows = |pattern: &str, command: &str| {
            let pattern = CommandPattern::new(pattern).unwrap();
            pattern.matches_to_allow(&CommandLine::from_terminal_request(command, &[]))
        };
        assert!(allows("echo *", "echo x"));
        assert!(allows("echo *", "echo"));
        assert!(allows("/bin/echo *", "/bin/echo"));
        // Whether this is a shell line or a path depends on which files exist.
        assert!(!allows("/bin/echo *", "/bin/echo x"));
        assert!(allows("/bin/echo x", "/bin/echo x"));
    }

    /// Runs a line in a shell and returns its output. Fails if the line runs another program or creates a file.
    #[cfg(unix)]
    fn run_in_shell(shell: &str, line: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        let [directory, programs] = ["directory", "programs"].map(|name| top.path().join(name));
        for made in [&directory, &programs] {
            std::fs::create_dir(made).unwrap();
        }
        let mark = top.path().join("mark");
        let program = format!("#!/bin/sh\n: > '{}'\n", mark.display());
        for name in ["x", "y"] {
            std::fs::write(programs.join(name), &program).unwrap();
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(programs.join(name), executable).unwrap();
        }
        let shell = crate::program::find_program(shell.as_ref(), None, top.path()).unwrap();
        let output = std::process::Command::new(&shell)
            .args(["-c", line])
            .current_dir(&directory)
            .env_clear()
            .env("PATH", &programs)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        assert!(
            !mark.exists(),
            "{} ran a program: {line:?}",
            shell.display()
        );
        let files = std::fs::read_dir(&directory).unwrap().count();
        assert_eq!(files, 0, "{} created a file: {line:?}", shell.display());
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}: {line:?}: {output:?}",
            shell.display()
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Checks that real shells run each allowed line as a single command with these words, whatever characters the line
    /// contains.
    #[cfg(unix)]
    #[test]
    fn allowed_line_is_a_single_literal_command_in_real_shells() {
        // `[%s]` is printed for each word after it.
        let start = "printf '[%s]' - ";
        let rules = ["echo *", "printf '[%s]' - *"].map(|text| CommandPattern::new(text).unwrap());
        let pieces = [
            "x", "y", "x", " ", " ", " ", "\t", "\n", "\r", "\u{b}", "\u{c}", "'", "'", "\"", "\"",
            "\\", "\\", ";", "&", "|", "<", ">", "$", "`", "(", ")", "{", "}", "[", "]", "*", "?",
            "~", "!", "#", "=", "^", "%", ",", ":", "-", "+", "@", "/", ".", "x=", "é", "\u{a0}",
            "\u{2028}", "\u{1}", "\u{7f}", "1",
        ];
        // A fixed seed, so that each run is the same.
        let mut state: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
        };
        let (mut allowed, mut tried) = (0, 0);
        while allowed < 150 {
            tried += 1;
            let length = 1 + random(10);
            let rest: String = (0..length).map(|_| pieces[random(pieces.len())]).collect();
            let line = CommandLine::from_line(&format!("echo {rest}"));
            if rules[0].matches_to_allow(&line) {
                for shell in ["sh", "bash"] {
                    run_in_shell(shell, line.line());
                }
            }
            let line = CommandLine::from_line(&format!("{start}{rest}"));
            if rules[1].matches_to_allow(&line) {
                allowed += 1;
                let words = super::super::shell::parse_line(line.line())
                    .unwrap()
                    .words
                    .unwrap();
                let expected: String = words[2..].iter().map(|word| format!("[{word}]")).collect();
                for shell in ["sh", "bash"] {
                    let printed = run_in_shell(shell, line.line());
                    assert_eq!(printed, expected, "{shell}: {:?}", line.line());
                }
            }
        }
        assert!(tried > allowed, "no line was rejected");
    }

    #[test]
    fn trailing_arguments_are_optional_and_words_are_bounded() {
        assert!(allows("git log *", "git log"));
        assert!(allows("git log *", "git log -1"));
        assert!(!allows("git log *", "git logs"));
        assert!(allows("git lo?", "git log"));
        assert!(!allows("git log", "git log -1"));
        assert!(allows("a.b", "a.b"));
        assert!(!allows("a.b", "axb"));
    }

    #[test]
    fn relative_pattern_stays_within_the_project() {
        let base = Path::new("/no/such/project");
        let pattern = |text| PathPattern::new(text, base).unwrap();
        assert!(pattern("src/**").matches_to_allow(Path::new("/no/such/project/src/a/b.rs")));
        assert!(!pattern("src/*").matches_to_allow(Path::new("/no/such/project/src/a/b.rs")));
        // Denying a directory denies everything in it.
        assert!(pattern("secrets").matches_to_deny(Path::new("/no/such/project/secrets/a/b")));
        assert!(!pattern("secrets").matches_to_allow(Path::new("/no/such/project/secrets/a/b")));
        assert!(pattern("secrets/").matches_to_allow(Path::new("/no/such/project/secrets/a/b")));
        assert!(pattern("**/.env").matches_to_deny(Path::new("/no/such/project/.env")));
        assert!(pattern("**/.env").matches_to_deny(Path::new("/no/such/project/a/b/.env")));
        assert!(pattern("/etc/*").matches_to_deny(Path::new("/etc/passwd")));
        assert!(!pattern("src/**").matches_to_deny(Path::new("/no/such/src/x")));
        assert!(PathPattern::new("../x", base).is_err());
        assert!(PathPattern::new("", base).is_err());
        assert!(PathPattern::new("a[", base).is_err());
        // A general pattern does not allow an agent to change its own permissions.
        let own = Path::new("/no/such/project/.acp/permissions.toml");
        assert!(!pattern("**").matches_to_allow(own));
        assert!(pattern("**").matches_to_deny(own));
        assert!(pattern(".acp/*").matches_to_allow(own));
    }
}
