//! Tool calls: the specification's page of that name.

use super::{ContentBlock, TerminalId};
use crate::RawObject;

string_id! {
    /// Names a tool call within its session.
    pub struct ToolCallId;
}

record! {
    /// A new tool call.
    pub struct ToolCall {
        /// Its id.
        required tool_call_id: ToolCallId,
        /// A description for the user.
        tolerant title: String,
        /// The tool's name, for programs. Newer than the schema of August 2026.
        optional name: String,
        /// The kind of tool.
        defaulted kind: ToolKind,
        /// The status.
        defaulted status: ToolCallStatus,
        /// What it has produced.
        list content: ToolCallContent,
        /// The files it works on.
        list locations: ToolCallLocation,
        /// The input of the tool.
        any raw_input,
        /// The output of the tool.
        any raw_output,
    }
}

record! {
    /// A change of a tool call. What is absent stays as it is; lists are replaced.
    pub struct ToolCallUpdate {
        /// Its id.
        required tool_call_id: ToolCallId,
        /// The kind of tool.
        optional kind: ToolKind,
        /// The status.
        optional status: ToolCallStatus,
        /// A description for the user.
        optional title: String,
        /// The tool's name, for programs. Newer than the schema of August 2026.
        optional name: String,
        /// What it has produced, all of it.
        optional_list content: ToolCallContent,
        /// The files it works on, all of them.
        optional_list locations: ToolCallLocation,
        /// The input of the tool.
        any raw_input,
        /// The output of the tool.
        any raw_output,
    }
}

open_enum! {
    /// What sort of thing a tool does; a hint for how to show it.
    #[derive(Default)]
    pub enum ToolKind {
        /// Reads.
        Read = "read",
        /// Changes files or other content.
        Edit = "edit",
        /// Removes.
        Delete = "delete",
        /// Moves or renames.
        Move = "move",
        /// Searches.
        Search = "search",
        /// Runs commands or code.
        Execute = "execute",
        /// Thinks or plans.
        Think = "think",
        /// Fetches from outside.
        Fetch = "fetch",
        /// Switches the session's mode.
        SwitchMode = "switch_mode",
        /// Anything else.
        #[default]
        Other = "other",
    }
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
    }
}

tagged! {
    /// What a tool call has produced.
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

/// One page of the specification puts a content block where a tool call's content is due.
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
    /// A content block that a tool call produced.
    pub struct Content {
        /// The block.
        required content: ContentBlock,
    }
}

record! {
    /// A change of a file.
    pub struct Diff {
        /// The file, an absolute path.
        required path: String,
        /// The text after the change.
        required new_text: String,
        /// The text before it; absent for a new file.
        optional old_text: String,
    }
}

record! {
    /// A terminal that a tool call shows.
    pub struct Terminal {
        /// The terminal.
        required terminal_id: TerminalId,
    }
}

record! {
    /// A place in a file, so that an editor can follow along.
    pub struct ToolCallLocation {
        /// The file, an absolute path.
        required path: String,
        /// The line, counted from 1.
        #[cfg_attr(feature = "arbitrary", arbitrary(with = crate::arbitrary::option_positive))]
        optional line: u32,
    }
}
