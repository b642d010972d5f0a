//! What a tool call is about to do, for the rules.

use acp::v1::ToolKind;

/// What a tool call is about to do.
#[derive(Debug, Clone)]
pub(crate) enum ToolAction {
    /// Reads a file. The path is absolute.
    Read(String),
    /// Looks at what is in a directory or under it. The path is absolute.
    Inspect { kind: ToolKind, path: String },
    /// Changes a file. The path is absolute.
    Change(String),
    /// Has the shell run a line.
    Run(String),
    /// Something else, of which no more is known than its kind.
    Other(ToolKind),
}
