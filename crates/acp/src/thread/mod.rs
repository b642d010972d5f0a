//! The thread: what a person sees of a session, folded from its updates.
//!
//! Every front end renders a [`Thread`] and none folds updates for itself. Live updates, replay and
//! both versions of the protocol go through the same code. A thread's memory is what a person can
//! see, however fast it came, up to a limit: [`Thread::truncation`].

mod compaction;
mod config;
mod content;
mod fold;
mod handle;
mod message;
mod plan;
mod size;
mod subagent;
mod terminal;
mod terminal_meta;
mod tool_call;
pub(crate) mod weight;

use std::collections::HashMap;

use acp_wire::RawObject;
use acp_wire::v1::{
    AvailableCommand, MessageId, Notice, SessionConfigOption, StopReason, TerminalId, ToolCallId,
    UsageUpdate,
};
use acp_wire::v2::BackgroundWork;

pub use compaction::ThreadCompaction;
pub(crate) use config::{MODE, MODEL};
pub use content::{FileChange, FileOperation, FileTexts, ThreadDiff, ThreadToolCallContent};
pub use handle::ThreadHandle;
pub use message::ThreadMessage;
pub use plan::{PLAN, PlanContent, ThreadPlan};
pub(crate) use size::KEPT;
pub use size::Truncation;
pub use subagent::{ThreadSessionMessage, ThreadSubagent};
pub use terminal::ThreadTerminal;
pub use tool_call::ThreadToolCall;

/// The statuses of tool calls and of steps of plans, of both versions.
pub use acp_wire::v2::{PlanEntry, PlanEntryStatus, ToolCallStatus};

/// What a person sees of a session.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    items: Vec<Item>,
    tool_calls: HashMap<ToolCallId, usize>,
    messages: HashMap<MessageId, usize>,
    /// What the person said last, until something else has come.
    echo: Option<message::PromptEcho>,
    plans: Vec<ThreadPlan>,
    terminals: HashMap<TerminalId, ThreadTerminal>,
    config_options: Vec<SessionConfigOption>,
    /// The agent has modes and no config option for them; one of them stands for its modes.
    uses_set_mode: bool,
    /// The same of models.
    uses_set_model: bool,
    commands: Vec<AvailableCommand>,
    title: Option<String>,
    updated_at: Option<String>,
    usage: Option<UsageUpdate>,
    /// A turn of this client's runs.
    is_turn_running: bool,
    activity: Activity,
    background: Option<Vec<BackgroundWork>>,
    stop_reason: Option<StopReason>,
    revision: u64,
    size: size::ThreadSize,
    truncation: Truncation,
}

/// What an agent says that it does. Agents of version 1 do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Activity {
    /// It waits for the next prompt.
    #[default]
    Idle,
    /// It works.
    Running,
    /// It waits for the person.
    RequiresAction,
    /// Something this library does not know: it may be busy.
    Unknown,
}

/// One thing after another in a thread. It stays where it is; what it is may change. The earliest are dropped
/// when a thread becomes too large ([`Thread::truncation`]).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Item {
    /// The thread's revision when this item last changed.
    pub revision: u64,
    /// What it is.
    pub kind: ItemKind,
    /// What it takes, in bytes.
    weight: usize,
}

/// What an item is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ItemKind {
    /// What the person said.
    User(ThreadMessage),
    /// What the agent said.
    Agent(ThreadMessage),
    /// What the agent thought.
    Thought(ThreadMessage),
    /// What the agent did. Boxed: it is much larger than the others.
    ToolCall(Box<ThreadToolCall>),
    /// Something that is not part of the conversation, but that the agent wants to be known.
    Notice(Notice),
    /// The agent shortens the conversation for the model.
    Compaction(ThreadCompaction),
    /// A session that the agent has made for a part of its work, with what happens there.
    Subagent(Box<ThreadSubagent>),
    /// A message from one session to another.
    SessionMessage(ThreadSessionMessage),
    /// An update this library does not know, as it came.
    Unknown(RawObject),
}

impl Thread {
    /// An empty thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Grows with every change, from 0.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Messages, thoughts and tool calls in the order they began; those that were dropped
    /// ([`truncation`](Self::truncation)) came before the first.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// A tool call, if this session has it.
    #[must_use]
    pub fn tool_call(&self, id: &ToolCallId) -> Option<&ThreadToolCall> {
        match &self.item(*self.tool_calls.get(id)?)?.kind {
            ItemKind::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// The plans, in the order they first came.
    #[must_use]
    pub fn plans(&self) -> &[ThreadPlan] {
        &self.plans
    }

    /// A terminal that the thread has seen output of. It stays when the agent releases it, unless it was
    /// dropped ([`truncation`](Self::truncation)).
    #[must_use]
    pub fn terminal(&self, id: &TerminalId) -> Option<&ThreadTerminal> {
        self.terminals.get(id)
    }

    /// The config options in the agent's order. The modes and models of an agent that has no config
    /// options for them are shown as such.
    #[must_use]
    pub fn config_options(&self) -> &[SessionConfigOption] {
        &self.config_options
    }

    /// The slash commands.
    #[must_use]
    pub fn commands(&self) -> &[AvailableCommand] {
        &self.commands
    }

    /// The session's title.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// When the session last changed, as the agent says (ISO 8601).
    #[must_use]
    pub fn updated_at(&self) -> Option<&str> {
        self.updated_at.as_deref()
    }

    /// How full the model's context is, in tokens, and what the session has cost.
    #[must_use]
    pub fn usage(&self) -> Option<&UsageUpdate> {
        self.usage.as_ref()
    }

    /// Whether a turn is running, or the agent says that it works.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_turn_running || self.activity != Activity::Idle
    }

    /// What the agent says that it does.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// What goes on beside the conversation; `None` if the agent does not say.
    #[must_use]
    pub fn background(&self) -> Option<&[BackgroundWork]> {
        self.background.as_deref()
    }

    /// How the last turn ended; `None` while one runs, if it failed, and before the first.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&StopReason> {
        self.stop_reason.as_ref()
    }
}
