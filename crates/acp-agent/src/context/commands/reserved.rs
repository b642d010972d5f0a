//! The names of commands that the agent handles itself. A command file cannot replace them.

pub(super) const HELP_COMMAND: &str = "help";
pub(super) const COMPACT_COMMAND: &str = "compact";
