//! Updates, from version 1 to version 2.

use acp_wire::v1::{self, MessageId, SessionUpdate};
use acp_wire::v2;

use super::{options_to_v2, tool_call_to_v2, tool_call_update_to_v2};
use crate::thread::PLAN;

/// An update in the words of version 2. A chunk without an id is part of `message`. `None` for what
/// version 2 has no words for because it has no need of it: the mode is a config option there.
pub(crate) fn update_to_v2(
    update: SessionUpdate,
    message: impl FnOnce() -> MessageId,
) -> Option<v2::SessionUpdate> {
    use v2::SessionUpdate as New;
    let chunk = |chunk: v1::ContentChunk| {
        let id = chunk.message_id.unwrap_or_else(message);
        let mut new = v2::ContentChunk::new(id, chunk.content);
        new.meta = chunk.meta;
        new
    };
    Some(match update {
        SessionUpdate::UserMessageChunk(c) => New::UserMessageChunk(chunk(c)),
        SessionUpdate::AgentMessageChunk(c) => New::AgentMessageChunk(chunk(c)),
        SessionUpdate::AgentThoughtChunk(c) => New::AgentThoughtChunk(chunk(c)),
        SessionUpdate::ToolCall(call) => New::ToolCallUpdate(tool_call_to_v2(*call).into()),
        SessionUpdate::ToolCallUpdate(update) => {
            New::ToolCallUpdate(tool_call_update_to_v2(*update).into())
        }
        SessionUpdate::Plan(plan) => {
            let items = v1::PlanItems::new(PLAN, plan.entries);
            let mut new = v2::PlanUpdate::new(plan_to_v2(v1::PlanUpdateContent::Items(items))?);
            new.meta = plan.meta;
            New::PlanUpdate(new)
        }
        SessionUpdate::PlanUpdate(update) => {
            let mut new = v2::PlanUpdate::new(plan_to_v2(update.plan)?);
            new.meta = update.meta;
            New::PlanUpdate(new)
        }
        SessionUpdate::PlanRemoved(removed) => New::PlanRemoved(removed),
        SessionUpdate::AvailableCommandsUpdate(update) => {
            let commands = commands_to_v2(update.available_commands);
            let mut new = v2::AvailableCommandsUpdate::new(commands);
            new.meta = update.meta;
            New::AvailableCommandsUpdate(new)
        }
        SessionUpdate::ConfigOptionUpdate(update) => {
            let mut new = v2::ConfigOptionUpdate::new(options_to_v2(update.config_options));
            new.meta = update.meta;
            New::ConfigOptionUpdate(new)
        }
        SessionUpdate::SessionInfoUpdate(update) => {
            let mut new = v2::SessionInfoUpdate::new();
            (new.title, new.updated_at) = (update.title, update.updated_at);
            new.meta = update.meta.map(Some);
            New::SessionInfoUpdate(new.into())
        }
        SessionUpdate::UsageUpdate(update) => {
            let mut new = v2::UsageUpdate::new(update.used, update.size);
            new.cost = update.cost.map(Some);
            new.meta = update.meta;
            New::UsageUpdate(new.into())
        }
        SessionUpdate::Notice(notice) => New::Notice(notice),
        SessionUpdate::CompactionUpdate(update) => New::CompactionUpdate(update),
        SessionUpdate::CompactionSummaryChunk(chunk) => New::CompactionSummaryChunk(chunk),
        SessionUpdate::Unknown(object) => New::Unknown(object),
        _ => return None,
    })
}

/// Slash commands of version 2.
fn commands_to_v2(commands: Vec<v1::AvailableCommand>) -> Vec<v2::AvailableCommand> {
    let one = |command: v1::AvailableCommand| {
        let mut new = v2::Command::new(command.name, command.description);
        new.input = command.input.map(|input| {
            let mut text = v2::TextCommandInput::new(input.hint);
            text.meta = input.meta;
            v2::AvailableCommandInput::Text(text)
        });
        new.meta = command.meta;
        v2::AvailableCommand::Command(new)
    };
    commands.into_iter().map(one).collect()
}

/// A plan of version 2.
fn plan_to_v2(plan: v1::PlanUpdateContent) -> Option<v2::PlanUpdateContent> {
    Some(match plan {
        v1::PlanUpdateContent::Items(items) => {
            let entry = |entry: v1::PlanEntry| {
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
        v1::PlanUpdateContent::File(plan) => v2::PlanUpdateContent::File(plan),
        v1::PlanUpdateContent::Markdown(plan) => v2::PlanUpdateContent::Markdown(plan),
        v1::PlanUpdateContent::Unknown(object) => v2::PlanUpdateContent::Unknown(object),
        _ => return None,
    })
}
