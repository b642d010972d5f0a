//! Converts session updates from and to version 2.

use acp_wire::v2::{
    ConfigOptionUpdate, ContentChunk, Diff, DiffChange, DiffFileType, DiffPatch, DiffPatchFormat,
    DiffPathChange, SessionUpdate, ToolCallContent, ToolCallUpdate,
};
use acp_wire::{RawObject, v1};

use super::{format_git_patch, options_from_v2, options_to_v2};
use crate::update::{self, MessageChunk, Update};

impl From<SessionUpdate> for Update {
    fn from(update: SessionUpdate) -> Self {
        match update {
            SessionUpdate::UserMessageChunk(chunk) => Self::UserMessageChunk(chunk.into()),
            SessionUpdate::UserMessage(message) => Self::UserMessage(message),
            SessionUpdate::AgentMessageChunk(chunk) => Self::AgentMessageChunk(chunk.into()),
            SessionUpdate::AgentMessage(message) => Self::AgentMessage(message),
            SessionUpdate::AgentThoughtChunk(chunk) => Self::AgentThoughtChunk(chunk.into()),
            SessionUpdate::AgentThought(message) => Self::AgentThought(message),
            SessionUpdate::StateUpdate(state) => Self::StateUpdate(state),
            SessionUpdate::ToolCallContentChunk(chunk) => Self::ToolCallContentChunk(chunk),
            SessionUpdate::ToolCallUpdate(update) => {
                Self::ToolCallUpdate(Box::new((*update).into()))
            }
            SessionUpdate::TerminalUpdate(update) => Self::TerminalUpdate(update),
            SessionUpdate::TerminalOutputChunk(chunk) => Self::TerminalOutputChunk(chunk),
            SessionUpdate::PlanUpdate(update) => Self::PlanUpdate(update),
            SessionUpdate::PlanRemoved(removed) => Self::PlanRemoved(removed),
            SessionUpdate::AvailableCommandsUpdate(update) => Self::AvailableCommandsUpdate(update),
            SessionUpdate::ConfigOptionUpdate(update) => {
                let options = options_from_v2(update.config_options);
                let mut new = v1::ConfigOptionUpdate::new(options);
                new.meta = update.meta;
                Self::ConfigOptionUpdate(new)
            }
            SessionUpdate::SessionInfoUpdate(update) => Self::SessionInfoUpdate(update),
            SessionUpdate::UsageUpdate(update) => Self::UsageUpdate(update),
            SessionUpdate::Notice(notice) => Self::Notice(notice),
            SessionUpdate::CompactionUpdate(update) => Self::CompactionUpdate(update),
            SessionUpdate::CompactionSummaryChunk(chunk) => Self::CompactionSummaryChunk(chunk),
            SessionUpdate::SubagentUpdate(update) => Self::SubagentUpdate(update),
            SessionUpdate::SessionMessage(message) => Self::SessionMessage(message),
            SessionUpdate::SessionMessageChunk(chunk) => Self::SessionMessageChunk(chunk),
            SessionUpdate::Unknown(object) => Self::Unknown(object),
            // All known types are matched above.
            _ => Self::Unknown(RawObject::default()),
        }
    }
}

impl Update {
    /// Converts the update to version 2. Returns `None` for a chunk without a message id, and for a mode change,
    /// because version 2 represents the mode as a config option.
    #[must_use]
    pub fn into_v2(self) -> Option<SessionUpdate> {
        Some(match self {
            Self::UserMessageChunk(chunk) => SessionUpdate::UserMessageChunk(chunk.into_v2()?),
            Self::UserMessage(message) => SessionUpdate::UserMessage(message),
            Self::AgentMessageChunk(chunk) => SessionUpdate::AgentMessageChunk(chunk.into_v2()?),
            Self::AgentMessage(message) => SessionUpdate::AgentMessage(message),
            Self::AgentThoughtChunk(chunk) => SessionUpdate::AgentThoughtChunk(chunk.into_v2()?),
            Self::AgentThought(message) => SessionUpdate::AgentThought(message),
            Self::StateUpdate(state) => SessionUpdate::StateUpdate(state),
            Self::ToolCallContentChunk(chunk) => SessionUpdate::ToolCallContentChunk(chunk),
            Self::ToolCallUpdate(update) => {
                SessionUpdate::ToolCallUpdate(Box::new((*update).into()))
            }
            Self::TerminalUpdate(update) => SessionUpdate::TerminalUpdate(update),
            Self::TerminalOutputChunk(chunk) => SessionUpdate::TerminalOutputChunk(chunk),
            Self::PlanUpdate(update) => SessionUpdate::PlanUpdate(update),
            Self::PlanRemoved(removed) => SessionUpdate::PlanRemoved(removed),
            Self::AvailableCommandsUpdate(update) => SessionUpdate::AvailableCommandsUpdate(update),
            Self::CurrentModeUpdate(_) => return None,
            Self::ConfigOptionUpdate(update) => {
                let options = options_to_v2(update.config_options);
                let mut new = ConfigOptionUpdate::new(options);
                new.meta = update.meta;
                SessionUpdate::ConfigOptionUpdate(new)
            }
            Self::SessionInfoUpdate(update) => SessionUpdate::SessionInfoUpdate(update),
            Self::UsageUpdate(update) => SessionUpdate::UsageUpdate(update),
            Self::Notice(notice) => SessionUpdate::Notice(notice),
            Self::CompactionUpdate(update) => SessionUpdate::CompactionUpdate(update),
            Self::CompactionSummaryChunk(chunk) => SessionUpdate::CompactionSummaryChunk(chunk),
            Self::SubagentUpdate(update) => SessionUpdate::SubagentUpdate(update),
            Self::SessionMessage(message) => SessionUpdate::SessionMessage(message),
            Self::SessionMessageChunk(chunk) => SessionUpdate::SessionMessageChunk(chunk),
            Self::Unknown(object) => SessionUpdate::Unknown(object),
        })
    }
}

impl From<ContentChunk> for MessageChunk {
    fn from(chunk: ContentChunk) -> Self {
        Self {
            message_id: Some(chunk.message_id),
            is_found_by_id: true,
            content: chunk.content,
            meta: chunk.meta,
        }
    }
}

impl MessageChunk {
    /// Converts the chunk to version 2. Returns `None` if it has no message id.
    fn into_v2(self) -> Option<ContentChunk> {
        let mut new = ContentChunk::new(self.message_id?, self.content);
        new.meta = self.meta;
        Some(new)
    }
}

impl From<ToolCallUpdate> for update::ToolCallPatch {
    fn from(update: ToolCallUpdate) -> Self {
        let content = update.content;
        Self {
            tool_call_id: update.tool_call_id,
            is_new: false,
            name: update.name,
            title: update.title,
            kind: update.kind,
            status: update.status,
            content: content.map(|all| all.map(|all| all.into_iter().map(Into::into).collect())),
            locations: update.locations,
            raw_input: update.raw_input,
            raw_output: update.raw_output,
            capabilities: update.capabilities,
            meta: update.meta,
        }
    }
}

impl From<update::ToolCallPatch> for ToolCallUpdate {
    fn from(update: update::ToolCallPatch) -> Self {
        let content = update.content;
        let mut new = Self::new(update.tool_call_id);
        new.name = update.name;
        new.title = update.title;
        new.kind = update.kind;
        new.status = update.status;
        new.content = content.map(|all| all.map(|all| all.into_iter().map(Into::into).collect()));
        new.locations = update.locations;
        new.raw_input = update.raw_input;
        new.raw_output = update.raw_output;
        new.capabilities = update.capabilities;
        new.meta = update.meta;
        new
    }
}

impl From<ToolCallContent> for update::ToolCallOutput {
    fn from(content: ToolCallContent) -> Self {
        match content {
            ToolCallContent::Content(content) => Self::Content(content),
            ToolCallContent::Diff(diff) => Self::Diff(diff),
            ToolCallContent::Terminal(terminal) => Self::Terminal(terminal),
            ToolCallContent::Unknown(object) => Self::Unknown(object),
            // All known types are matched above.
            _ => Self::Unknown(RawObject::default()),
        }
    }
}

impl From<update::ToolCallOutput> for ToolCallContent {
    fn from(content: update::ToolCallOutput) -> Self {
        match content {
            update::ToolCallOutput::Content(content) => Self::Content(content),
            update::ToolCallOutput::TextDiff(diff) => Self::Diff(diff_to_v2(diff)),
            update::ToolCallOutput::Diff(diff) => Self::Diff(diff),
            update::ToolCallOutput::Terminal(terminal) => Self::Terminal(terminal),
            update::ToolCallOutput::Unknown(object) => Self::Unknown(object),
        }
    }
}

/// Converts a diff to version 2, where it consists of the kind of change and a patch.
fn diff_to_v2(diff: v1::Diff) -> Diff {
    let patch = format_git_patch(&diff).map(|text| DiffPatch::new(DiffPatchFormat::GitPatch, text));
    let change = DiffPathChange::new(diff.path).file_type(DiffFileType::Text);
    let change = if diff.old_text.is_some() {
        DiffChange::Modify(change)
    } else {
        DiffChange::Add(change)
    };
    let mut new = Diff::new(vec![change]);
    (new.patch, new.meta) = (patch, diff.meta);
    new
}
