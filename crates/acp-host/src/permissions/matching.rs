//! Patterns for paths and for command lines.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex::Regex;

use super::command::CommandLine;

/// Where rules for the agent are kept in a project. A pattern that allows must name it to match it.
pub(super) const OWN_DIRECTORY: &str = ".acp";

/// A pattern for paths. `*` and `?` stand for anything but a `/`, `**` for any directories.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    text: String,
    /// What it matches to allow.
    narrow: GlobSet,
    /// What it matches to ask or deny: also by way of symlinks in the pattern itself.
    wide: GlobSet,
}

impl PathPattern {
    /// `base` is what a relative pattern is relative to: an existing directory, without symlinks.
    pub(crate) fn new(text: &str, base: &Path) -> Result<Self, String> {
        let home = || std::env::home_dir().ok_or("there is no home directory for `~`");
        let (start, rest) = match text.strip_prefix("~/") {
            _ if text.is_empty() => return Err("an empty pattern matches nothing".to_owned()),
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
                "`..` in a pattern; write the whole path, or one in the project".to_owned(),
            );
        }
        let mut rest = rest.trim_start_matches("./").to_owned();
        if rest.is_empty() || rest.ends_with('/') {
            rest.push_str("**");
        }
        let (narrow, wide) = (
            variants(&start, &rest, base, false),
            variants(&start, &rest, base, true),
        );
        Ok(Self {
            text: text.to_owned(),
            narrow: globs(&narrow)?,
            wide: globs(&wide)?,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches this path, which has no symlinks, to allow it.
    pub(crate) fn allows(&self, real: &Path) -> bool {
        self.narrow.is_match(real) && (!is_own(real) || self.text.contains(OWN_DIRECTORY))
    }

    /// Whether it matches this path, or a directory that it is in, to ask or deny.
    pub(crate) fn catches(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.wide.is_match(path))
    }
}

/// Whether the path is, or is in, a directory that says what an agent may do.
pub(super) fn is_own(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str() == OWN_DIRECTORY)
}

/// The ways to write a pattern. The directories that it begins with are followed as symlinks; to allow,
/// only as long as it is not the project that says where they lead.
fn variants(start: &Path, rest: &str, base: &Path, to_deny: bool) -> Vec<String> {
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
    // As far as it is there.
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

fn globs(patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .backslash_escape(cfg!(not(windows)))
            // As the systems' usual file systems do.
            .case_insensitive(cfg!(any(windows, target_os = "macos")))
            .build();
        set.add(glob.map_err(|e| e.kind().to_string())?);
    }
    set.build().map_err(|e| e.kind().to_string())
}

/// A pattern for command lines: `*` stands for any text and `?` for any character, everything else for
/// itself. ` *` at the end stands for any arguments, or none.
#[derive(Debug, Clone)]
pub(crate) struct CommandPattern {
    text: String,
    narrow: Regex,
    wide: Regex,
}

/// What a shell takes for more than an argument: other commands, files, and the values of variables.
const NO_OPERATOR: &str = r"[^;|&<>`$()\n\r\x00]";

impl CommandPattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err("an empty pattern matches nothing".to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            narrow: regex(trimmed, NO_OPERATOR)?,
            wide: regex(trimmed, r"[\s\S]")?,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches the whole command to allow it: what a shell would do more must be spelled out in
    /// the pattern.
    pub(crate) fn allows(&self, command: &CommandLine) -> bool {
        command.env.is_empty() && self.narrow.is_match(command.line())
    }

    /// Whether it matches any of the parts of a command to ask or deny.
    pub(crate) fn catches(&self, part: &str) -> bool {
        self.wide.is_match(part)
    }
}

fn regex(pattern: &str, any: &str) -> Result<Regex, String> {
    let (pattern, arguments) = match pattern.strip_suffix(" *") {
        Some(command) => (command, format!(r"(?:\s{any}*)?")),
        None => (pattern, String::new()),
    };
    let mut text = String::from(r"\A");
    for c in pattern.chars() {
        match c {
            '*' => text.push_str(&format!("{any}*")),
            '?' => text.push_str(any),
            c => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
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
        pattern.allows(&CommandLine::of_line(line))
    }

    #[test]
    fn no_wildcard_reaches_across_what_a_shell_does_more() {
        for line in [
            "cargo test",
            "cargo test --all",
            "bash -lc 'cargo test -p x'",
            "cargo test 'a b'",
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
            "cargo test\nrm x",
            "cargo test\rrm x",
            "cargo test (x)",
            "bash -c 'cargo test; rm x'",
            "PATH=/evil cargo test",
            "./cargo test",
            "rm x; cargo test",
            "  \n cargo test\nrm",
        ] {
            assert!(!allows("cargo test*", line), "{line:?}");
        }
        assert!(allows("cd web && npm *", "cd web && npm test"));
        assert!(!allows("cd web && npm *", "cd web && npm test && rm x"));
        assert!(!allows("*", "a; b"));
    }

    #[test]
    fn arguments_are_optional_and_words_end() {
        assert!(allows("git log *", "git log"));
        assert!(allows("git log *", "git log -1"));
        assert!(!allows("git log *", "git logs"));
        assert!(allows("git lo?", "git log"));
        assert!(!allows("git log", "git log -1"));
        assert!(allows("a.b", "a.b"));
        assert!(!allows("a.b", "axb"));
    }

    #[test]
    fn relative_patterns_are_of_the_project_and_never_leave_it() {
        let base = Path::new("/no/such/project");
        let pattern = |text| PathPattern::new(text, base).unwrap();
        assert!(pattern("src/**").allows(Path::new("/no/such/project/src/a/b.rs")));
        assert!(!pattern("src/*").allows(Path::new("/no/such/project/src/a/b.rs")));
        // What is denied is denied with all that is in it.
        assert!(pattern("secrets").catches(Path::new("/no/such/project/secrets/a/b")));
        assert!(!pattern("secrets").allows(Path::new("/no/such/project/secrets/a/b")));
        assert!(pattern("secrets/").allows(Path::new("/no/such/project/secrets/a/b")));
        assert!(pattern("**/.env").catches(Path::new("/no/such/project/.env")));
        assert!(pattern("**/.env").catches(Path::new("/no/such/project/a/b/.env")));
        assert!(pattern("/etc/*").catches(Path::new("/etc/passwd")));
        assert!(!pattern("src/**").catches(Path::new("/no/such/src/x")));
        assert!(PathPattern::new("../x", base).is_err());
        assert!(PathPattern::new("", base).is_err());
        assert!(PathPattern::new("a[", base).is_err());
        // Not by the way is an agent allowed to change what it may do.
        let own = Path::new("/no/such/project/.acp/permissions.toml");
        assert!(!pattern("**").allows(own));
        assert!(pattern("**").catches(own));
        assert!(pattern(".acp/*").allows(own));
    }
}
