//! The checks that are the same in both versions: the unstable parts as of November 2026.

pub(super) mod agent;
pub(super) mod client;
