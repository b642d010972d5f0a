//! Session updates, independent of the protocol version.

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

/// A change to a session, independent of the protocol version.
///
/// Most variants follow version 2, which has more kinds of updates. They also cover what only version 1 has: messages
/// without an id, new tool calls, the text of a diff, and modes.
///
/// An update can be created from a message of either version, and converted to one with [`into_v1`](Self::into_v1) or
/// [`into_v2`](Self::into_v2).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
// Updates are created and passed on one at a time. Boxing all of them would cost an allocation each.
#[allow(clippy::large_enum_variant)]
pub enum Update {
    /// A chunk of a user message.
    UserMessageChunk(MessageChunk),
    /// A full user message, which replaces the chunks so far. Version 2.
    UserMessage(Message),
    /// A chunk of an agent message.
    AgentMessageChunk(MessageChunk),
    /// A full agent message, which replaces the chunks so far. Version 2.
    AgentMessage(Message),
    /// A chunk of the agent's thoughts.
    AgentThoughtChunk(MessageChunk),
    /// A full thought, which replaces the chunks so far. Version 2.
    AgentThought(Message),
    /// The agent's current state: working, idle or waiting for the user. Version 2.
    StateUpdate(StateUpdate),
    /// A new tool call, or a change to one.
    ToolCallUpdate(Box<ToolCallPatch>),
    /// A chunk of a tool call's content. Version 2.
    ToolCallContentChunk(ToolCallContentChunk),
    /// A new display terminal, or a change to one. Version 2.
    TerminalUpdate(Box<TerminalUpdate>),
    /// A chunk of a display terminal's output. Version 2.
    TerminalOutputChunk(TerminalOutputChunk),
    /// A full plan, new or changed. If a version 1 agent has only one plan, its id is
    /// [`ONLY_PLAN_ID`](crate::thread::ONLY_PLAN_ID).
    PlanUpdate(PlanUpdate),
    /// The removal of a plan.
    PlanRemoved(PlanRemoved),
    /// The full list of slash commands, which replaces the previous list.
    AvailableCommandsUpdate(AvailableCommandsUpdate),
    /// The session's current mode. Version 1 only, because the mode is a config option in version 2.
    CurrentModeUpdate(CurrentModeUpdate),
    /// The full list of config options, which replaces the previous list.
    ConfigOptionUpdate(ConfigOptionUpdate),
    /// The session's title and the time of its last change.
    SessionInfoUpdate(Box<SessionInfoUpdate>),
    /// The current context window usage, and the session's cost.
    UsageUpdate(Box<UsageUpdate>),
    /// Information for the user that is not part of the conversation.
    Notice(Box<Notice>),
    /// A new compaction, or a change to one.
    CompactionUpdate(Box<CompactionUpdate>),
    /// A chunk of a compaction's summary.
    CompactionSummaryChunk(CompactionSummaryChunk),
    /// A new subagent, or a change to one. Unstable.
    SubagentUpdate(Box<SubagentUpdate>),
    /// A message from one session to another. Unstable.
    SessionMessage(Box<SessionMessage>),
    /// A chunk of a message from one session to another. Unstable.
    SessionMessageChunk(SessionMessageChunk),
    /// An update of an unknown type, as received.
    Unknown(RawObject),
}

impl Update {
    /// Returns the text of an agent message chunk, or `None` for other updates and content. Version 2 agents can also
    /// send full messages, which replace the chunks. The [`Thread`](crate::Thread) always contains the current text.
    #[must_use]
    pub fn message_text(&self) -> Option<&str> {
        self.message_content()?.as_text()
    }

    /// Returns the text of an agent thought chunk, or `None` for other updates and content.
    #[must_use]
    pub fn thought_text(&self) -> Option<&str> {
        match self {
            Self::AgentThoughtChunk(chunk) => chunk.content.as_text(),
            _ => None,
        }
    }

    /// Returns the content of an agent message chunk, or `None` for other updates.
    #[must_use]
    pub fn message_content(&self) -> Option<&ContentBlock> {
        match self {
            Self::AgentMessageChunk(chunk) => Some(&chunk.content),
            _ => None,
        }
    }
}

/// A chunk of a message or thought, and the id of that message.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MessageChunk {
    /// The message that the chunk belongs to. Version 1 agents can omit the id.
    pub message_id: Option<MessageId>,
    /// Whether the chunk is appended to the message with its id, wherever that message is in the thread, as in version 2. In version 1, the chunk belongs to the last message, unless that message has a different role or id.
    pub is_found_by_id: bool,
    /// The text or other content to append.
    pub content: ContentBlock,
    /// Custom data (`_meta`).
    pub meta: Option<Meta>,
}

impl MessageChunk {
    /// Creates a chunk that continues the last message.
    pub fn new(content: impl Into<ContentBlock>) -> Self {
        v1::ContentChunk::new(content).into()
    }

    /// Sets the id of the message that the chunk belongs to.
    #[must_use]
    pub fn message_id(mut self, id: impl Into<MessageId>) -> Self {
        self.message_id = Some(id.into());
        self
    }
}

/// A new tool call, or a change to one. A field that is `None` is unchanged, and `Some(None)` clears it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolCallPatch {
    /// The new or changed tool call.
    pub tool_call_id: ToolCallId,
    /// Whether the update creates the call, as `tool_call` does in version 1. Missing fields then have their defaults.
    /// If an earlier call with the same id has ended, the id now refers to the new call.
    pub is_new: bool,
    /// The programmatic name of the tool.
    pub name: Option<Option<String>>,
    /// The title to show to the user.
    pub title: Option<Option<String>>,
    /// The kind of tool, such as read or edit.
    pub kind: Option<Option<ToolKind>>,
    /// The status of the tool call.
    pub status: Option<Option<ToolCallStatus>>,
    /// The content that the tool call has produced so far. It replaces the previous content.
    pub content: Option<Option<Vec<ToolCallOutput>>>,
    /// The files that the tool call works on. They replace the previous list.
    pub locations: Option<Option<Vec<ToolCallLocation>>>,
    /// The tool's input. `null` clears the field.
    pub raw_input: Option<Value>,
    /// The tool's output. `null` clears the field.
    pub raw_output: Option<Value>,
    /// The operations that a client may perform on the tool call. Version 2.
    pub capabilities: Option<Option<ToolCallCapabilities>>,
    /// Custom data (`_meta`).
    pub meta: Option<Option<Meta>>,
}

impl ToolCallPatch {
    /// Creates an update that changes nothing.
    pub fn new(id: impl Into<ToolCallId>) -> Self {
        v2::ToolCallUpdate::new(id).into()
    }

    /// Merges a later update of the same call into this one.
    pub fn merge(&mut self, later: Self) {
        fn replace_if_some<T>(known: &mut Option<T>, later: Option<T>) {
            if later.is_some() {
                *known = later;
            }
        }
        replace_if_some(&mut self.name, later.name);
        replace_if_some(&mut self.title, later.title);
        replace_if_some(&mut self.kind, later.kind);
        replace_if_some(&mut self.status, later.status);
        replace_if_some(&mut self.content, later.content);
        replace_if_some(&mut self.locations, later.locations);
        replace_if_some(&mut self.raw_input, later.raw_input);
        replace_if_some(&mut self.raw_output, later.raw_output);
        replace_if_some(&mut self.capabilities, later.capabilities);
        replace_if_some(&mut self.meta, later.meta);
    }
}

/// A part of a tool call's content, as sent by the agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)]
pub enum ToolCallOutput {
    /// Text, an image or other content.
    Content(v1::Content),
    /// A change to one file, with its text before and after. Version 1.
    TextDiff(v1::Diff),
    /// Changes to files. Version 2.
    Diff(v2::Diff),
    /// A terminal whose output is shown live.
    Terminal(Terminal),
    /// Content of an unknown type, as received.
    Unknown(RawObject),
}
