//! Parameters for opening a session, for clients and agents.

use std::path::Path;

use acp_wire::Meta;
use acp_wire::v1::{
    ContentBlock, McpServer, SessionSystemPromptCapabilities, SystemPrompt, SystemPromptMode,
};

/// The maximum length of a session id, in bytes. Every session stores its id, and every update includes it.
pub(crate) const MAX_ID_BYTES: usize = 4096;

/// The maximum total length of a session's paths, in bytes. Agents store them while the session is open.
const MAX_PATHS_BYTES: usize = 256 * 1024;

/// The parameters for opening a session. See the specification's page "Session Setup".
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionSetup {
    /// The working directory, as an absolute path.
    pub cwd: String,
    /// Additional roots, as absolute paths. All paths of a session together can be up to 256 KiB long.
    pub additional_directories: Vec<String>,
    /// The MCP servers for the agent to connect to.
    pub mcp_servers: Vec<McpServer>,
    /// The client's instructions for the model. Unstable.
    pub system_prompt: Option<SystemPrompt>,
    /// Custom data (`_meta`).
    pub meta: Option<Meta>,
}

impl SessionSetup {
    /// Creates a setup with a working directory, given as an absolute path.
    pub fn new(cwd: impl AsRef<Path>) -> Self {
        Self {
            cwd: path_text(cwd.as_ref()),
            additional_directories: Vec::new(),
            mcp_servers: Vec::new(),
            system_prompt: None,
            meta: None,
        }
    }

    /// Sets the MCP servers. See "MCP Servers" on the specification's page "Session Setup".
    #[must_use]
    pub fn mcp_servers(mut self, servers: Vec<McpServer>) -> Self {
        self.mcp_servers = servers;
        self
    }

    /// Sets additional roots, as absolute paths. The agent must support `additionalDirectories`.
    #[must_use]
    pub fn additional_directories(
        mut self,
        directories: impl IntoIterator<Item = impl AsRef<Path>>,
    ) -> Self {
        let directories = directories.into_iter();
        self.additional_directories = directories.map(|path| path_text(path.as_ref())).collect();
        self
    }

    /// Sets the client's instructions for the model. The agent must support `systemPrompt`. Not every agent stores the
    /// instructions, so set them each time you open the session.
    #[must_use]
    pub fn system_prompt(mut self, prompt: SystemPrompt) -> Self {
        self.system_prompt = Some(prompt);
        self
    }

    /// Sets custom data (`_meta`).
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// Returns a path as the protocol has it: a JSON string, which cannot represent a name that is not Unicode.
fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl SessionSetup {
    /// Checks that all paths are absolute and within the limit on their total length. The error names the first path
    /// that is not absolute.
    pub(crate) fn check_paths(&self) -> Result<(), String> {
        let mut paths = std::iter::once(&self.cwd).chain(&self.additional_directories);
        let bytes: usize = paths
            .clone()
            .map(|path| path.len() + size_of::<String>())
            .sum();
        if bytes > MAX_PATHS_BYTES {
            return Err(format!(
                "session paths too long: {bytes} bytes (limit: {MAX_PATHS_BYTES} bytes)"
            ));
        }
        match paths.find(|path| !is_absolute(path)) {
            Some(path) => Err(format!("not an absolute path: {path:?}")),
            None => Ok(()),
        }
    }
}

/// Why an agent cannot use a system prompt.
pub(crate) enum SystemPromptError {
    /// The agent lacks a capability, which is given by its version 1 name.
    Unsupported(&'static str),
    /// The prompt is invalid. The text is the reason.
    Invalid(String),
}

impl SessionSetup {
    /// Checks that an agent with the given capabilities can use a system prompt.
    pub(crate) fn check_system_prompt(
        &self,
        offered: Option<&SessionSystemPromptCapabilities>,
    ) -> Result<(), SystemPromptError> {
        let Some(prompt) = &self.system_prompt else {
            return Ok(());
        };
        let Some(offered) = offered else {
            let name = "sessionCapabilities.systemPrompt";
            return Err(SystemPromptError::Unsupported(name));
        };
        let overriding = offered
            .mode
            .as_ref()
            .and_then(|mode| mode.overriding.as_ref());
        match &prompt.mode {
            SystemPromptMode::Append => {}
            SystemPromptMode::Override if overriding.is_some() => {}
            SystemPromptMode::Override => {
                let name = "sessionCapabilities.systemPrompt.mode.override";
                return Err(SystemPromptError::Unsupported(name));
            }
            other => {
                let text = format!(
                    "unknown system prompt mode {:?} (expected \"append\" or \"override\")",
                    other.as_str()
                );
                return Err(SystemPromptError::Invalid(text));
            }
        }
        let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
        if prompt.content.is_empty() {
            let text = "the system prompt is empty".to_owned();
            return Err(SystemPromptError::Invalid(text));
        }
        if !prompt.content.iter().all(is_text) {
            let text = "the system prompt contains content that is not text".to_owned();
            return Err(SystemPromptError::Invalid(text));
        }
        Ok(())
    }
}

/// Returns `true` if a path is absolute on any operating system, because the peer can run on a different one.
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
