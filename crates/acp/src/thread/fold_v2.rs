//! How updates of version 2 change a thread.

use acp_wire::v1::{self, AvailableCommand, UnstructuredCommandInput};
use acp_wire::v2::{
    self, AvailableCommandInput, CompactionId, CompactionStatus, CompactionSummaryChunk,
    CompactionUpdate, ContentBlock, SessionUpdate, StateUpdate, TerminalUpdate,
};

use super::message::Speaker;
use super::weight::weight;
use super::{Activity, ItemKind, Thread};

/// The agent shortens the conversation for the model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Compaction {
    /// Its id.
    pub id: CompactionId,
    /// How far it is.
    pub status: CompactionStatus,
    /// What is left of the conversation, if the agent shows it.
    pub summary: Vec<ContentBlock>,
    /// Why it failed.
    pub error: Option<String>,
}

impl Thread {
    /// Folds an update of version 2.
    pub fn apply_v2(&mut self, update: &SessionUpdate) {
        self.revision += 1;
        match update {
            SessionUpdate::UserMessageChunk(chunk) => self.chunk_v2(chunk, Speaker::User),
            SessionUpdate::UserMessage(message) => self.whole_message(message, Speaker::User),
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk_v2(chunk, Speaker::Agent),
            SessionUpdate::AgentMessage(message) => self.whole_message(message, Speaker::Agent),
            SessionUpdate::AgentThoughtChunk(chunk) => self.chunk_v2(chunk, Speaker::Thought),
            SessionUpdate::AgentThought(message) => self.whole_message(message, Speaker::Thought),
            SessionUpdate::StateUpdate(state) => self.state(state),
            SessionUpdate::ToolCallUpdate(update) => {
                self.change_tool_call(&update.tool_call_id, |call| call.apply_v2(update));
                if let Some(Some(meta)) = &update.meta {
                    self.terminal_meta(&update.tool_call_id, meta);
                }
            }
            SessionUpdate::ToolCallContentChunk(chunk) => {
                self.change_tool_call(&chunk.tool_call_id, |call| call.chunk(&chunk.content));
            }
            SessionUpdate::TerminalUpdate(update) => self.terminal_update(update),
            SessionUpdate::TerminalOutputChunk(chunk) => {
                self.change_terminal(&chunk.terminal_id, |t| t.print_base64(&chunk.data));
            }
            SessionUpdate::PlanUpdate(update) => self.set_plan_v2(&update.plan),
            SessionUpdate::PlanRemoved(removed) => self.remove_plan(&removed.plan_id),
            SessionUpdate::AvailableCommandsUpdate(update) => {
                self.replace_commands(&update.available_commands, commands);
            }
            SessionUpdate::ConfigOptionUpdate(update) => {
                let options: Vec<_> = update.config_options.iter().map(|o| o.0.clone()).collect();
                self.replace_config_options(&options);
            }
            SessionUpdate::SessionInfoUpdate(update) => {
                self.set_info(update.title.as_ref(), update.updated_at.as_ref());
            }
            SessionUpdate::UsageUpdate(update) if self.fits(update) => {
                let before = self.usage.take().and_then(|usage| usage.cost);
                let mut usage = v1::UsageUpdate::new(update.used, update.size);
                usage.cost = update.cost.clone().unwrap_or(before);
                usage.meta.clone_from(&update.meta);
                self.usage = Some(usage);
            }
            SessionUpdate::Notice(notice) => {
                self.push(ItemKind::Notice((**notice).clone()));
            }
            SessionUpdate::CompactionUpdate(update) => self.compaction(update),
            SessionUpdate::CompactionSummaryChunk(chunk) => self.compaction_chunk(chunk),
            SessionUpdate::Unknown(object) => {
                self.push(ItemKind::Unknown(object.clone()));
            }
            // As in version 1.
            _ => {}
        }
        self.keep_within();
    }

    /// The slash commands that session setup names.
    pub(crate) fn set_commands(&mut self, announced: &[v2::AvailableCommand]) {
        self.revision += 1;
        self.replace_commands(announced, commands);
    }

    fn state(&mut self, state: &StateUpdate) {
        let background = match state {
            StateUpdate::Running(state) => {
                self.activity = Activity::Running;
                &state.background
            }
            StateUpdate::RequiresAction(state) => {
                self.activity = Activity::RequiresAction;
                &state.background
            }
            StateUpdate::Idle(state) => {
                self.activity = Activity::Idle;
                if let Some(reason) = &state.stop_reason
                    && self.fits(reason)
                {
                    self.stop_reason = Some(reason.as_str().into());
                }
                &state.background
            }
            _ => {
                self.activity = Activity::Unknown;
                return;
            }
        };
        if background.is_some() && self.fits(background) {
            self.background.clone_from(background);
        }
    }

    fn terminal_update(&mut self, update: &TerminalUpdate) {
        self.change_terminal(&update.terminal_id, |terminal| {
            if let Some(command) = &update.command {
                terminal.command.clone_from(command);
            }
            if let Some(cwd) = &update.cwd {
                terminal.cwd.clone_from(cwd);
            }
            if let Some(output) = &update.output {
                terminal.clear();
                if let Some(output) = output {
                    terminal.print_base64(&output.data);
                }
            }
            if let Some(exit_status) = &update.exit_status {
                terminal.exit_status.clone_from(exit_status);
                terminal.weigh();
            }
            if let Some(capabilities) = &update.capabilities {
                terminal.capabilities.clone_from(capabilities);
                terminal.weigh();
            }
            if let Some(size) = &update.size {
                terminal.size.clone_from(size);
                terminal.weigh();
            }
        });
    }

    pub(super) fn compaction(&mut self, update: &CompactionUpdate) {
        let at = self.compaction_at(&update.compaction_id);
        let Some(compaction) = self.compaction_mut(at) else {
            return;
        };
        compaction.status = update.status.clone();
        if let Some(summary) = &update.summary {
            compaction.summary = summary.clone().unwrap_or_default();
        }
        if let Some(error) = &update.error {
            compaction.error.clone_from(error);
        }
        if update.summary.is_some() || update.error.is_some() {
            self.reweigh(at);
        }
    }

    pub(super) fn compaction_chunk(&mut self, chunk: &CompactionSummaryChunk) {
        let at = self.compaction_at(&chunk.compaction_id);
        if let Some(compaction) = self.compaction_mut(at) {
            compaction.summary.push(chunk.content.clone());
            self.heavier(at, weight(&chunk.content));
        }
    }

    fn compaction_mut(&mut self, at: usize) -> Option<&mut Compaction> {
        match &mut self.item_mut(at)?.kind {
            ItemKind::Compaction(compaction) => Some(compaction),
            _ => None,
        }
    }

    /// The number of the item of a compaction, new or known. There are few of them, so that they are searched
    /// for from the end.
    fn compaction_at(&mut self, id: &CompactionId) -> usize {
        let is_it = |kind: &ItemKind| matches!(kind, ItemKind::Compaction(c) if c.id == *id);
        match self.items.iter().rposition(|item| is_it(&item.kind)) {
            Some(at) => self.dropped.items + at,
            None => self.push(ItemKind::Compaction(Compaction {
                id: id.clone(),
                status: CompactionStatus::InProgress,
                summary: Vec::new(),
                error: None,
            })),
        }
    }
}

/// Commands in the words of version 1. A kind this library does not know has a name and a description
/// at least, and is shown as a plain one.
fn commands(commands: &[v2::AvailableCommand]) -> Vec<AvailableCommand> {
    let one = |command: &v2::AvailableCommand| match command {
        v2::AvailableCommand::Command(command) => {
            let mut new = AvailableCommand::new(command.name.clone(), command.description.clone());
            if let Some(AvailableCommandInput::Text(text)) = &command.input {
                new.input = Some(UnstructuredCommandInput::new(text.hint.clone()));
            }
            new.meta.clone_from(&command.meta);
            Some(new)
        }
        v2::AvailableCommand::Unknown(object) => {
            let description: String = object.field("description").unwrap_or_default();
            Some(AvailableCommand::new(
                object.field::<String>("name")?,
                description,
            ))
        }
        _ => None,
    };
    commands.iter().filter_map(one).collect()
}
