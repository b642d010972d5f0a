//! The thread: what the user sees of a session, built from the session's updates.
//!
//! Front ends render a [`Thread`], and none has to process updates itself. Live updates, replays and both protocol
//! versions use the same code. A thread's memory depends on what the user can see, not on the number of updates, and is
//! limited: [`Thread::truncation`].

mod compaction;
mod config;
mod content;
mod fold;
mod handle;
mod message;
mod nesting;
mod plan;
mod session_message;
mod size;
mod subagent;
mod terminal;
mod terminal_meta;
mod tool_call;
mod turn;

use std::collections::HashMap;

use acp_wire::RawObject;
use acp_wire::v1::{
    AvailableCommand, MessageId, Notice, SessionConfigOption, StopReason, TerminalId, ToolCallId,
    Usage, UsageUpdate,
};
use acp_wire::v2::BackgroundWork;

pub use compaction::ThreadCompaction;
pub(crate) use config::{MODE_OPTION_ID, MODEL_OPTION_ID};
pub use content::{FileChange, FileOperation, FileTexts, ThreadDiff, ThreadToolCallContent};
pub use handle::ThreadHandle;
pub use message::ThreadMessage;
pub use plan::{ONLY_PLAN_ID, PlanContent, ThreadPlan};
pub use session_message::ThreadSessionMessage;
pub(crate) use size::DEFAULT_LIMIT_BYTES;
pub use size::Truncation;
pub use subagent::ThreadSubagent;
pub use terminal::ThreadTerminal;
pub use tool_call::ThreadToolCall;
pub use turn::TurnResult;

/// Plan entries and statuses from version 2. Threads use them for both protocol versions.
pub use acp_wire::v2::{PlanEntry, PlanEntryStatus, ToolCallStatus};

/// Everything that the user sees of a session: its items, plans, terminals and settings.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    items: Vec<Item>,
    tool_calls: HashMap<ToolCallId, usize>,
    messages: HashMap<MessageId, usize>,
    /// The numbers of the items that are nested under a tool call, by the number of the tool call's item.
    nested: HashMap<usize, Vec<usize>>,
    /// The expected echo of the user's last message, until something else is received.
    echo: Option<message::PromptEcho>,
    plans: Vec<ThreadPlan>,
    terminals: HashMap<TerminalId, ThreadTerminal>,
    config_options: Vec<SessionConfigOption>,
    /// Whether the thread has added a config option for the agent's modes, because the agent itself has none.
    uses_set_mode: bool,
    /// Whether the thread has added a config option for the agent's models, because the agent itself has none.
    uses_set_model: bool,
    commands: Vec<AvailableCommand>,
    title: Option<String>,
    updated_at: Option<String>,
    usage: Option<UsageUpdate>,
    turn_usage: Option<Usage>,
    /// The running turn that this client has started, if any.
    turn: Option<turn::TurnProgress>,
    activity: Activity,
    background: Option<Vec<BackgroundWork>>,
    stop_reason: Option<StopReason>,
    revision: u64,
    size: size::ThreadSize,
    truncation: Truncation,
    /// The session that has announced this one as its subagent.
    parent_session: Option<acp_wire::v1::SessionId>,
}

/// The activity reported by an agent. Version 1 agents report none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Activity {
    /// The agent is waiting for the next prompt.
    #[default]
    Idle,
    /// The agent is working.
    Running,
    /// The agent is waiting for the user.
    RequiresAction,
    /// The agent's activity is unknown. The agent may be busy.
    Unknown,
}

/// An entry of a thread, such as a message or a tool call. Its position never changes, but its content can. The
/// earliest items are dropped when a thread becomes too large ([`Thread::truncation`]).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Item {
    /// The thread's revision when this item last changed.
    pub revision: u64,
    /// The kind of the item, with its content.
    pub kind: ItemKind,
    /// The number of the tool call that the item is nested under, because a subagent of that tool call said or did
    /// this. The tool call may have been dropped: see [`Thread::parent_item`].
    pub parent: Option<usize>,
    /// The estimated size of the item, in bytes.
    weight: usize,
}

/// The kind of an item in a thread, with its content.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ItemKind {
    /// A message from the user.
    User(ThreadMessage),
    /// A message from the agent to the user.
    Agent(ThreadMessage),
    /// A thought from the agent.
    Thought(ThreadMessage),
    /// A tool call. It is boxed, because it is much larger than the other variants.
    ToolCall(Box<ThreadToolCall>),
    /// Information for the user that is not part of the conversation.
    Notice(Notice),
    /// A compaction of the conversation.
    Compaction(ThreadCompaction),
    /// A subagent, with its own thread.
    Subagent(Box<ThreadSubagent>),
    /// A message from one session to another, such as between an agent and its subagent.
    SessionMessage(ThreadSessionMessage),
    /// An update of an unknown type, as received.
    Unknown(RawObject),
}

impl Thread {
    /// Creates an empty thread with the default size limit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the thread's revision, which starts at 0 and increases with every change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the items, in the order in which they started, without any that were dropped
    /// ([`truncation`](Self::truncation)).
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the tool call with the given id, if the thread contains it.
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

    /// Returns the terminal with the given id, if the thread contains it. A terminal that the agent has released
    /// remains, unless it was dropped ([`truncation`](Self::truncation)).
    #[must_use]
    pub fn terminal(&self, id: &TerminalId) -> Option<&ThreadTerminal> {
        self.terminals.get(id)
    }

    /// Returns the config options, in the agent's order. If the agent has modes or models but no options for them, the
    /// thread adds options.
    #[must_use]
    pub fn config_options(&self) -> &[SessionConfigOption] {
        &self.config_options
    }

    /// Returns the slash commands that the user can enter.
    #[must_use]
    pub fn commands(&self) -> &[AvailableCommand] {
        &self.commands
    }

    /// Returns the title of the session, if the agent has sent one.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Returns the time of the session's last change (ISO 8601), as reported by the agent.
    #[must_use]
    pub fn updated_at(&self) -> Option<&str> {
        self.updated_at.as_deref()
    }

    /// Returns the context window usage, in tokens, and the session's cost.
    #[must_use]
    pub fn usage(&self) -> Option<&UsageUpdate> {
        self.usage.as_ref()
    }

    /// Returns the tokens that the last turn has used, if the agent has reported them at its end. Unstable.
    #[must_use]
    pub fn turn_usage(&self) -> Option<&Usage> {
        self.turn_usage.as_ref()
    }

    /// Returns `true` if a turn is running or the agent reports that it is working.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.is_turn_running() || self.activity != Activity::Idle
    }

    /// Returns the activity reported by the agent.
    #[must_use]
    pub fn activity(&self) -> Activity {
        self.activity
    }

    /// Returns the agent's background work, or `None` if the agent does not report it.
    #[must_use]
    pub fn background(&self) -> Option<&[BackgroundWork]> {
        self.background.as_deref()
    }

    /// Returns the last turn's stop reason. Returns `None` before the first turn, during a turn, and after a failed
    /// turn.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&StopReason> {
        self.stop_reason.as_ref()
    }
}
