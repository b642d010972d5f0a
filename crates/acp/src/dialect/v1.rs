//! Converts session updates from and to version 1.

use acp_wire::v1::{
    AvailableCommand, AvailableCommandsUpdate, ContentChunk, Plan, PlanEntry, PlanItems,
    PlanUpdate, PlanUpdateContent, SessionInfoUpdate, SessionUpdate, ToolCall, ToolCallContent,
    ToolCallStatus, ToolCallUpdate, ToolKind, UnstructuredCommandInput, UsageUpdate,
};
use acp_wire::{RawObject, v2};

use crate::thread::ONLY_PLAN_ID;
use crate::update::{self, MessageChunk, Update};

impl From<SessionUpdate> for Update {
    fn from(update: SessionUpdate) -> Self {
        match update {
            SessionUpdate::UserMessageChunk(chunk) => Self::UserMessageChunk(chunk.into()),
            SessionUpdate::AgentMessageChunk(chunk) => Self::AgentMessageChunk(chunk.into()),
            SessionUpdate::AgentThoughtChunk(chunk) => Self::AgentThoughtChunk(chunk.into()),
            SessionUpdate::ToolCall(call) => Self::ToolCallUpdate(Box::new((*call).into())),
            SessionUpdate::ToolCallUpdate(update) => {
                Self::ToolCallUpdate(Box::new((*update).into()))
            }
            SessionUpdate::Plan(plan) => {
                let items = PlanItems::new(ONLY_PLAN_ID, plan.entries);
                let mut new = v2::PlanUpdate::new(plan_from_v1(PlanUpdateContent::Items(items)));
                new.meta = plan.meta;
                Self::PlanUpdate(new)
            }
            SessionUpdate::PlanUpdate(update) => {
                let mut new = v2::PlanUpdate::new(plan_from_v1(update.plan));
                new.meta = update.meta;
                Self::PlanUpdate(new)
            }
            SessionUpdate::PlanRemoved(removed) => Self::PlanRemoved(removed),
            SessionUpdate::AvailableCommandsUpdate(update) => {
                let commands = update.available_commands.into_iter().map(command_from_v1);
                let mut new = v2::AvailableCommandsUpdate::new(commands.collect::<Vec<_>>());
                new.meta = update.meta;
                Self::AvailableCommandsUpdate(new)
            }
            SessionUpdate::CurrentModeUpdate(update) => Self::CurrentModeUpdate(update),
            SessionUpdate::ConfigOptionUpdate(update) => Self::ConfigOptionUpdate(update),
            SessionUpdate::SessionInfoUpdate(update) => {
                let mut new = v2::SessionInfoUpdate::new();
                (new.title, new.updated_at) = (update.title, update.updated_at);
                new.meta = update.meta.map(Some);
                Self::SessionInfoUpdate(new.into())
            }
            SessionUpdate::UsageUpdate(update) => {
                let mut new = v2::UsageUpdate::new(update.used, update.size);
                new.cost = update.cost.map(Some);
                new.meta = update.meta;
                Self::UsageUpdate(new.into())
            }
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
    /// Converts the update to version 1. Returns `None` if version 1 cannot express all of it.
    #[must_use]
    pub fn into_v1(self) -> Option<SessionUpdate> {
        Some(match self {
            Self::UserMessageChunk(chunk) => SessionUpdate::UserMessageChunk(chunk.into()),
            Self::AgentMessageChunk(chunk) => SessionUpdate::AgentMessageChunk(chunk.into()),
            Self::AgentThoughtChunk(chunk) => SessionUpdate::AgentThoughtChunk(chunk.into()),
            Self::ToolCallUpdate(update) if update.is_new => {
                SessionUpdate::ToolCall(Box::new(tool_call_to_v1(update.into_v1()?)))
            }
            Self::ToolCallUpdate(update) => {
                SessionUpdate::ToolCallUpdate(Box::new(update.into_v1()?))
            }
            Self::PlanUpdate(update) => match plan_to_v1(update.plan)? {
                PlanUpdateContent::Items(items) if items.plan_id.as_str() == ONLY_PLAN_ID => {
                    let mut plan = Plan::new(items.entries);
                    plan.meta = update.meta;
                    SessionUpdate::Plan(plan)
                }
                plan => {
                    let mut new = PlanUpdate::new(plan);
                    new.meta = update.meta;
                    SessionUpdate::PlanUpdate(new)
                }
            },
            Self::PlanRemoved(removed) => SessionUpdate::PlanRemoved(removed),
            Self::AvailableCommandsUpdate(update) => {
                let commands = update.available_commands.into_iter().map(command_to_v1);
                let commands = commands.collect::<Option<Vec<_>>>()?;
                let mut new = AvailableCommandsUpdate::new(commands);
                new.meta = update.meta;
                SessionUpdate::AvailableCommandsUpdate(new)
            }
            Self::CurrentModeUpdate(update) => SessionUpdate::CurrentModeUpdate(update),
            Self::ConfigOptionUpdate(update) => SessionUpdate::ConfigOptionUpdate(update),
            Self::SessionInfoUpdate(update) => {
                let mut new = SessionInfoUpdate::new();
                (new.title, new.updated_at) = (update.title, update.updated_at);
                new.meta = unless_cleared(update.meta)?;
                SessionUpdate::SessionInfoUpdate(new.into())
            }
            Self::UsageUpdate(update) => {
                let mut new = UsageUpdate::new(update.used, update.size);
                new.cost = unless_cleared(update.cost)?;
                new.meta = update.meta;
                SessionUpdate::UsageUpdate(new.into())
            }
            Self::Notice(notice) => SessionUpdate::Notice(notice),
            Self::CompactionUpdate(update) => SessionUpdate::CompactionUpdate(update),
            Self::CompactionSummaryChunk(chunk) => SessionUpdate::CompactionSummaryChunk(chunk),
            Self::SubagentUpdate(update) => SessionUpdate::SubagentUpdate(update),
            Self::SessionMessage(message) => SessionUpdate::SessionMessage(message),
            Self::SessionMessageChunk(chunk) => SessionUpdate::SessionMessageChunk(chunk),
            Self::Unknown(object) => SessionUpdate::Unknown(object),
            Self::UserMessage(_)
            | Self::AgentMessage(_)
            | Self::AgentThought(_)
            | Self::StateUpdate(_)
            | Self::ToolCallContentChunk(_)
            | Self::TerminalUpdate(_)
            | Self::TerminalOutputChunk(_) => return None,
        })
    }
}

/// Converts a field that version 1 can set but not clear. Returns `None` if the update clears it.
fn unless_cleared<T>(field: Option<Option<T>>) -> Option<Option<T>> {
    match field {
        None => Some(None),
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
    }
}

impl From<ContentChunk> for MessageChunk {
    fn from(chunk: ContentChunk) -> Self {
        Self {
            message_id: chunk.message_id,
            is_found_by_id: false,
            content: chunk.content,
            meta: chunk.meta,
        }
    }
}

impl From<MessageChunk> for ContentChunk {
    fn from(chunk: MessageChunk) -> Self {
        let mut new = Self::new(chunk.content);
        (new.message_id, new.meta) = (chunk.message_id, chunk.meta);
        new
    }
}

impl From<ToolCall> for update::ToolCallPatch {
    fn from(call: ToolCall) -> Self {
        let mut new = Self::new(call.tool_call_id);
        new.is_new = true;
        new.name = call.name.map(Some);
        // Default values are omitted: a new call starts with them.
        new.title = (!call.title.is_empty()).then_some(Some(call.title));
        new.kind = (call.kind != ToolKind::default()).then_some(Some(call.kind));
        new.status =
            (call.status != ToolCallStatus::default()).then(|| Some(call.status.as_str().into()));
        new.content = (!call.content.is_empty()).then(|| Some(content_from_v1(call.content)));
        new.locations = (!call.locations.is_empty()).then_some(Some(call.locations));
        new.raw_input = call.raw_input;
        new.raw_output = call.raw_output;
        new.meta = call.meta.map(Some);
        new
    }
}

/// Converts a tool call's first update to a `tool_call`.
fn tool_call_to_v1(update: ToolCallUpdate) -> ToolCall {
    let mut new = ToolCall::new(update.tool_call_id, update.title.unwrap_or_default());
    new.name = update.name;
    new.kind = update.kind.unwrap_or_default();
    new.status = update.status.unwrap_or_default();
    new.content = update.content.unwrap_or_default();
    new.locations = update.locations.unwrap_or_default();
    new.raw_input = update.raw_input;
    new.raw_output = update.raw_output;
    new.meta = update.meta;
    new
}

impl From<ToolCallUpdate> for update::ToolCallPatch {
    fn from(update: ToolCallUpdate) -> Self {
        let mut new = Self::new(update.tool_call_id);
        new.name = update.name.map(Some);
        new.title = update.title.map(Some);
        new.kind = update.kind.map(Some);
        new.status = update.status.map(|status| Some(status.as_str().into()));
        new.content = update.content.map(|content| Some(content_from_v1(content)));
        new.locations = update.locations.map(Some);
        new.raw_input = update.raw_input;
        new.raw_output = update.raw_output;
        new.meta = update.meta.map(Some);
        new
    }
}

impl update::ToolCallPatch {
    /// Converts the update to version 1. Returns `None` if version 1 cannot express all of it.
    fn into_v1(self) -> Option<ToolCallUpdate> {
        if self.capabilities.is_some() {
            return None;
        }
        let mut new = ToolCallUpdate::new(self.tool_call_id);
        new.name = unless_cleared(self.name)?;
        new.title = unless_cleared(self.title)?;
        new.kind = unless_cleared(self.kind)?;
        new.status = unless_cleared(self.status)?.map(|status| status.as_str().into());
        // An empty list also clears the field.
        new.content = match self.content {
            Some(content) => Some(content_to_v1(content.unwrap_or_default())?),
            None => None,
        };
        new.locations = self.locations.map(Option::unwrap_or_default);
        new.raw_input = self.raw_input;
        new.raw_output = self.raw_output;
        new.meta = unless_cleared(self.meta)?;
        Some(new)
    }
}

impl From<ToolCallContent> for update::ToolCallOutput {
    fn from(content: ToolCallContent) -> Self {
        match content {
            ToolCallContent::Content(content) => Self::Content(content),
            ToolCallContent::Diff(diff) => Self::TextDiff(diff),
            ToolCallContent::Terminal(terminal) => Self::Terminal(terminal),
            ToolCallContent::Unknown(object) => Self::Unknown(object),
            // All known types are matched above.
            _ => Self::Unknown(RawObject::default()),
        }
    }
}

/// Converts a tool call's content from version 1.
fn content_from_v1(content: Vec<ToolCallContent>) -> Vec<update::ToolCallOutput> {
    content.into_iter().map(Into::into).collect()
}

/// Converts a tool call's content to version 1. Returns `None` if it includes a version 2 diff.
fn content_to_v1(content: Vec<update::ToolCallOutput>) -> Option<Vec<ToolCallContent>> {
    use update::ToolCallOutput as Content;
    let one = |content| {
        Some(match content {
            Content::Content(content) => ToolCallContent::Content(content),
            Content::TextDiff(diff) => ToolCallContent::Diff(diff),
            Content::Terminal(terminal) => ToolCallContent::Terminal(terminal),
            Content::Unknown(object) => ToolCallContent::Unknown(object),
            Content::Diff(_) => return None,
        })
    };
    content.into_iter().map(one).collect()
}

/// Converts a slash command from version 1.
fn command_from_v1(command: AvailableCommand) -> v2::AvailableCommand {
    let mut new = v2::Command::new(command.name, command.description);
    new.input = command.input.map(|input| {
        let mut text = v2::TextCommandInput::new(input.hint);
        text.meta = input.meta;
        v2::AvailableCommandInput::Text(text)
    });
    new.meta = command.meta;
    v2::AvailableCommand::Command(new)
}

/// Converts a slash command to version 1. Returns `None` if version 1 cannot express it.
fn command_to_v1(command: v2::AvailableCommand) -> Option<AvailableCommand> {
    let v2::AvailableCommand::Command(command) = command else {
        return None;
    };
    let mut new = AvailableCommand::new(command.name, command.description);
    new.input = match command.input {
        Some(v2::AvailableCommandInput::Text(text)) => {
            let mut input = UnstructuredCommandInput::new(text.hint);
            input.meta = text.meta;
            Some(input)
        }
        Some(_) => return None,
        None => None,
    };
    new.meta = command.meta;
    Some(new)
}

/// Converts a plan from version 1.
fn plan_from_v1(plan: PlanUpdateContent) -> v2::PlanUpdateContent {
    match plan {
        PlanUpdateContent::Items(items) => {
            let entry = |entry: PlanEntry| {
                let status = v2::PlanEntryStatus::from(entry.status.as_str());
                let mut new = v2::PlanEntry::new(entry.content, entry.priority, status);
                new.meta = entry.meta;
                new
            };
            let entries: Vec<_> = items.entries.into_iter().map(entry).collect();
            let mut new = v2::PlanItems::new(items.plan_id, entries);
            new.meta = items.meta;
            v2::PlanUpdateContent::Items(new)
        }
        PlanUpdateContent::File(plan) => v2::PlanUpdateContent::File(plan),
        PlanUpdateContent::Markdown(plan) => v2::PlanUpdateContent::Markdown(plan),
        PlanUpdateContent::Unknown(object) => v2::PlanUpdateContent::Unknown(object),
        // All known types are matched above.
        _ => v2::PlanUpdateContent::Unknown(RawObject::default()),
    }
}

/// Converts a plan to version 1. Returns `None` if version 1 cannot express it.
fn plan_to_v1(plan: v2::PlanUpdateContent) -> Option<PlanUpdateContent> {
    Some(match plan {
        v2::PlanUpdateContent::Items(items) => {
            let entry = |entry: v2::PlanEntry| {
                let status = entry.status.as_str();
                let mut new = PlanEntry::new(entry.content, entry.priority, status);
                new.meta = entry.meta;
                new
            };
            let entries: Vec<_> = items.entries.into_iter().map(entry).collect();
            let mut new = PlanItems::new(items.plan_id, entries);
            new.meta = items.meta;
            PlanUpdateContent::Items(new)
        }
        v2::PlanUpdateContent::File(plan) => PlanUpdateContent::File(plan),
        v2::PlanUpdateContent::Markdown(plan) => PlanUpdateContent::Markdown(plan),
        v2::PlanUpdateContent::Unknown(object) => PlanUpdateContent::Unknown(object),
        _ => return None,
    })
}
