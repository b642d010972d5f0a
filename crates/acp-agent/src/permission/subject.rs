//! The subject of a permission request and of an "always" answer.

use serde::{Deserialize, Serialize};

use crate::text::one_line;

/// The subject of an "always" answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AlwaysSubject {
    /// Every use of a tool. For a tool that changes files: every file under the session's directories that other
    /// programs do not trust.
    Tool(String),
    /// Exactly this command line.
    Command(String),
    /// Changes to this file, given by its absolute path.
    File(String),
    /// Fetching from the host with this name or IP address.
    Host(String),
    /// Fetching from an address that is not public: scheme, host, port and IP addresses.
    Inside(String),
}

impl AlwaysSubject {
    /// Returns the text to show after "Always allow" or "Always reject".
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Tool(tool) if tool == "edit" => "edits to project files".to_owned(),
            Self::Tool(tool) if tool == "write" => "writing project files".to_owned(),
            Self::Tool(tool) => format!("`{tool}`"),
            Self::Command(command) => {
                let shown = one_line(command);
                match command.lines().count() {
                    _ if shown == *command => format!("exactly `{command}`"),
                    0 | 1 => "exactly this command".to_owned(),
                    lines => format!("exactly this {lines}-line command"),
                }
            }
            Self::File(path) => format!("changes to `{path}`"),
            Self::Host(host) => format!("fetching from `{host}`"),
            Self::Inside(origin) => format!("fetching from {origin}"),
        }
    }
}
