//! The names of the commands that the agent handles itself. No file can replace them.

pub(super) const HELP: &str = "help";
pub(super) const COMPACT: &str = "compact";
