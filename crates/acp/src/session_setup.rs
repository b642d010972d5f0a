//! What a session is opened with, for both sides.

use std::path::Path;

use acp_wire::Meta;
use acp_wire::v1::McpServer;

/// The longest id of a session, in bytes. Of ids there are as many as of sessions, and in every update.
pub(crate) const LONGEST_ID: usize = 4096;

/// How long the paths of a session may be together, in bytes: an agent keeps them while it is open.
const LONGEST_PATHS: usize = 256 * 1024;

/// What a session is opened with: Session setup.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionSetup {
    /// The working directory, an absolute path.
    pub cwd: String,
    /// Further roots, absolute paths. All paths of a session together have 256 KiB at most.
    pub additional_directories: Vec<String>,
    /// MCP servers for the agent to connect to.
    pub mcp_servers: Vec<McpServer>,
    /// Custom data.
    pub meta: Option<Meta>,
}

impl SessionSetup {
    /// A session in this directory, an absolute path.
    pub fn new(cwd: impl AsRef<Path>) -> Self {
        Self {
            // The protocol's paths are JSON strings: a name that is not Unicode cannot be said.
            cwd: cwd.as_ref().to_string_lossy().into_owned(),
            additional_directories: Vec::new(),
            mcp_servers: Vec::new(),
            meta: None,
        }
    }

    /// Sets the MCP servers: Session setup, "MCP Servers".
    #[must_use]
    pub fn mcp_servers(mut self, servers: Vec<McpServer>) -> Self {
        self.mcp_servers = servers;
        self
    }

    /// Sets further roots, absolute paths. The agent must offer `additionalDirectories`.
    #[must_use]
    pub fn additional_directories(mut self, directories: Vec<String>) -> Self {
        self.additional_directories = directories;
        self
    }

    /// Sets custom data.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}

impl SessionSetup {
    /// That its paths are absolute, as Session setup demands; the text names one that is not.
    pub(crate) fn check_paths(&self) -> Result<(), String> {
        let mut paths = std::iter::once(&self.cwd).chain(&self.additional_directories);
        let bytes: usize = paths
            .clone()
            .map(|path| path.len() + size_of::<String>())
            .sum();
        if bytes > LONGEST_PATHS {
            return Err(format!(
                "the paths of a session have {LONGEST_PATHS} bytes at most, and these have {bytes}"
            ));
        }
        match paths.find(|path| !is_absolute(path)) {
            Some(path) => Err(format!("{path:?} is not an absolute path")),
            None => Ok(()),
        }
    }
}

/// Whether a path is absolute on any system: the other side may run on another one, in a container for
/// example.
fn is_absolute(path: &str) -> bool {
    let drive =
        matches!(path.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    drive || path.starts_with(['/', '\\']) || Path::new(path).is_absolute()
}

impl<P: AsRef<Path>> From<P> for SessionSetup {
    fn from(cwd: P) -> Self {
        Self::new(cwd)
    }
}
