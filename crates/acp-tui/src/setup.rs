//! What a chat is begun with.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use acp::v1::{McpServer, SessionId};
use acp_config::{Images, SessionNames};
use acp_host::{AgentCommand, Environment, Permissions, Sandbox};

use crate::keys::KeyBindings;
use crate::theme::Theme;

/// An agent that can be talked to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentSpec {
    /// What the person calls it.
    pub name: String,
    /// How it is started.
    pub command: AgentCommand,
    /// Who confines it when it is started, if anybody does.
    pub sandbox_hook: SandboxHook,
    /// How its connection is made: which versions are spoken, how much is kept.
    pub options: acp::Options,
    /// MCP servers for its sessions.
    pub mcp_servers: Vec<McpServer>,
    /// What its new sessions begin with.
    pub initial_options: InitialOptions,
    /// The command that installs it, if that is known; it is shown, never run.
    pub install: Option<String>,
    /// Who knows what the person can do about what it says.
    pub hint: HintSource,
    /// It can be trusted to ask for all that its mode and the rules do not allow, and it is bound by the policy: what it
    /// does through the client is not asked about a second time.
    pub asks: bool,
    /// The names that its sessions in the chat's directory have been given, if they are kept.
    pub names: Option<SessionNames>,
}

/// Knows what a person can do about what an agent says when something does not work: that a key it wants is set here
/// and not passed on to it, say.
#[derive(Clone, Default)]
pub struct HintSource(Option<Arc<HintFn>>);

type HintFn = dyn Fn(&str, bool) -> Option<String> + Send + Sync;

impl HintSource {
    /// `hint` is given what the agent said, and whether it wants the person to log in.
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

/// Puts the command of an agent into a sandbox when it is started, and says what the person is to be told of that.
#[derive(Clone, Default)]
pub struct SandboxHook(Option<Arc<SandboxFn>>);

type SandboxFn = dyn Fn(AgentCommand) -> Result<(AgentCommand, Vec<String>), String> + Send + Sync;

impl SandboxHook {
    /// `sandbox_hook` gives the confined command and notes for the person, or why there can be no sandbox. It may read and
    /// write files.
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
    /// An agent that is started like this.
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

/// What a session is brought into, old or new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InitialOptions {
    /// The mode, by its id.
    pub mode: Option<String>,
    /// Config options: ids and values.
    pub config: Vec<(String, String)>,
}

/// How a session is come by.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionSource {
    /// It is new.
    New,
    /// It is an old one: loaded with its past, or resumed where the agent does not tell the past.
    Existing(SessionId),
    /// It is new, and begins as a copy of this one.
    Fork(SessionId),
}

/// All that a chat is begun with.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChatSetup {
    /// The agents there are; the first is begun with.
    pub agents: Vec<AgentSpec>,
    /// Where the agents work, an absolute path.
    pub cwd: PathBuf,
    /// What they may do without asking.
    pub permissions: Permissions,
    /// Where their commands may write, if that is confined.
    pub sandbox: Option<Sandbox>,
    /// What their commands get of the environment.
    pub environment: Environment,
    /// The session of the first tab.
    pub session_source: SessionSource,
    /// The name that this session is to have, if it is new.
    pub name: Option<String>,
    /// What that session is brought into, whatever the agent's sessions begin with.
    pub initial_options: InitialOptions,
    /// What is said first, if anything.
    pub prompt: Option<String>,
    /// Where the prompts of before are kept, if they are.
    pub history: Option<PathBuf>,
    /// Which key does what.
    pub keys: KeyBindings,
    /// Colours.
    pub theme: Theme,
    /// How images are shown.
    pub images: Images,
    /// Whether the mouse is used. The terminal's own selecting of text then needs a modifier key.
    pub mouse: bool,
}

impl ChatSetup {
    /// A chat with this agent in this directory.
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
