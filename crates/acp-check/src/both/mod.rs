//! The checks of what is the same in both versions: the unstable parts of November 2026.

pub(super) mod agent;
pub(super) mod client;
