//! Parses permission rules in TOML. Unknown keys are errors, because a rule that is accidentally ignored would protect
//! nothing.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use acp_wire::v1::ToolKind;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use toml::Spanned;

use super::patterns::{CommandPattern, PathPattern};

/// The maximum size of a permissions file, in bytes.
pub(super) const MAX_FILE_SIZE: u64 = 64 * 1024;

/// The effect of a permission rule. A stricter effect compares as greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleEffect {
    /// The action is allowed without asking the user.
    Allow,
    /// The user is asked each time.
    Ask,
    /// The action is denied.
    Deny,
}

impl RuleEffect {
    /// Returns the effect's name as used in a permissions file: `allow`, `ask` or `deny`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for RuleEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The permission rules in a file.
#[derive(Debug, Clone)]
pub struct PermissionRules {
    file: PathBuf,
    default: Option<RuleEffect>,
    rules: Vec<PermissionRule>,
}

/// A permission rule: an effect and its conditions, all of which must match for the rule to match.
#[derive(Debug, Clone)]
pub struct PermissionRule {
    number: usize,
    effect: RuleEffect,
    pub(super) kinds: Vec<ToolKind>,
    pub(super) commands: Vec<CommandPattern>,
    pub(super) paths: Vec<PathPattern>,
}

impl PermissionRules {
    /// Reads the rules in a file. Returns `None` if the file does not exist. Relative paths in the rules are resolved
    /// against `base`, an existing directory.
    ///
    /// # Errors
    /// The file cannot be read, or contains anything that is not a valid rule. Nothing is ignored.
    pub fn read(file: &Path, base: &Path) -> Result<Option<Self>, RulesError> {
        let failed = |source| RulesError::Io {
            file: file.to_owned(),
            source,
        };
        // Checked first, because opening a FIFO blocks.
        match std::fs::metadata(file) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => {
                let file = file.to_owned();
                return Err(RulesError::NotAFile { file });
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
        }
        let opened = std::fs::File::open(file).map_err(failed)?;
        Self::read_from(opened, file, base).map(Some)
    }

    /// Reads rules from an open file. `file` is the path to show in error messages.
    pub(super) fn read_from(
        opened: impl io::Read,
        file: &Path,
        base: &Path,
    ) -> Result<Self, RulesError> {
        let mut text = String::new();
        let mut opened = opened.take(MAX_FILE_SIZE + 1);
        io::Read::read_to_string(&mut opened, &mut text).map_err(|source| RulesError::Io {
            file: file.to_owned(),
            source,
        })?;
        if text.len() as u64 > MAX_FILE_SIZE {
            let file = file.to_owned();
            return Err(RulesError::TooLarge { file });
        }
        Self::parse(&text, file, base)
    }

    /// Parses rules. `file` is the path to show in error messages.
    ///
    /// # Errors
    /// Same as for [`read`](Self::read).
    pub fn parse(text: &str, file: &Path, base: &Path) -> Result<Self, RulesError> {
        let wrong = |at: Option<usize>, what: String| RulesError::Invalid {
            file: file.to_owned(),
            line: at.map(|at| line_number(text, at)),
            what,
        };
        let base = std::fs::canonicalize(base).map_err(|source| RulesError::Io {
            file: base.to_owned(),
            source,
        })?;
        let written: TomlRules = toml::from_str(text)
            .map_err(|e| wrong(e.span().map(|span| span.start), e.message().to_owned()))?;
        let rules = written.rule.into_iter().enumerate();
        let rules = rules
            .map(|(index, rule)| {
                PermissionRule::from_toml(index + 1, rule, &base)
                    .map_err(|(at, what)| wrong(Some(at), what))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            file: file.to_owned(),
            default: written.default,
            rules,
        })
    }

    /// Returns the path of the permissions file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the file's default effect, for actions that no rule matches, if it sets one.
    #[must_use]
    pub fn default_effect(&self) -> Option<RuleEffect> {
        self.default
    }

    /// Returns the rules in the order in which they appear in the file.
    pub fn iter(&self) -> impl Iterator<Item = &PermissionRule> {
        self.rules.iter()
    }
}

/// Returns the line number for a byte offset, starting at 1.
fn line_number(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    1 + memchr::memchr_iter(b'\n', before).count()
}

impl PermissionRule {
    /// Converts a rule from TOML. An error consists of the offset in the file and a description.
    fn from_toml(
        number: usize,
        rule: Spanned<TomlRule>,
        base: &Path,
    ) -> Result<Self, (usize, String)> {
        let at = rule.span().start;
        let rule = rule.into_inner();
        let kind = |text: &str| {
            let kind = ToolKind::from(text);
            let known = ToolKind::KNOWN.contains(&kind);
            known.then_some(kind).ok_or_else(|| {
                let known: Vec<&str> = ToolKind::KNOWN.iter().map(ToolKind::as_str).collect();
                format!(
                    "unknown kind `{text}`; expected one of {}",
                    known.join(", ")
                )
            })
        };
        let kinds = parse_each("kind", rule.kind, kind)?;
        let commands = parse_each("command", rule.command, CommandPattern::new)?;
        let paths = parse_each("path", rule.path, |text| PathPattern::new(text, base))?;
        if kinds.is_empty() && commands.is_empty() && paths.is_empty() {
            let what = "rule has no conditions; add `kind`, `command` or `path`, or use `default`";
            return Err((at, what.to_owned()));
        }
        Ok(Self {
            number,
            effect: rule.decision,
            kinds,
            commands,
            paths,
        })
    }

    /// Returns the rule's number in its file, starting at 1.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns the rule's effect on actions that match it.
    #[must_use]
    pub fn effect(&self) -> RuleEffect {
        self.effect
    }

    /// Returns the kinds of tool calls that the rule matches. Empty if it matches all kinds.
    #[must_use]
    pub fn kinds(&self) -> &[ToolKind] {
        &self.kinds
    }

    /// Returns the command patterns. Empty if the rule matches all commands.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(CommandPattern::text)
    }

    /// Returns the path patterns, as written. Empty if the rule matches all paths.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(PathPattern::text)
    }
}

/// Formats the rule for the user, for example as "allow execute `cargo test*`".
impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.effect)?;
        let kinds: Vec<&str> = self.kinds.iter().map(ToolKind::as_str).collect();
        if !kinds.is_empty() {
            write!(f, " {}", kinds.join(", "))?;
        }
        let quoted = |texts: Vec<&str>| {
            let texts: Vec<String> = texts.iter().map(|text| format!("`{text}`")).collect();
            texts.join(" or ")
        };
        if !self.commands.is_empty() {
            write!(f, " {}", quoted(self.commands().collect()))?;
        }
        if !self.paths.is_empty() {
            write!(f, " in {}", quoted(self.paths().collect()))?;
        }
        Ok(())
    }
}

/// Parses each string in a key's value.
fn parse_each<T>(
    key: &str,
    texts: Option<Spanned<StringOrList>>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, (usize, String)> {
    let Some(texts) = texts else {
        return Ok(Vec::new());
    };
    let at = texts.span().start;
    let wrong = |what: String| (at, format!("`{key}`: {what}"));
    let texts = texts.into_inner().0;
    if texts.is_empty() {
        // An empty list could mean nothing or everything.
        return Err(wrong(
            "empty list; omit the key to match anything".to_owned(),
        ));
    }
    texts.iter().map(|text| read(text).map_err(wrong)).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlRules {
    default: Option<RuleEffect>,
    #[serde(default)]
    rule: Vec<Spanned<TomlRule>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TomlRule {
    decision: RuleEffect,
    kind: Option<Spanned<StringOrList>>,
    command: Option<Spanned<StringOrList>>,
    path: Option<Spanned<StringOrList>>,
}

/// A string, or a list of strings.
struct StringOrList(Vec<String>);

impl<'de> Deserialize<'de> for StringOrList {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct StringOrListVisitor;
        impl<'de> Visitor<'de> for StringOrListVisitor {
            type Value = StringOrList;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<StringOrList, E> {
                Ok(StringOrList(vec![text.to_owned()]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<StringOrList, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = seq.next_element::<String>()? {
                    if texts.len() as u64 > MAX_FILE_SIZE {
                        return Err(A::Error::custom("too many strings"));
                    }
                    texts.push(text);
                }
                Ok(StringOrList(texts))
            }
        }
        d.deserialize_any(StringOrListVisitor)
    }
}

/// An error that occurred while reading permission rules.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file contains an invalid rule.
    #[error("{}{}: {what}", file.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Invalid {
        /// The file with the invalid rule.
        file: PathBuf,
        /// The line number, starting at 1, if it is known.
        line: Option<usize>,
        /// A description of what is wrong with the rule.
        what: String,
    },
    /// The permissions file cannot be read.
    #[error("{}: {source}", file.display())]
    Io {
        /// The file that cannot be read.
        file: PathBuf,
        /// The error from the operating system.
        source: io::Error,
    },
    /// The path is not a regular file.
    #[error("{}: not a regular file", file.display())]
    NotAFile {
        /// The path that is not a regular file.
        file: PathBuf,
    },
    /// The permissions file exceeds the size limit.
    #[error("{}: larger than {MAX_FILE_SIZE} bytes", file.display())]
    TooLarge {
        /// The file that is too large.
        file: PathBuf,
    },
    /// The file is outside the project, because of a symlink in its path.
    #[error("{}: symlink leads outside the project", file.display())]
    Outside {
        /// The path as given, which is inside the project.
        file: PathBuf,
    },
}
