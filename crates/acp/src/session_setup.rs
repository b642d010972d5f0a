//! What a session is opened with, for both sides.

use std::path::Path;

use acp_wire::Meta;
use acp_wire::v1::{
    ContentBlock, McpServer, SessionSystemPromptCapabilities, SystemPrompt, SystemPromptMode,
};

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
    /// The client's own instructions for the model. Unstable.
    pub system_prompt: Option<SystemPrompt>,
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
            system_prompt: None,
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

    /// Sets instructions of your own for the model. The agent must offer `systemPrompt`. An agent need not keep them: say
    /// the same when the session is opened again.
    #[must_use]
    pub fn system_prompt(mut self, prompt: SystemPrompt) -> Self {
        self.system_prompt = Some(prompt);
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
    pub(crate) fn check_paths_absolute(&self) -> Result<(), String> {
        let mut paths = std::iter::once(&self.cwd).chain(&self.additional_directories);
        let bytes: usize = paths
            .clone()
            .map(|path| path.len() + size_of::<String>())
            .sum();
        if bytes > LONGEST_PATHS {
            return Err(format!(
                "session paths too long: {bytes} bytes (limit: {LONGEST_PATHS} bytes)"
            ));
        }
        match paths.find(|path| !is_absolute(path)) {
            Some(path) => Err(format!("not an absolute path: {path:?}")),
            None => Ok(()),
        }
    }
}

/// Why a system prompt cannot be applied.
pub(crate) enum SystemPromptError {
    /// The agent does not offer this, by its name in version 1.
    Unsupported(&'static str),
    /// It is wrong by itself.
    Invalid(String),
}

impl SessionSetup {
    /// That its system prompt can be applied by an agent that offers this.
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
                let text = format!("unknown system prompt mode {:?}", other.as_str());
                return Err(SystemPromptError::Invalid(text));
            }
        }
        let is_text = |block: &ContentBlock| matches!(block, ContentBlock::Text(_));
        if prompt.content.is_empty() {
            let text = "the system prompt is empty".to_owned();
            return Err(SystemPromptError::Invalid(text));
        }
        if !prompt.content.iter().all(is_text) {
            let text = "the system prompt has content that is not text".to_owned();
            return Err(SystemPromptError::Invalid(text));
        }
        Ok(())
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
