//! Checks of the unstable parts of the protocol as of November 2026. These parts are the same in both versions.

pub(super) mod agent;
pub(super) mod client;
