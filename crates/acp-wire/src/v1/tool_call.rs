//! Tool calls. See the specification's page "Tool Calls".

use super::{ContentBlock, TerminalId};
use crate::RawObject;

string_id! {
    /// The id of a tool call, unique in its session.
    pub struct ToolCallId;
}

record! {
    /// A tool call, as the agent first reports it.
    pub struct ToolCall {
        /// The id of the new tool call, unique in its session.
        required tool_call_id: ToolCallId,
        /// The title to show to the user.
        tolerant title: String,
        /// The tool's programmatic name. Added after the schema of August 2026.
        optional name: String,
        /// The kind of tool, such as read or edit.
        defaulted kind: ToolKind,
        /// The status of the tool call.
        defaulted status: ToolCallStatus,
        /// The content that the tool call has produced so far.
        list content: ToolCallContent,
        /// The files that the tool call works on.
        list locations: ToolCallLocation,
        /// The tool's input, as arbitrary JSON.
        any raw_input,
        /// The tool's output, as arbitrary JSON.
        any raw_output,
    }
}

record! {
    /// A change to a tool call. An absent field is unchanged, and a list replaces the previous one.
    pub struct ToolCallUpdate {
        /// The tool call that has changed.
        required tool_call_id: ToolCallId,
        /// The kind of tool, such as read or edit.
        optional kind: ToolKind,
        /// The status of the tool call.
        optional status: ToolCallStatus,
        /// The title to show to the user.
        optional title: String,
        /// The tool's programmatic name. Added after the schema of August 2026.
        optional name: String,
        /// The content that the tool call has produced so far. It replaces the previous content.
        optional_list content: ToolCallContent,
        /// The files that the tool call works on. They replace the previous list.
        optional_list locations: ToolCallLocation,
        /// The tool's input, as arbitrary JSON.
        any raw_input,
        /// The tool's output, as arbitrary JSON.
        any raw_output,
    }
}

open_enum! {
    /// The kind of a tool. Clients use it to choose how to display its calls.
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
        /// Searches for data.
        Search = "search",
        /// Runs commands or code.
        Execute = "execute",
        /// Thinks or plans.
        Think = "think",
        /// Fetches external data.
        Fetch = "fetch",
        /// Switches the session's mode.
        SwitchMode = "switch_mode",
        /// Does anything else.
        #[default]
        Other = "other",
    }
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
    }
}

tagged! {
    /// A part of a tool call's content: a content block, a change to a file, or a terminal.
    pub enum ToolCallContent by "type" {
        /// Text, an image or other content.
        Content(Content) = "content",
        /// A change to a file.
        Diff(Diff) = "diff",
        /// A terminal whose output is shown live.
        Terminal(Terminal) = "terminal",
    }
    fallback = read_bare_content_block;
}

/// Reads a bare content block without its `content` wrapper, as shown on one page of the specification.
fn read_bare_content_block(tag: &str, object: &RawObject) -> Option<ToolCallContent> {
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
        /// The text, image or other content to show.
        required content: ContentBlock,
    }
}

record! {
    /// A change to one file, with the full text before and after.
    pub struct Diff {
        /// The absolute path of the file.
        required path: String,
        /// The text after the change.
        required new_text: String,
        /// The text before the change. Absent for a new file.
        optional old_text: String,
    }
}

record! {
    /// A reference to a terminal that is shown in a tool call.
    pub struct Terminal {
        /// The terminal to show.
        required terminal_id: TerminalId,
    }
}

record! {
    /// A position in a file. Editors can use it to follow the agent's work.
    pub struct ToolCallLocation {
        /// The absolute path of the file.
        required path: String,
        /// The line number, counting from 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_positive))]
        optional line: u32,
    }
}
