//! How a connection is made.

use acp_wire::v1::ProtocolVersion;

use crate::connection::Limits;

/// How a connection is made, on either side. [`Limits`] alone will do where only they matter.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// How much is kept.
    pub limits: Limits,
    latest: ProtocolVersion,
}

impl Default for Options {
    fn default() -> Self {
        Limits::default().into()
    }
}

impl From<Limits> for Options {
    fn from(limits: Limits) -> Self {
        Self {
            limits,
            latest: ProtocolVersion::V1,
        }
    }
}

impl Options {
    /// Version 1, and the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Speaks version 2 with a peer that does, and version 1 with any other. Version 2 is a draft: what
    /// is said in it may change, and with it what this library says.
    #[must_use]
    pub fn draft_version_2(mut self) -> Self {
        self.latest = ProtocolVersion::V2;
        self
    }

    /// The latest version that is spoken.
    #[must_use]
    pub fn latest(&self) -> ProtocolVersion {
        self.latest
    }
}
