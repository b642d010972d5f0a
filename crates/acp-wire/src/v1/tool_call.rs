//! Tool calls: the specification's page "Tool Calls".

use super::{ContentBlock, TerminalId};
use crate::RawObject;

string_id! {
    /// The id of a tool call, unique in its session.
    pub struct ToolCallId;
}

record! {
    /// A new tool call.
    pub struct ToolCall {
        /// The id of the tool call.
        required tool_call_id: ToolCallId,
        /// The title to show to the user.
        tolerant title: String,
        /// The tool's name, for programs. Newer than the schema of August 2026.
        optional name: String,
        /// The kind of tool.
        defaulted kind: ToolKind,
        /// The status.
        defaulted status: ToolCallStatus,
        /// The content that the tool call has produced.
        list content: ToolCallContent,
        /// The files that it works on.
        list locations: ToolCallLocation,
        /// The input of the tool.
        any raw_input,
        /// The output of the tool.
        any raw_output,
    }
}

record! {
    /// A change of a tool call. Absent fields are unchanged; lists are replaced.
    pub struct ToolCallUpdate {
        /// The id of the tool call.
        required tool_call_id: ToolCallId,
        /// The kind of tool.
        optional kind: ToolKind,
        /// The status.
        optional status: ToolCallStatus,
        /// The title to show to the user.
        optional title: String,
        /// The tool's name, for programs. Newer than the schema of August 2026.
        optional name: String,
        /// All content that the tool call has produced.
        optional_list content: ToolCallContent,
        /// All files that it works on.
        optional_list locations: ToolCallLocation,
        /// The input of the tool.
        any raw_input,
        /// The output of the tool.
        any raw_output,
    }
}

open_enum! {
    /// The kind of a tool: a hint about how to show the tool call.
    #[derive(Default)]
    pub enum ToolKind {
        /// Reads files or other data.
        Read = "read",
        /// Changes files or other content.
        Edit = "edit",
        /// Deletes files or other data.
        Delete = "delete",
        /// Moves or renames files.
        Move = "move",
        /// Searches for something.
        Search = "search",
        /// Runs commands or code.
        Execute = "execute",
        /// Thinks or plans.
        Think = "think",
        /// Fetches external data.
        Fetch = "fetch",
        /// Switches the session's mode.
        SwitchMode = "switch_mode",
        /// Anything else.
        #[default]
        Other = "other",
    }
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
    }
}

tagged! {
    /// A piece of a tool call's content.
    pub enum ToolCallContent by "type" {
        /// A content block.
        Content(Content) = "content",
        /// A change of a file.
        Diff(Diff) = "diff",
        /// A terminal, shown live.
        Terminal(Terminal) = "terminal",
    }
    fallback = bare_content_block;
}

/// Reads a bare content block, which one page of the specification has in place of a tool call's content.
fn bare_content_block(tag: &str, object: &RawObject) -> Option<ToolCallContent> {
    ContentBlock::TAGS
        .contains(&tag)
        .then(|| object.read().ok())?
        .map(|block: ContentBlock| ToolCallContent::Content(Content::new(block)))
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

record! {
    /// A content block in a tool call.
    pub struct Content {
        /// The content block.
        required content: ContentBlock,
    }
}

record! {
    /// A change of a file.
    pub struct Diff {
        /// The file, as an absolute path.
        required path: String,
        /// The text after the change.
        required new_text: String,
        /// The text before the change. Absent for a new file.
        optional old_text: String,
    }
}

record! {
    /// A terminal shown in a tool call.
    pub struct Terminal {
        /// The id of the terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// A location in a file, which lets an editor follow along.
    pub struct ToolCallLocation {
        /// The file, as an absolute path.
        required path: String,
        /// The line, counting from 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_positive))]
        optional line: u32,
    }
}
