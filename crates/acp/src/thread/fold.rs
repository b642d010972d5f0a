//! Applies updates to a thread.

use acp_wire::v1::{
    self, AvailableCommand, TerminalExitStatus, TerminalId, UnstructuredCommandInput,
};
use acp_wire::v2::{self, StateUpdate};

use super::message::ThreadSpeaker;
use super::{Activity, ItemKind, Thread, ThreadTerminal};
use crate::update::Update;

impl Thread {
    /// Applies a session update to the thread.
    pub fn apply(&mut self, update: &Update) {
        self.receive(update);
    }

    /// Applies an update, except for its effect on the turn.
    pub(super) fn apply_to_items(&mut self, update: &Update) {
        self.revision += 1;
        match update {
            Update::UserMessageChunk(chunk) => self.apply_chunk(chunk, ThreadSpeaker::User),
            Update::UserMessage(message) => self.apply_message(message, ThreadSpeaker::User),
            Update::AgentMessageChunk(chunk) => self.apply_chunk(chunk, ThreadSpeaker::Agent),
            Update::AgentMessage(message) => self.apply_message(message, ThreadSpeaker::Agent),
            Update::AgentThoughtChunk(chunk) => self.apply_chunk(chunk, ThreadSpeaker::Thought),
            Update::AgentThought(message) => self.apply_message(message, ThreadSpeaker::Thought),
            Update::StateUpdate(state) => self.apply_state(state),
            Update::ToolCallUpdate(update) => {
                self.update_tool_call(update);
                if let Some(Some(meta)) = &update.meta {
                    self.nest_tool_call(&update.tool_call_id, Some(meta));
                    self.apply_terminal_meta(&update.tool_call_id, meta);
                }
            }
            Update::ToolCallContentChunk(chunk) => {
                self.change_tool_call(&chunk.tool_call_id, |call| call.apply_chunk(&chunk.content));
            }
            Update::TerminalUpdate(update) => {
                self.change_terminal(&update.terminal_id, |terminal| terminal.apply(update));
            }
            Update::TerminalOutputChunk(chunk) => {
                self.change_terminal(&chunk.terminal_id, |t| t.print_base64(&chunk.data));
            }
            Update::PlanUpdate(update) => self.update_plan(&update.plan),
            Update::PlanRemoved(removed) => self.remove_plan(&removed.plan_id),
            Update::AvailableCommandsUpdate(update) => {
                self.replace_commands(&update.available_commands);
            }
            Update::CurrentModeUpdate(update) => self.set_mode(&update.current_mode_id),
            Update::ConfigOptionUpdate(update) => {
                self.replace_config_options(&update.config_options);
            }
            Update::SessionInfoUpdate(update) => {
                self.set_info(update.title.as_ref(), update.updated_at.as_ref());
            }
            Update::UsageUpdate(update) => self.set_usage(update),
            Update::Notice(notice) => {
                self.push(ItemKind::Notice((**notice).clone()));
            }
            Update::CompactionUpdate(update) => self.apply_compaction(update),
            Update::CompactionSummaryChunk(chunk) => self.apply_compaction_chunk(chunk),
            Update::SubagentUpdate(update) => self.update_subagent(update),
            Update::SessionMessage(update) => self.update_session_message(update),
            Update::SessionMessageChunk(chunk) => self.apply_session_message_chunk(chunk),
            Update::Unknown(object) => {
                self.push(ItemKind::Unknown(object.clone()));
            }
        }
        self.enforce_limit();
    }

    /// Sets the slash commands that the agent reports when a session is opened.
    pub(crate) fn set_commands(&mut self, announced: &[v2::AvailableCommand]) {
        self.revision += 1;
        self.replace_commands(announced);
    }

    /// Replaces the slash commands, checking their size before copying them.
    fn replace_commands(&mut self, announced: &[v2::AvailableCommand]) {
        if self.fits_within(announced) {
            self.commands = announced.iter().filter_map(command_to_v1).collect();
        }
    }

    fn set_usage(&mut self, update: &v2::UsageUpdate) {
        if self.fits_within(update) {
            let before = self.usage.take().and_then(|usage| usage.cost);
            let mut usage = v1::UsageUpdate::new(update.used, update.size);
            usage.cost = update.cost.clone().unwrap_or(before);
            usage.meta.clone_from(&update.meta);
            self.usage = Some(usage);
        }
    }

    fn set_info(&mut self, title: Option<&Option<String>>, updated_at: Option<&Option<String>>) {
        if let Some(title) = title
            && self.fits_within(title)
        {
            self.title.clone_from(title);
        }
        if let Some(updated_at) = updated_at
            && self.fits_within(updated_at)
        {
            self.updated_at.clone_from(updated_at);
        }
    }

    fn apply_state(&mut self, state: &StateUpdate) {
        let background = match state {
            StateUpdate::Running(state) => {
                self.activity = Activity::Running;
                &state.background
            }
            StateUpdate::RequiresAction(state) => {
                self.activity = Activity::RequiresAction;
                &state.background
            }
            StateUpdate::Unconfirmed(state) => {
                self.activity = Activity::Unknown;
                &state.background
            }
            StateUpdate::Idle(state) => {
                self.activity = Activity::Idle;
                if let Some(reason) = &state.stop_reason
                    && self.fits_within(reason)
                {
                    self.stop_reason = Some(reason.as_str().into());
                }
                self.set_turn_usage(state.usage.as_ref());
                &state.background
            }
            _ => {
                self.activity = Activity::Unknown;
                return;
            }
        };
        if background.is_some() && self.fits_within(background) {
            self.background.clone_from(background);
        }
    }

    /// Starts a replay by clearing the thread, except for the session's settings and the current activity. Returns the
    /// thread as it was.
    pub(crate) fn begin_replay(&mut self) -> Self {
        let mut replayed = Self::with_limit(self.limit());
        replayed.revision = self.revision + 1;
        let before = std::mem::replace(self, replayed);
        self.copy_current_state(&before);
        before
    }

    /// Undoes a failed replay by restoring the items of `before`. Settings and activity that have since changed are
    /// kept.
    pub(crate) fn end_replay(&mut self, before: Self) {
        let failed = std::mem::replace(self, before);
        self.copy_current_state(&failed);
        // Any item can differ from what was last rendered.
        self.revision = self.revision.max(failed.revision) + 1;
        for item in &mut self.items {
            item.revision = self.revision;
        }
        for plan in &mut self.plans {
            plan.revision = self.revision;
        }
    }

    /// Copies the settings and the current activity, but not the history, from another thread of the same session.
    fn copy_current_state(&mut self, other: &Self) {
        self.turn.clone_from(&other.turn);
        self.stop_reason.clone_from(&other.stop_reason);
        self.turn_usage.clone_from(&other.turn_usage);
        self.activity = other.activity;
        self.background.clone_from(&other.background);
        self.config_options.clone_from(&other.config_options);
        self.uses_set_mode = other.uses_set_mode;
        self.uses_set_model = other.uses_set_model;
    }

    /// Marks the agent as idle when the connection has closed.
    pub(crate) fn set_disconnected(&mut self) {
        self.revision += 1;
        self.activity = Activity::Idle;
        self.background = None;
    }

    /// Marks unfinished tool calls as cancelled, as a client should when it cancels a turn. See "Cancellation" on the
    /// specification's page "Prompt Turn".
    pub fn cancel_turn(&mut self) {
        self.revision += 1;
        for item in &mut self.items {
            if let ItemKind::ToolCall(call) = &mut item.kind
                && !call.is_finished()
            {
                call.is_cancelled = true;
                item.revision = self.revision;
            }
        }
    }

    /// Adds a client terminal, with its command and working directory.
    pub fn start_terminal(&mut self, id: &TerminalId, command: &str, cwd: Option<&str>) {
        self.change_terminal(id, |terminal| {
            terminal.command = Some(command.to_owned());
            terminal.cwd = cwd.map(str::to_owned);
        });
        self.enforce_limit();
    }

    /// Appends output to a client terminal.
    pub fn append_terminal_output(&mut self, id: &TerminalId, text: &str) {
        self.change_terminal(id, |terminal| terminal.print(text));
        self.enforce_limit();
    }

    /// Replaces a terminal's output with the output that the client reports. The client may report only the last part.
    pub(crate) fn report_terminal_output(&mut self, id: &TerminalId, output: &str) {
        self.change_terminal(id, |terminal| {
            let more = output.strip_prefix(&*terminal.output());
            if more.is_none() {
                terminal.clear();
            }
            terminal.print(more.unwrap_or(output));
        });
        self.enforce_limit();
    }

    /// Sets the exit status of a terminal's command.
    pub fn set_terminal_exit_status(&mut self, id: &TerminalId, status: &TerminalExitStatus) {
        self.change_terminal(id, |terminal| {
            terminal.exit_status = Some(status.clone().into());
            terminal.update_state_weight();
        });
        self.enforce_limit();
    }

    /// Marks a terminal as released by the agent.
    pub fn release_terminal(&mut self, id: &TerminalId) {
        self.change_terminal(id, |terminal| terminal.is_released = true);
        self.enforce_limit();
    }

    /// Applies `change` to a terminal, adding the terminal if it is new.
    pub(super) fn change_terminal(
        &mut self,
        id: &TerminalId,
        change: impl FnOnce(&mut ThreadTerminal),
    ) {
        self.revision += 1;
        let terminal = self.terminals.entry(id.clone()).or_default();
        terminal.last_revision = self.revision;
        change(terminal);
        self.update_terminal_weight(id);
    }
}

/// Converts a command to version 1. A command of an unknown type becomes a plain command, because every command has at
/// least a name and a description.
fn command_to_v1(command: &v2::AvailableCommand) -> Option<AvailableCommand> {
    match command {
        v2::AvailableCommand::Command(command) => {
            let mut new = AvailableCommand::new(command.name.clone(), command.description.clone());
            if let Some(v2::AvailableCommandInput::Text(text)) = &command.input {
                new.input = Some(UnstructuredCommandInput::new(text.hint.clone()));
            }
            new.meta.clone_from(&command.meta);
            Some(new)
        }
        v2::AvailableCommand::Unknown(object) => {
            let description: String = object.field("description").unwrap_or_default();
            let name: String = object.field("name")?;
            Some(AvailableCommand::new(name, description))
        }
        _ => None,
    }
}
