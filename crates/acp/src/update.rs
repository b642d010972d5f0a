//! What happens in a session: one vocabulary for both versions of the protocol.

use acp_wire::v1::{
    self, CompactionSummaryChunk, CompactionUpdate, ConfigOptionUpdate, ContentBlock,
    CurrentModeUpdate, MessageId, Notice, PlanRemoved, SessionMessage, SessionMessageChunk,
    SubagentUpdate, Terminal, ToolCallId, ToolCallLocation, ToolKind,
};
use acp_wire::v2::{
    self, AvailableCommandsUpdate, Message, PlanUpdate, SessionInfoUpdate, StateUpdate,
    TerminalOutputChunk, TerminalUpdate, ToolCallCapabilities, ToolCallContentChunk,
    ToolCallStatus, UsageUpdate,
};
use acp_wire::{Meta, RawObject};
use serde::Serialize;
use serde_json::Value;

/// Something that happened in a session, whichever version of the protocol is spoken.
///
/// The words are mostly those of version 2, which has more of them. Where version 1 says something else, there is
/// a place for that: messages without an id, tool calls that begin, the texts of a diff, modes.
///
/// An update is made from the message of either version (by `From`), and given as one by
/// [`into_v1`](Self::into_v1) and [`into_v2`](Self::into_v2).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
// Updates are made one by one and given on; boxing all of them would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
pub enum Update {
    /// A piece of what the person said.
    UserMessageChunk(MessageChunk),
    /// What the person said, whole. Replaces what was there. Version 2.
    UserMessage(Message),
    /// A piece of what the agent says.
    AgentMessageChunk(MessageChunk),
    /// What the agent says, whole. Replaces what was there. Version 2.
    AgentMessage(Message),
    /// A piece of the agent's thoughts.
    AgentThoughtChunk(MessageChunk),
    /// The agent's thoughts, whole. Replace what was there. Version 2.
    AgentThought(Message),
    /// What the agent does. Version 2.
    StateUpdate(StateUpdate),
    /// A tool call, new or changed.
    ToolCallUpdate(Box<ToolCallPatch>),
    /// A piece of what a tool call has produced. Version 2.
    ToolCallContentChunk(ToolCallContentChunk),
    /// A terminal of the agent's own. Version 2.
    TerminalUpdate(Box<TerminalUpdate>),
    /// What such a terminal prints. Version 2.
    TerminalOutputChunk(TerminalOutputChunk),
    /// A plan, whole. The only one of an agent of version 1 has the id [`PLAN`](crate::thread::PLAN).
    PlanUpdate(PlanUpdate),
    /// A plan is gone.
    PlanRemoved(PlanRemoved),
    /// The slash commands, all of them.
    AvailableCommandsUpdate(AvailableCommandsUpdate),
    /// The mode has changed. Version 1; in version 2 it is a config option.
    CurrentModeUpdate(CurrentModeUpdate),
    /// The config options, all of them.
    ConfigOptionUpdate(ConfigOptionUpdate),
    /// The session's title, and when it last changed.
    SessionInfoUpdate(Box<SessionInfoUpdate>),
    /// How full the model's context is, and what the session has cost.
    UsageUpdate(Box<UsageUpdate>),
    /// Something the person should know that is not part of the conversation.
    Notice(Box<Notice>),
    /// The agent shortens the conversation for the model.
    CompactionUpdate(Box<CompactionUpdate>),
    /// A piece of what is left of the conversation then.
    CompactionSummaryChunk(CompactionSummaryChunk),
    /// The session has a subagent, or something about it has changed. Unstable.
    SubagentUpdate(Box<SubagentUpdate>),
    /// A message from one session to another. Unstable.
    SessionMessage(Box<SessionMessage>),
    /// A piece of such a message. Unstable.
    SessionMessageChunk(SessionMessageChunk),
    /// A kind this library does not know, as it came.
    Unknown(RawObject),
}

impl Update {
    /// The text of a piece of the agent's message. Agents of version 2 may send whole messages, too,
    /// which replace what was there: the [`Thread`](crate::Thread) has what there is.
    #[must_use]
    pub fn message_text(&self) -> Option<&str> {
        self.message_content()?.as_text()
    }

    /// The text of a piece of the agent's thoughts.
    #[must_use]
    pub fn thought_text(&self) -> Option<&str> {
        match self {
            Self::AgentThoughtChunk(chunk) => chunk.content.as_text(),
            _ => None,
        }
    }

    /// The content of a piece of the agent's message.
    #[must_use]
    pub fn message_content(&self) -> Option<&ContentBlock> {
        match self {
            Self::AgentMessageChunk(chunk) => Some(&chunk.content),
            _ => None,
        }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MessageChunk {
    /// The message's id. Agents of version 1 need not give one.
    pub message_id: Option<MessageId>,
    /// Whether the piece belongs to the message with this id wherever that stands, as in version 2. In version 1
    /// it belongs to the message at the end, unless that is another speaker's or has another id.
    pub by_id: bool,
    /// What is said.
    pub content: ContentBlock,
    /// Custom data.
    pub meta: Option<Meta>,
}

impl MessageChunk {
    /// A piece of the message at the end.
    pub fn new(content: impl Into<ContentBlock>) -> Self {
        v1::ContentChunk::new(content).into()
    }

    /// Sets the message's id.
    #[must_use]
    pub fn message_id(mut self, id: impl Into<MessageId>) -> Self {
        self.message_id = Some(id.into());
        self
    }
}

/// A tool call, new or changed. Of its fields `None` leaves what is known as it is, and `Some(None)` clears it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCallPatch {
    /// The call's id.
    pub tool_call_id: ToolCallId,
    /// Whether this announces the call, as `tool_call` of version 1 does: what is not said is at its default then,
    /// and the id of a call that has ended is that of another one from here on.
    pub is_new: bool,
    /// The tool's name for programs.
    pub name: Option<Option<String>>,
    /// What it does, for people.
    pub title: Option<Option<String>>,
    /// What sort of thing it does.
    pub kind: Option<Option<ToolKind>>,
    /// How far it is.
    pub status: Option<Option<ToolCallStatus>>,
    /// What it has produced, all of it.
    pub content: Option<Option<Vec<ToolCallOutput>>>,
    /// The files it works on.
    pub locations: Option<Option<Vec<ToolCallLocation>>>,
    /// What the tool was given; `null` clears it.
    pub raw_input: Option<Value>,
    /// What the tool gave back; `null` clears it.
    pub raw_output: Option<Value>,
    /// What a client may do with it. Version 2.
    pub capabilities: Option<Option<ToolCallCapabilities>>,
    /// Custom data.
    pub meta: Option<Option<Meta>>,
}

impl ToolCallPatch {
    /// An update that says nothing yet.
    pub fn new(id: impl Into<ToolCallId>) -> Self {
        v2::ToolCallUpdate::new(id).into()
    }

    /// Takes over what a later update of the same call says.
    pub fn merge(&mut self, later: Self) {
        fn take<T>(known: &mut Option<T>, later: Option<T>) {
            if later.is_some() {
                *known = later;
            }
        }
        take(&mut self.name, later.name);
        take(&mut self.title, later.title);
        take(&mut self.kind, later.kind);
        take(&mut self.status, later.status);
        take(&mut self.content, later.content);
        take(&mut self.locations, later.locations);
        take(&mut self.raw_input, later.raw_input);
        take(&mut self.raw_output, later.raw_output);
        take(&mut self.capabilities, later.capabilities);
        take(&mut self.meta, later.meta);
    }
}

/// A piece of what a tool call has produced, as an agent tells it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)]
pub enum ToolCallOutput {
    /// A content block.
    Content(v1::Content),
    /// The texts of a file before and after: version 1.
    TextDiff(v1::Diff),
    /// What happened to which files: version 2.
    Diff(v2::Diff),
    /// A terminal.
    Terminal(Terminal),
    /// A kind this library does not know, as it came.
    Unknown(RawObject),
}
