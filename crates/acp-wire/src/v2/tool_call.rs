//! Tool calls: the specification's page "Tool Calls".

use super::{
    Content, ContentBlock, Diff, SessionId, Terminal, TerminalId, ToolCallId, ToolCallLocation,
    ToolKind,
};

record! {
    /// A new tool call, or a change of one. Absent fields are unchanged; `null` clears a field.
    pub patch ToolCallUpdate {
        /// The id of the tool call.
        required tool_call_id: ToolCallId,
        /// The tool's name, for programs. Not in the draft of August 2026.
        clearable name: String,
        /// The title to show to the user.
        clearable title: String,
        /// The kind of tool.
        clearable kind: ToolKind,
        /// The status.
        clearable status: ToolCallStatus,
        /// All content that the tool call has produced.
        clearable_list content: ToolCallContent,
        /// All files that it works on.
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
    /// A chunk that is appended to a tool call's content.
    pub struct ToolCallContentChunk {
        /// The id of the tool call.
        required tool_call_id: ToolCallId,
        /// The content of the chunk.
        required content: ToolCallContent,
    }
}

record! {
    /// What a client may do with a tool call.
    pub struct ToolCallCapabilities {
        /// Support for `tool_call/cancel`.
        optional cancel: ToolCallCancelCapabilities,
    }
}

record! {
    /// An empty object that marks a tool call that the client may cancel.
    pub struct ToolCallCancelCapabilities {}
}

record! {
    /// The `tool_call/cancel` request, for a tool call with `capabilities.cancel`. Not in the draft of August 2026.
    pub struct CancelToolCallRequest {
        /// The id of the session.
        required session_id: SessionId,
        /// The id of the tool call.
        required tool_call_id: ToolCallId,
    }
}

record! {
    /// The response to `tool_call/cancel`: the agent will cancel the tool call. An update reports when it has.
    pub struct CancelToolCallResponse {}
}

open_enum! {
    /// The status of a tool call.
    #[derive(Default)]
    pub enum ToolCallStatus {
        /// Not started: its input is still being streamed, or it waits for permission.
        #[default]
        Pending = "pending",
        /// In progress.
        InProgress = "in_progress",
        /// Completed.
        Completed = "completed",
        /// Failed.
        Failed = "failed",
        /// Cancelled before it finished.
        Cancelled = "cancelled",
        /// Paused, to be continued later. Not in the draft of August 2026.
        Paused = "paused",
    }
}

tagged! {
    /// A piece of a tool call's content.
    pub enum ToolCallContent by "type" {
        /// A content block.
        Content(Content) = "content",
        /// Changes of files.
        Diff(Diff) = "diff",
        /// A display terminal, shown live.
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
