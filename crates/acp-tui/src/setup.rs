//! The setup of a chat.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use acp::v1::{McpServer, SessionId};
use acp_config::{Images, SessionNames};
use acp_host::{AgentCommand, Environment, Permissions, Sandbox};

use crate::keys::KeyBindings;
use crate::theme::Theme;

/// An agent that the chat can start.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentSpec {
    /// The user's name for the agent.
    pub name: String,
    /// The command that starts the agent.
    pub command: AgentCommand,
    /// The hook that puts the agent into a sandbox when it is started, if any.
    pub sandbox_hook: SandboxHook,
    /// The options of its connection, such as protocol versions and limits.
    pub options: acp::Options,
    /// The MCP servers for its sessions.
    pub mcp_servers: Vec<McpServer>,
    /// What is set in its new sessions.
    pub initial_options: InitialOptions,
    /// The command that installs the agent, if known; it is shown, never run.
    pub install: Option<String>,
    /// A hook that knows what the user can do about the agent's errors.
    pub hint: HintSource,
    /// Whether the agent is trusted to ask about everything that its mode and the rules do not allow, and is bound by
    /// the policy. What it does through the client is then not asked about a second time.
    pub asks: bool,
    /// The names that were given to its sessions in the chat's directory, if they are stored.
    pub names: Option<SessionNames>,
}

/// A hook that knows what the user can do about an agent's error message: for example, that a key the agent requires is
/// set here but is not passed on to it.
#[derive(Clone, Default)]
pub struct HintSource(Option<Arc<HintFn>>);

type HintFn = dyn Fn(&str, bool) -> Option<String> + Send + Sync;

impl HintSource {
    /// Creates a hook. `hint` gets the agent's message, and whether the agent requires a login.
    pub fn new(hint: impl Fn(&str, bool) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hint)))
    }

    pub(crate) fn of(&self, said: &str, login: bool) -> Option<String> {
        self.0.as_ref()?(said, login)
    }
}

impl fmt::Debug for HintSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hint").field(&self.0.is_some()).finish()
    }
}

/// A hook that puts an agent's command into a sandbox when it is started, and returns notes about that for the user.
#[derive(Clone, Default)]
pub struct SandboxHook(Option<Arc<SandboxFn>>);

type SandboxFn = dyn Fn(AgentCommand) -> Result<(AgentCommand, Vec<String>), String> + Send + Sync;

impl SandboxHook {
    /// Creates a hook. `sandbox_hook` returns the confined command and notes for the user, or why there can be no
    /// sandbox. It may read and write files.
    pub fn new(
        confine: impl Fn(AgentCommand) -> Result<(AgentCommand, Vec<String>), String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Some(Arc::new(confine)))
    }

    pub(crate) fn of(&self, command: AgentCommand) -> Result<(AgentCommand, Vec<String>), String> {
        match &self.0 {
            Some(confine) => confine(command),
            None => Ok((command, Vec::new())),
        }
    }
}

impl fmt::Debug for SandboxHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Confine").field(&self.0.is_some()).finish()
    }
}

impl AgentSpec {
    /// Creates an agent that is started with this command.
    pub fn new(name: impl Into<String>, command: AgentCommand) -> Self {
        Self {
            name: name.into(),
            command,
            sandbox_hook: SandboxHook::default(),
            options: acp::Options::new(),
            mcp_servers: Vec::new(),
            initial_options: InitialOptions::default(),
            install: None,
            hint: HintSource::default(),
            asks: false,
            names: None,
        }
    }
}

/// What is set in a session once it is open, whether it is new or existing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InitialOptions {
    /// The id of the mode.
    pub mode: Option<String>,
    /// Config options: ids and values.
    pub config: Vec<(String, String)>,
}

/// How a session is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionSource {
    /// As a new session.
    New,
    /// As an existing session: loaded with a replay, or resumed if the agent does not support loading.
    Existing(SessionId),
    /// As a new session that starts as a copy of this one.
    Fork(SessionId),
}

/// Everything that a chat is started with.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChatSetup {
    /// The agents; the first one is started.
    pub agents: Vec<AgentSpec>,
    /// The directory in which the agents work, an absolute path.
    pub cwd: PathBuf,
    /// What the agents may do without asking.
    pub permissions: Permissions,
    /// The sandbox of their commands, if they are confined.
    pub sandbox: Option<Sandbox>,
    /// The environment of their commands.
    pub environment: Environment,
    /// How the session of the first tab is opened.
    pub session_source: SessionSource,
    /// The name for this session, if it is new.
    pub name: Option<String>,
    /// What is set in this session; takes precedence over the agent's own [`InitialOptions`].
    pub initial_options: InitialOptions,
    /// The first prompt, if any.
    pub prompt: Option<String>,
    /// The file with the prompt history, if it is stored.
    pub history: Option<PathBuf>,
    /// The key bindings.
    pub keys: KeyBindings,
    /// The theme.
    pub theme: Theme,
    /// How images are shown.
    pub images: Images,
    /// Whether the mouse is used. If it is, selecting text in the terminal requires a modifier key.
    pub mouse: bool,
}

impl ChatSetup {
    /// Creates a chat with this agent in this directory.
    pub fn new(agent: AgentSpec, cwd: impl Into<PathBuf>, permissions: Permissions) -> Self {
        Self {
            agents: vec![agent],
            cwd: cwd.into(),
            permissions,
            sandbox: None,
            environment: Environment::new(),
            session_source: SessionSource::New,
            name: None,
            initial_options: InitialOptions::default(),
            prompt: None,
            history: None,
            keys: KeyBindings::default(),
            theme: Theme::default(),
            images: Images::default(),
            mouse: false,
        }
    }
}
