//! Checks for version 1.

pub(super) mod agent;
pub(super) mod client;
