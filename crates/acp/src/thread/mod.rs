//! The thread: what the user sees of a session, built from its updates.
//!
//! Every front end renders a [`Thread`], and none has to process updates itself. Live updates, replays and both
//! versions of the protocol use the same code. A thread's memory is bounded by what the user can see, however fast it
//! arrives, up to a limit: [`Thread::truncation`].

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

/// The statuses of tool calls and plan entries, for both versions.
pub use acp_wire::v2::{PlanEntry, PlanEntryStatus, ToolCallStatus};

/// Everything that the user sees of a session.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    items: Vec<Item>,
    tool_calls: HashMap<ToolCallId, usize>,
    messages: HashMap<MessageId, usize>,
    /// The user's last message, until something else has arrived.
    echo: Option<message::PromptEcho>,
    plans: Vec<ThreadPlan>,
    terminals: HashMap<TerminalId, ThreadTerminal>,
    config_options: Vec<SessionConfigOption>,
    /// Whether the agent has modes without a config option for them. A config option then stands for the modes.
    uses_set_mode: bool,
    /// Whether the agent has models without a config option for them. A config option then stands for the models.
    uses_set_model: bool,
    commands: Vec<AvailableCommand>,
    title: Option<String>,
    updated_at: Option<String>,
    usage: Option<UsageUpdate>,
    /// Whether a turn of this client is running.
    is_turn_running: bool,
    activity: Activity,
    background: Option<Vec<BackgroundWork>>,
    stop_reason: Option<StopReason>,
    revision: u64,
    size: size::ThreadSize,
    truncation: Truncation,
}

/// The state that an agent reports. Agents of version 1 do not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Activity {
    /// It waits for the next prompt.
    #[default]
    Idle,
    /// It is working.
    Running,
    /// It waits for the user.
    RequiresAction,
    /// An unknown state; the agent may be busy.
    Unknown,
}

/// One entry of a thread. Its position does not change, its content may. The earliest are dropped when a thread
/// becomes too large ([`Thread::truncation`]).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Item {
    /// The thread's revision when this item last changed.
    pub revision: u64,
    /// The content of the item.
    pub kind: ItemKind,
    /// Its size in bytes.
    weight: usize,
}

/// The content of an item.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ItemKind {
    /// A message of the user.
    User(ThreadMessage),
    /// A message of the agent.
    Agent(ThreadMessage),
    /// A thought of the agent.
    Thought(ThreadMessage),
    /// A tool call. Boxed, because it is much larger than the others.
    ToolCall(Box<ThreadToolCall>),
    /// A notice, which is not part of the conversation.
    Notice(Notice),
    /// A compaction of the conversation.
    Compaction(ThreadCompaction),
    /// A subagent with its own thread.
    Subagent(Box<ThreadSubagent>),
    /// A message from one session to another.
    SessionMessage(ThreadSessionMessage),
    /// An unknown type of update, as received.
    Unknown(RawObject),
}

impl Thread {
    /// Creates an empty thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the revision, which starts at 0 and grows with every change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the items in the order in which they started. Items that were dropped
    /// ([`truncation`](Self::truncation)) came before the first.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns a tool call of this session.
    #[must_use]
    pub fn tool_call(&self, id: &ToolCallId) -> Option<&ThreadToolCall> {
        match &self.item(*self.tool_calls.get(id)?)?.kind {
            ItemKind::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the plans, in the order in which they first appeared.
    #[must_use]
    pub fn plans(&self) -> &[ThreadPlan] {
        &self.plans
    }

    /// Returns a terminal whose output was seen. It remains when the agent releases it, unless it was dropped
    /// ([`truncation`](Self::truncation)).
    #[must_use]
    pub fn terminal(&self, id: &TerminalId) -> Option<&ThreadTerminal> {
        self.terminals.get(id)
    }

    /// Returns the config options in the agent's order. If an agent has modes or models without config options for
    /// them, they are shown as options.
    #[must_use]
    pub fn config_options(&self) -> &[SessionConfigOption] {
        &self.config_options
    }

    /// Returns the slash commands.
    #[must_use]
    pub fn commands(&self) -> &[AvailableCommand] {
        &self.commands
    }

    /// Returns the session's title.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns when the session last changed, as reported by the agent (ISO 8601).
    #[must_use]
    pub fn updated_at(&self) -> Option<&str> {
        self.updated_at.as_deref()
    }

    /// Returns the context usage, in tokens, and the cost of the session.
    #[must_use]
    pub fn usage(&self) -> Option<&UsageUpdate> {
        self.usage.as_ref()
    }

    /// Returns `true` if a turn is running, or the agent reports that it is working.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_turn_running || self.activity != Activity::Idle
    }

    /// Returns the state that the agent reports.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// Returns the background work, or `None` if the agent does not report it.
    #[must_use]
    pub fn background(&self) -> Option<&[BackgroundWork]> {
        self.background.as_deref()
    }

    /// Returns the stop reason of the last turn. `None` while one is running, if it failed, and before the first.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&StopReason> {
        self.stop_reason.as_ref()
    }
}
