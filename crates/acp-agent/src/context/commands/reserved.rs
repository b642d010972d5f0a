//! The commands that the agent carries out itself. No file takes their place.

pub(super) const HELP: &str = "help";
pub(super) const COMPACT: &str = "compact";
