//! The protocol versions that have a schema.

use std::fmt;

/// A protocol version that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SchemaVersion {
    /// Version 1, which is stable.
    V1,
    /// Version 2, a draft.
    V2,
}

impl SchemaVersion {
    /// Returns the version's number, as in `protocolVersion` of `initialize`.
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
