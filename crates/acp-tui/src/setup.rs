//! What a chat is begun with.

use std::path::PathBuf;

use acp::v1::{McpServer, SessionId};
use acp_host::{AgentCommand, Environment, Permissions, Sandbox};

use crate::images::Images;
use crate::keys::Keys;
use crate::theme::Theme;

/// An agent that can be talked to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AgentSpec {
    /// What the person calls it.
    pub name: String,
    /// How it is started.
    pub command: AgentCommand,
    /// How its connection is made: which versions are spoken, how much is kept.
    pub options: acp::Options,
    /// MCP servers for its sessions.
    pub mcp_servers: Vec<McpServer>,
    /// The mode its sessions begin in.
    pub mode: Option<String>,
    /// Config options its sessions begin with: ids and values.
    pub config: Vec<(String, String)>,
}

impl AgentSpec {
    /// An agent that is started like this.
    pub fn new(name: impl Into<String>, command: AgentCommand) -> Self {
        Self {
            name: name.into(),
            command,
            options: acp::Options::new(),
            mcp_servers: Vec::new(),
            mode: None,
            config: Vec::new(),
        }
    }
}

/// How a session is come by.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Open {
    /// It is new.
    New,
    /// It is an old one: loaded with its past, or resumed where the agent does not tell the past.
    Old(SessionId),
    /// It is new, and begins as a copy of this one.
    Fork(SessionId),
}

/// All that a chat is begun with.
#[derive(Debug)]
#[non_exhaustive]
pub struct Setup {
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
    pub open: Open,
    /// What is said first, if anything.
    pub prompt: Option<String>,
    /// Where the prompts of before are kept, if they are.
    pub history: Option<PathBuf>,
    /// Which key does what.
    pub keys: Keys,
    /// Colours.
    pub theme: Theme,
    /// How images are shown.
    pub images: Images,
    /// Whether the mouse is used. The terminal's own selecting of text then needs a modifier key.
    pub mouse: bool,
}

impl Setup {
    /// A chat with this agent in this directory.
    pub fn new(agent: AgentSpec, cwd: impl Into<PathBuf>, permissions: Permissions) -> Self {
        Self {
            agents: vec![agent],
            cwd: cwd.into(),
            permissions,
            sandbox: None,
            environment: Environment::new(),
            open: Open::New,
            prompt: None,
            history: None,
            keys: Keys::default(),
            theme: Theme::default(),
            images: Images::default(),
            mouse: false,
        }
    }
}
