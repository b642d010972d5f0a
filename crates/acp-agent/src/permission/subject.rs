//! Defines the subjects of permission requests and of "always" answers.

use serde::{Deserialize, Serialize};

use crate::text::first_line;

/// What an "always" answer applies to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AlwaysSubject {
    /// All calls to a tool. For a tool that changes files, this covers only files in the session's directories that
    /// other programs do not run or trust.
    Tool(String),
    /// Exactly one command line.
    Command(String),
    /// Changes to one file, identified by its absolute path.
    File(String),
    /// Fetching from one host, identified by its name or IP address.
    Host(String),
    /// Fetching from a non-public address, identified by scheme, host, port and IP addresses.
    Inside(String),
}

impl AlwaysSubject {
    /// Returns the text that follows "Always allow" or "Always reject" in an option.
    pub(super) fn description(&self) -> String {
        match self {
            Self::Tool(tool) if tool == "edit" => "edits to project files".to_owned(),
            Self::Tool(tool) if tool == "write" => "writing project files".to_owned(),
            Self::Tool(tool) => format!("`{tool}`"),
            Self::Command(command) => {
                let shown = first_line(command);
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
