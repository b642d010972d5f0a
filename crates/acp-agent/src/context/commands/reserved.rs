//! Reserved command names: the agent handles these commands itself, and command files cannot override them.

pub(super) const HELP_COMMAND: &str = "help";
pub(super) const COMPACT_COMMAND: &str = "compact";
