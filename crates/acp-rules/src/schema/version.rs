//! Protocol versions.

use std::fmt;

/// A protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaVersion {
    /// Version 1.
    V1,
    /// Version 2, a draft.
    V2,
}

impl SchemaVersion {
    /// Returns the value of `protocolVersion` in `initialize`.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

impl fmt::Display for SchemaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.number())
    }
}
