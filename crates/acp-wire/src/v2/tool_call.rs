//! Tool calls. See the specification's page "Tool Calls".

use super::{
    Content, ContentBlock, Diff, SessionId, Terminal, TerminalId, ToolCallId, ToolCallLocation,
    ToolKind,
};

record! {
    /// A new tool call, or a change to one. Absent fields are unchanged, and `null` clears a field.
    pub patch ToolCallUpdate {
        /// The tool call that is new or has changed.
        required tool_call_id: ToolCallId,
        /// The tool's name, for programs. Not in the draft of August 2026.
        clearable name: String,
        /// The title to show to the user.
        clearable title: String,
        /// What the tool does, such as reading or editing.
        clearable kind: ToolKind,
        /// How far the tool call has got.
        clearable status: ToolCallStatus,
        /// The content that the tool call has produced so far, which replaces the previous content.
        clearable_list content: ToolCallContent,
        /// The files that the tool call works on, which replace the previous ones.
        clearable_list locations: ToolCallLocation,
        /// The input to the tool, in any JSON form.
        clearable_any raw_input,
        /// The output of the tool, in any JSON form.
        clearable_any raw_output,
        /// What a client may do with the tool call. Not in the draft of August 2026.
        clearable capabilities: ToolCallCapabilities,
    }
}

record! {
    /// A chunk that is appended to a tool call's content.
    pub struct ToolCallContentChunk {
        /// The tool call whose content the chunk is appended to.
        required tool_call_id: ToolCallId,
        /// The part to append: a content block, a diff or a terminal.
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
    /// An empty object that marks support for cancelling a tool call.
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
    /// The response to `tool_call/cancel`. It only confirms that the agent will cancel the tool call. An update reports
    /// the end.
    pub struct CancelToolCallResponse {}
}

open_enum! {
    /// How far a tool call has got.
    #[derive(Default)]
    pub enum ToolCallStatus {
        /// The tool has not started: its input is still arriving, or it needs permission first.
        #[default]
        Pending = "pending",
        /// The tool is running.
        InProgress = "in_progress",
        /// The tool finished its work.
        Completed = "completed",
        /// The tool call failed with an error.
        Failed = "failed",
        /// The tool call was cancelled before it finished.
        Cancelled = "cancelled",
        /// The tool call is paused, to be continued later. Not in the draft of August 2026.
        Paused = "paused",
    }
}

tagged! {
    /// A part of what a tool call shows: a content block, changes to files, or a terminal.
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
