//! Checks for the protocol's unstable parts as of November 2026, which are the same in both versions.

pub(super) mod agent;
pub(super) mod client;
