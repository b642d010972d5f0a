//! What a person is asked about, and an answer with "always" is about.

use serde::{Deserialize, Serialize};

use crate::text::one_line;

/// What an answer with "always" is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AlwaysSubject {
    /// Every use of a tool. Of those that change files, it is every file under the session's directories but
    /// those that other programs obey.
    Tool(String),
    /// This command line, exactly.
    Command(String),
    /// Changes of this file, by its absolute path.
    File(String),
    /// What is fetched from the host of this name, or with this address.
    Host(String),
    /// What is fetched from here, which is no public address: scheme, host, port, and the addresses.
    Inside(String),
}

impl AlwaysSubject {
    /// What to call it behind "always".
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
