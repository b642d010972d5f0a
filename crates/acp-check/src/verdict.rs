//! What comes of a check.

use std::fmt;

/// What came of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The requirement is met.
    Pass,
    /// It is not, and why: a MUST.
    Fail(String),
    /// It is not, and why: a SHOULD or a MAY.
    Warn(String),
    /// It could not be seen whether it is met, and why: something that the program does not offer.
    Skip(String),
    /// The suite itself failed, which says nothing of the program.
    Harness(String),
}

impl Verdict {
    /// The verdict in a word, as reports have it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Warn(_) => "warn",
            Self::Skip(_) => "skip",
            Self::Harness(_) => "error",
        }
    }

    /// Why; `None` if it passed.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Pass => None,
            Self::Fail(why) | Self::Warn(why) | Self::Skip(why) | Self::Harness(why) => Some(why),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            None => f.write_str(self.as_str()),
            Some(why) => write!(f, "{}: {why}", self.as_str()),
        }
    }
}

/// Why a check stops before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckStop {
    /// The requirement is not met, and why, in words for the one who wrote the program.
    Fail(String),
    /// It cannot be seen, and why.
    Skip(String),
    /// The suite itself failed.
    Harness(String),
}

/// The requirement is not met.
pub(crate) fn fail<T>(why: impl Into<String>) -> Result<T, CheckStop> {
    Err(CheckStop::Fail(why.into()))
}

/// Whether it is met cannot be seen.
pub(crate) fn skip<T>(why: impl Into<String>) -> Result<T, CheckStop> {
    Err(CheckStop::Skip(why.into()))
}

/// The requirement is met only if `holds`.
pub(crate) fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), CheckStop> {
    if holds {
        Ok(())
    } else {
        Err(CheckStop::Fail(why()))
    }
}

/// The beginning of a text, so many characters at most.
pub(super) fn truncate(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
