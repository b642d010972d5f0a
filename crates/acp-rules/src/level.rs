//! Requirement levels: MUST, SHOULD and MAY.

use std::fmt;

/// Whether a requirement is a MUST, a SHOULD or a MAY, as defined by RFC 2119.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequirementLevel {
    /// The specification says MUST or MUST NOT.
    Must,
    /// The specification says SHOULD or SHOULD NOT.
    Should,
    /// The specification says MAY.
    May,
}

impl fmt::Display for RequirementLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
            Self::May => "MAY",
        })
    }
}
