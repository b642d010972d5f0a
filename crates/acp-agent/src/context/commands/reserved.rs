//! The names of commands that the agent handles itself. A command file cannot replace them.

pub(super) const HELP: &str = "help";
pub(super) const COMPACT: &str = "compact";
