//! Verdicts, which are the results of checks.

use std::fmt;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The requirement is met.
    Pass,
    /// A MUST requirement is not met, for this reason.
    Fail(String),
    /// A SHOULD or MAY requirement is not met, for this reason.
    Warn(String),
    /// The requirement was not tested, for this reason. Usually, the program does not support the feature in question.
    Skip(String),
    /// The suite itself failed, for this reason. This says nothing about the program.
    Harness(String),
}

impl Verdict {
    /// Returns the verdict as shown in reports.
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

    /// Returns the reason, or `None` if the check passed.
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

/// Why a check stops early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckStop {
    /// The requirement is not met. The text explains this to the author of the program.
    Fail(String),
    /// The requirement cannot be tested, for this reason.
    Skip(String),
    /// The suite itself failed, for this reason.
    Harness(String),
}

/// Stops the check because the requirement is not met.
pub(crate) fn fail<T>(why: impl Into<String>) -> Result<T, CheckStop> {
    Err(CheckStop::Fail(why.into()))
}

/// Stops the check because the requirement cannot be tested.
pub(crate) fn skip<T>(why: impl Into<String>) -> Result<T, CheckStop> {
    Err(CheckStop::Skip(why.into()))
}

/// Fails the check unless `holds` is true. `why` returns the reason.
pub(crate) fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), CheckStop> {
    if holds {
        Ok(())
    } else {
        Err(CheckStop::Fail(why()))
    }
}

/// Truncates a text to `most` characters.
pub(super) fn truncate(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
