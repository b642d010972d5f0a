//! Defines the action of a tool call, which the permission rules are checked against.

use acp::v1::ToolKind;

/// The action that a tool call wants to perform.
#[derive(Debug, Clone)]
pub(crate) enum ToolAction {
    /// Read a file. The path is absolute.
    Read(String),
    /// List or search a directory. The path is absolute.
    Inspect { kind: ToolKind, path: String },
    /// Change a file. The path is absolute.
    Change(String),
    /// Run a command line with the shell.
    Run(String),
    /// Any other action. The rules see only its kind.
    Other(ToolKind),
}
