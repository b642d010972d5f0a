//! Defines the settings of a chat.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use acp::v1::{McpServer, MessageId, SessionId};
use acp_config::{EditingMode, ImageMode, NotifyMode, SessionNames};
use acp_host::{AgentCommand, Environment, Permissions, Sandbox};

use crate::keys::KeyBindings;
use crate::theme::{Background, Theme, ThemePair};

/// An agent that the chat can start.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentSpec {
    /// The user's name for the agent.
    pub name: String,
    /// The command that starts the agent.
    pub command: AgentCommand,
    /// The hook that sandboxes the agent's command.
    pub sandbox_hook: SandboxHook,
    /// The options of the agent's connection, such as protocol versions and limits.
    pub options: acp::Options,
    /// The MCP servers for the agent's sessions.
    pub mcp_servers: Vec<McpServer>,
    /// The mode and config options to set in the agent's new sessions.
    pub initial_options: InitialOptions,
    /// The command that installs the agent, if known. It is shown but never run.
    pub install: Option<String>,
    /// The source of advice about the agent's errors.
    pub hint: HintSource,
    /// Whether the agent is trusted to ask for permission itself.
    ///
    /// Such an agent asks about everything that its mode and the rules do not allow, and is bound by the policy.
    /// Actions that it performs through the client are then not asked about a second time.
    pub asks: bool,
    /// What identifies the agent in what the chat stores about its sessions. By default, this is its name.
    pub storage_key: String,
    /// The stored names of the agent's sessions in this directory, or `None` if names are not stored.
    pub names: Option<SessionNames>,
}

/// A function that returns advice about an agent's error message.
///
/// For example, an API key that the agent requires is set in this environment but is not passed on to the agent.
#[derive(Clone, Default)]
pub struct HintSource(Option<Arc<HintFn>>);

type HintFn = dyn Fn(&str, bool) -> Option<String> + Send + Sync;

impl HintSource {
    /// Creates a source from a function. It receives the agent's message, and whether the agent requires a login.
    pub fn new(hint: impl Fn(&str, bool) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hint)))
    }

    pub(crate) fn hint_for(&self, said: &str, login: bool) -> Option<String> {
        self.0.as_ref()?(said, login)
    }
}

impl fmt::Debug for HintSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hint").field(&self.0.is_some()).finish()
    }
}

/// A hook that sandboxes an agent's command before the agent is started, and returns notes for the user.
#[derive(Clone, Default)]
pub struct SandboxHook(Option<Arc<SandboxFn>>);

type SandboxFn = dyn Fn(AgentCommand) -> Result<(AgentCommand, Vec<String>), String> + Send + Sync;

impl SandboxHook {
    /// Creates a hook from a function that sandboxes commands.
    ///
    /// `sandbox_hook` returns the confined command and notes for the user, or the reason why there can be no sandbox.
    /// It may read and write files.
    pub fn new(
        confine: impl Fn(AgentCommand) -> Result<(AgentCommand, Vec<String>), String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Some(Arc::new(confine)))
    }

    pub(crate) fn apply(
        &self,
        command: AgentCommand,
    ) -> Result<(AgentCommand, Vec<String>), String> {
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
    /// Creates an agent specification with this name and command.
    pub fn new(name: impl Into<String>, command: AgentCommand) -> Self {
        let name = name.into();
        Self {
            storage_key: name.clone(),
            name,
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

/// The mode and config options to set when a new or existing session is opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InitialOptions {
    /// The id of the mode to set.
    pub mode: Option<String>,
    /// The config options to set, as id and value pairs.
    pub config: Vec<(String, String)>,
    /// The model to use: a value of the config option whose category is `model`.
    pub model: Option<String>,
}

/// The source of a tab's session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionSource {
    /// A new session.
    New,
    /// An existing session. It is loaded with a replay, or resumed if the agent cannot load sessions.
    Existing(SessionId),
    /// A new session that starts as a copy of this one.
    Fork(SessionId),
    /// A new session that starts as a copy of another one up to a message of the agent, and is shown with it.
    ForkAt {
        /// The session to copy.
        session: SessionId,
        /// The last message that is copied.
        last: MessageId,
    },
}

/// A session that was open when a chat ended, and that its agent has stored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResumableSession {
    /// The index of the agent in [`ChatSetup::agents`].
    pub agent: usize,
    /// The session's id.
    pub id: SessionId,
    /// Whether this is the session in the first tab, to which [`ChatSetup::name`] applies.
    pub is_first: bool,
}

/// The settings of a chat.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChatSetup {
    /// The available agents. The first one is started immediately.
    pub agents: Vec<AgentSpec>,
    /// The agents' working directory, an absolute path.
    pub cwd: PathBuf,
    /// The directories of all sessions besides `cwd`, as absolute paths. If there are any, the agents must support
    /// `additionalDirectories`.
    pub additional_directories: Vec<PathBuf>,
    /// The permissions that apply to all agents of the chat.
    pub permissions: Permissions,
    /// The sandbox for commands that the client runs for the agents, or `None` to run them without one.
    pub sandbox: Option<Sandbox>,
    /// The environment of commands that the client runs for the agents.
    pub environment: Environment,
    /// The session to open in the first tab.
    pub session_source: SessionSource,
    /// The name for the session in the first tab, if it is new.
    pub name: Option<String>,
    /// The mode and config options for the session in the first tab. They take precedence over the agent's own
    /// [`InitialOptions`].
    pub initial_options: InitialOptions,
    /// The first prompt to send, if any.
    pub prompt: Option<String>,
    /// The file that stores the prompt history, or `None` to store no history.
    pub history: Option<PathBuf>,
    /// The directory that stores snapshots of projects' files, or `None` to keep no snapshots.
    pub rewind: Option<PathBuf>,
    /// The user's key bindings.
    pub keys: KeyBindings,
    /// The themes for dark and for light terminals.
    pub themes: ThemePair,
    /// The terminal's background, as far as known before it is asked.
    pub background: Background,
    /// The current theme.
    pub(crate) theme: Theme,
    /// How images are displayed.
    pub images: ImageMode,
    /// How to call the user back when the terminal is not in use.
    pub notify: NotifyMode,
    /// The keys of the prompt editor.
    pub editing: EditingMode,
    /// Whether the chat captures the mouse. If so, selecting text in the terminal requires a modifier key.
    pub mouse: bool,
}

impl ChatSetup {
    /// Creates chat settings for this agent and directory.
    pub fn new(agent: AgentSpec, cwd: impl Into<PathBuf>, permissions: Permissions) -> Self {
        Self {
            agents: vec![agent],
            cwd: cwd.into(),
            additional_directories: Vec::new(),
            permissions,
            sandbox: None,
            environment: Environment::new(),
            session_source: SessionSource::New,
            name: None,
            initial_options: InitialOptions::default(),
            prompt: None,
            history: None,
            rewind: None,
            keys: KeyBindings::default(),
            themes: Theme::default().into(),
            background: Background::default(),
            theme: Theme::default(),
            images: ImageMode::default(),
            notify: NotifyMode::default(),
            editing: EditingMode::default(),
            mouse: true,
        }
    }
}
