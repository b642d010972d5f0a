//! Thought levels, which determine how much a model should think.

use std::fmt;
use std::str::FromStr;

/// The amount of thinking that a model should do before it responds. If a provider does not support a level, the
/// nearest one is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThoughtLevel {
    /// The model does not think, if thinking can be turned off.
    Off,
    /// The model thinks briefly.
    Low,
    /// The model thinks for a moderate amount of time.
    Medium,
    /// The model thinks for a long time.
    High,
    /// The model thinks as long as it can.
    Max,
}

/// The error for an unknown thought level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown thought level {0}; expected off, low, medium, high or max")]
pub struct ParseThoughtLevelError(String);

impl ThoughtLevel {
    /// All thought levels, lowest first.
    pub const ALL: [Self; 5] = [Self::Off, Self::Low, Self::Medium, Self::High, Self::Max];

    /// Returns the name of the level, as used in settings: `off`, `low`, `medium`, `high` or `max`.
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
    /// Returns the level's name for display.
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
