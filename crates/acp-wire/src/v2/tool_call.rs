//! Tool calls: the specification's page of that name.

use super::{
    Content, ContentBlock, Diff, SessionId, Terminal, TerminalId, ToolCallId, ToolCallLocation,
    ToolKind,
};

record! {
    /// A tool call as it is now, new or known. What is absent stays as it is; `null` clears.
    pub patch ToolCallUpdate {
        /// Its id.
        required tool_call_id: ToolCallId,
        /// The tool's name, for programs. Not in the draft of August 2026.
        clearable name: String,
        /// A description for the user.
        clearable title: String,
        /// The kind of tool.
        clearable kind: ToolKind,
        /// The status.
        clearable status: ToolCallStatus,
        /// What it has produced, all of it.
        clearable_list content: ToolCallContent,
        /// The files it works on, all of them.
        clearable_list locations: ToolCallLocation,
        /// The input of the tool.
        clearable_any raw_input,
        /// The output of the tool.
        clearable_any raw_output,
        /// What a client may do with it. Not in the draft of August 2026.
        clearable capabilities: ToolCallCapabilities,
    }
}

record! {
    /// A piece of what a tool call has produced, at the end of its content.
    pub struct ToolCallContentChunk {
        /// The tool call.
        required tool_call_id: ToolCallId,
        /// The content of the chunk.
        required content: ToolCallContent,
    }
}

record! {
    /// What a client may do with a tool call.
    pub struct ToolCallCapabilities {
        /// `tool_call/cancel`.
        optional cancel: ToolCallCancelCapabilities,
    }
}

record! {
    /// Present when the client may cancel the call.
    pub struct ToolCallCancelCapabilities {}
}

record! {
    /// `tool_call/cancel`: for a tool call that has `capabilities.cancel`. Not in the draft of August
    /// 2026.
    pub struct CancelToolCallRequest {
        /// The session.
        required session_id: SessionId,
        /// The tool call.
        required tool_call_id: ToolCallId,
    }
}

record! {
    /// The answer to `tool_call/cancel`: the agent will cancel it. That it has is told by an update.
    pub struct CancelToolCallResponse {}
}

open_enum! {
    /// How far a tool call is.
    #[derive(Default)]
    pub enum ToolCallStatus {
        /// Not begun: its input still streams, or it waits for permission.
        #[default]
        Pending = "pending",
        /// In progress.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Failed.
        Failed = "failed",
        /// Cancelled before its end.
        Cancelled = "cancelled",
        /// Stopped, to be taken up again. Not in the draft of August 2026.
        Paused = "paused",
    }
}

tagged! {
    /// What a tool call has produced.
    pub enum ToolCallContent by "type" {
        /// A content block.
        Content(Content) = "content",
        /// Changes of files.
        Diff(Diff) = "diff",
        /// A terminal of the agent's, shown live.
        Terminal(Terminal) = "terminal",
    }
}

impl From<ContentBlock> for ToolCallContent {
    fn from(block: ContentBlock) -> Self {
        Self::Content(Content::new(block))
    }
}

impl From<Diff> for ToolCallContent {
    fn from(diff: Diff) -> Self {
        Self::Diff(diff)
    }
}

impl From<TerminalId> for ToolCallContent {
    fn from(id: TerminalId) -> Self {
        Self::Terminal(Terminal::new(id))
    }
}
