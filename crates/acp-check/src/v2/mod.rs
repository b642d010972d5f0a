//! Checks for version 2.

pub(super) mod agent;
pub(super) mod client;
