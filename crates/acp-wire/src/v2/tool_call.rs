//! Tool calls. See the specification's page "Tool Calls".

use super::{
    Content, ContentBlock, Diff, SessionId, Terminal, TerminalId, ToolCallId, ToolCallLocation,
    ToolKind,
};

record! {
    /// A new tool call, or a change to one. Absent fields are unchanged, and `null` clears a field.
    pub patch ToolCallUpdate {
        /// The new or changed tool call.
        required tool_call_id: ToolCallId,
        /// The tool's programmatic name. Not in the draft of August 2026.
        clearable name: String,
        /// The title to show to the user.
        clearable title: String,
        /// The kind of tool, such as read or edit.
        clearable kind: ToolKind,
        /// The status of the tool call.
        clearable status: ToolCallStatus,
        /// The content that the tool call has produced so far. It replaces the previous content.
        clearable_list content: ToolCallContent,
        /// The files that the tool call works on. They replace the previous list.
        clearable_list locations: ToolCallLocation,
        /// The tool's input, as arbitrary JSON.
        clearable_any raw_input,
        /// The tool's output, as arbitrary JSON.
        clearable_any raw_output,
        /// The operations that the client may perform on the tool call. Not in the draft of August 2026.
        clearable capabilities: ToolCallCapabilities,
    }
}

record! {
    /// A chunk to append to a tool call's content.
    pub struct ToolCallContentChunk {
        /// The tool call to append to.
        required tool_call_id: ToolCallId,
        /// The part to append: a content block, a diff or a terminal.
        required content: ToolCallContent,
    }
}

record! {
    /// The operations that a client may perform on a tool call.
    pub struct ToolCallCapabilities {
        /// Support for `tool_call/cancel`.
        optional cancel: ToolCallCancelCapabilities,
    }
}

record! {
    /// An empty object that declares support for cancelling a tool call.
    pub struct ToolCallCancelCapabilities {}
}

record! {
    /// The `tool_call/cancel` request: cancels a tool call that has `capabilities.cancel`. Not in the draft of August
    /// 2026.
    pub struct CancelToolCallRequest {
        /// The session that the tool call belongs to.
        required session_id: SessionId,
        /// The tool call to cancel.
        required tool_call_id: ToolCallId,
    }
}

record! {
    /// The response to `tool_call/cancel`, which confirms only that the agent will cancel the tool call. An update
    /// reports when the call has ended.
    pub struct CancelToolCallResponse {}
}

open_enum! {
    /// The status of a tool call.
    #[derive(Default)]
    pub enum ToolCallStatus {
        /// The tool has not started, because its input is still arriving or it needs permission.
        #[default]
        Pending = "pending",
        /// The tool is running.
        InProgress = "in_progress",
        /// The tool call finished successfully.
        Completed = "completed",
        /// The tool call failed with an error.
        Failed = "failed",
        /// The tool call was cancelled before it finished.
        Cancelled = "cancelled",
        /// The tool call is paused and may continue later. Not in the draft of August 2026.
        Paused = "paused",
    }
}

tagged! {
    /// A part of a tool call's content: a content block, changes to files, or a terminal.
    pub enum ToolCallContent by "type" {
        /// Text, an image or other content.
        Content(Content) = "content",
        /// Changes to files.
        Diff(Diff) = "diff",
        /// A display terminal, whose output is shown live.
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
