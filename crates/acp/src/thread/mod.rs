//! The thread: what a person sees of a session, folded from its updates.
//!
//! Every front end renders a [`Thread`] and none folds updates for itself. Live updates, replay and
//! both versions of the protocol go through the same code. A thread's memory is what a person can
//! see, however fast it came.

mod fold;
mod handle;
mod terminal;
mod terminal_meta;

use std::collections::HashMap;

use acp_wire::RawObject;
use acp_wire::v1::{
    AvailableCommand, ContentBlock, MessageId, PlanEntry, SessionConfigOption, StopReason,
    TerminalId, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus, ToolKind,
    UsageUpdate,
};
use serde_json::Value;

pub(crate) use fold::MODE;
pub use handle::ThreadHandle;
pub use terminal::ThreadTerminal;

/// The id of the plan of an agent that speaks version 1, where there is only one.
pub const PLAN: &str = "plan";

/// What a person sees of a session.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    items: Vec<Item>,
    tool_calls: HashMap<ToolCallId, usize>,
    plans: Vec<ThreadPlan>,
    terminals: HashMap<TerminalId, ThreadTerminal>,
    config_options: Vec<SessionConfigOption>,
    /// The agent has modes and no config option for them; one of them stands for its modes.
    modes_only: bool,
    commands: Vec<AvailableCommand>,
    title: Option<String>,
    updated_at: Option<String>,
    usage: Option<UsageUpdate>,
    running: bool,
    stop_reason: Option<StopReason>,
    revision: u64,
}

/// One thing after another in a thread.
#[derive(Debug, Clone)]
pub struct Item {
    /// The thread's revision when this item last changed.
    pub revision: u64,
    /// What it is.
    pub kind: ItemKind,
}

/// What an item is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ItemKind {
    /// What the person said.
    User(Message),
    /// What the agent said.
    Agent(Message),
    /// What the agent thought.
    Thought(Message),
    /// What the agent did. Boxed: it is much larger than the others.
    ToolCall(Box<ThreadToolCall>),
    /// An update this library does not know, as it came.
    Unknown(RawObject),
}

/// A message, put together from its chunks.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// Its id, if the agent gave it one.
    pub id: Option<MessageId>,
    /// Its content; text that came in pieces is one block.
    pub content: Vec<ContentBlock>,
}

impl Message {
    /// All of its text.
    #[must_use]
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(ContentBlock::as_text)
            .collect()
    }
}

/// A tool call, put together from its updates.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadToolCall {
    /// Its id.
    pub id: ToolCallId,
    /// What it does, for people; empty if the agent has not said.
    pub title: String,
    /// What sort of thing it does.
    pub kind: ToolKind,
    /// How far it is.
    pub status: ToolCallStatus,
    /// It was not finished when its turn was cancelled.
    pub cancelled: bool,
    /// What it has produced.
    pub content: Vec<ToolCallContent>,
    /// The files it works on.
    pub locations: Vec<ToolCallLocation>,
    /// What the tool was given.
    pub raw_input: Option<Value>,
    /// What the tool gave back.
    pub raw_output: Option<Value>,
}

impl ThreadToolCall {
    /// Whether nothing more is to come of it.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.cancelled
            || matches!(
                self.status,
                ToolCallStatus::Completed | ToolCallStatus::Failed
            )
    }
}

/// A plan.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadPlan {
    /// Its id; [`PLAN`] for an agent that speaks version 1.
    pub id: String,
    /// Its steps.
    pub entries: Vec<PlanEntry>,
    /// The thread's revision when it last changed.
    pub revision: u64,
}

impl Thread {
    /// An empty thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Grows with every change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Messages, thoughts and tool calls in the order they began.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// A tool call.
    #[must_use]
    pub fn tool_call(&self, id: &ToolCallId) -> Option<&ThreadToolCall> {
        match &self.items.get(*self.tool_calls.get(id)?)?.kind {
            ItemKind::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// The plans, in the order they first came.
    #[must_use]
    pub fn plans(&self) -> &[ThreadPlan] {
        &self.plans
    }

    /// A terminal that the thread has seen output of. It stays when the agent releases it.
    #[must_use]
    pub fn terminal(&self, id: &TerminalId) -> Option<&ThreadTerminal> {
        self.terminals.get(id)
    }

    /// The config options in the agent's order. The modes of an agent that has no config options are
    /// shown as one of category `mode`.
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

    /// How full the model's context is, and the cost.
    #[must_use]
    pub fn usage(&self) -> Option<&UsageUpdate> {
        self.usage.as_ref()
    }

    /// Whether a turn is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// How the last turn ended.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&StopReason> {
        self.stop_reason.as_ref()
    }
}
