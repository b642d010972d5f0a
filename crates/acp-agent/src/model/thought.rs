//! Thought levels: how much a model is to think.

use std::fmt;
use std::str::FromStr;

/// How much a model is to think before it responds. A level that a provider does not have is replaced by the nearest
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThoughtLevel {
    /// Not at all, if the model supports that.
    Off,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// As much as it can.
    Max,
}

/// The error for a name that no thought level has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown thought level {0}; expected off, low, medium, high or max")]
pub struct ParseThoughtLevelError(String);

impl ThoughtLevel {
    /// All levels, the lowest first.
    pub const ALL: [Self; 5] = [Self::Off, Self::Low, Self::Medium, Self::High, Self::Max];

    /// Returns the name of the level.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

impl ThoughtLevel {
    /// Returns the name to show to users.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Off => "Off",
            Self::Low => "Low",
            Self::Medium => "Medium",
            Self::High => "High",
            Self::Max => "Max",
        }
    }
}

impl fmt::Display for ThoughtLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ThoughtLevel {
    type Err = ParseThoughtLevelError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut all = Self::ALL.into_iter();
        all.find(|level| level.as_str() == name)
            .ok_or_else(|| ParseThoughtLevelError(name.to_owned()))
    }
}
