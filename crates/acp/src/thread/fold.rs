//! How updates of version 1 change a thread, and what a turn does to it.

use acp_wire::v1::{
    AvailableCommand, ContentBlock, SessionUpdate, StopReason, TerminalExitStatus, TerminalId,
    UsageUpdate,
};
use serde::Serialize;

use super::message::Speaker;
use super::{Activity, ItemKind, PLAN, Thread, ThreadTerminal};
use crate::update::Update;

impl Thread {
    /// Folds an update of either version.
    pub fn apply(&mut self, update: &Update) {
        match update {
            Update::V1(update) => self.apply_v1(update),
            Update::V2(update) => self.apply_v2(update),
        }
    }

    /// Folds an update of version 1.
    pub fn apply_v1(&mut self, update: &SessionUpdate) {
        self.revision += 1;
        match update {
            SessionUpdate::UserMessageChunk(chunk) => self.chunk_v1(chunk, Speaker::User),
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk_v1(chunk, Speaker::Agent),
            SessionUpdate::AgentThoughtChunk(chunk) => self.chunk_v1(chunk, Speaker::Thought),
            SessionUpdate::ToolCall(call) => {
                self.new_tool_call(call);
                if let Some(meta) = &call.meta {
                    self.terminal_meta(&call.tool_call_id, meta);
                }
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.change_tool_call(&update.tool_call_id, |call| call.apply_v1(update));
                if let Some(meta) = &update.meta {
                    self.terminal_meta(&update.tool_call_id, meta);
                }
            }
            SessionUpdate::Plan(plan) => self.set_plan_entries(PLAN, &plan.entries),
            SessionUpdate::PlanUpdate(update) => self.set_plan_v1(&update.plan),
            SessionUpdate::PlanRemoved(removed) => self.remove_plan(&removed.plan_id),
            SessionUpdate::AvailableCommandsUpdate(update) => {
                self.replace_commands(&update.available_commands, <[_]>::to_vec);
            }
            SessionUpdate::CurrentModeUpdate(update) => self.set_mode(&update.current_mode_id),
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.replace_config_options(&update.config_options);
            }
            SessionUpdate::SessionInfoUpdate(update) => {
                self.set_info(update.title.as_ref(), update.updated_at.as_ref());
            }
            SessionUpdate::UsageUpdate(usage) => self.set_usage(usage),
            SessionUpdate::Notice(notice) => {
                self.push(ItemKind::Notice((**notice).clone()));
            }
            SessionUpdate::CompactionUpdate(update) => self.compaction(update),
            SessionUpdate::CompactionSummaryChunk(chunk) => self.compaction_chunk(chunk),
            SessionUpdate::Unknown(object) => {
                self.push(ItemKind::Unknown(object.clone()));
            }
            // The enum grows with the protocol; what has no place here yet is not lost to those who
            // read the updates themselves.
            _ => {}
        }
        self.keep_within();
    }

    /// Takes over commands in the words of either version. They are weighed before they are copied.
    pub(super) fn replace_commands<T: Serialize>(
        &mut self,
        told: &[T],
        copy: impl FnOnce(&[T]) -> Vec<AvailableCommand>,
    ) {
        if self.fits(told) {
            self.commands = copy(told);
        }
    }

    fn set_usage(&mut self, usage: &UsageUpdate) {
        if self.fits(usage) {
            self.usage = Some(usage.clone());
        }
    }

    pub(super) fn set_info(
        &mut self,
        title: Option<&Option<String>>,
        updated_at: Option<&Option<String>>,
    ) {
        if let Some(title) = title
            && self.fits(title)
        {
            self.title.clone_from(title);
        }
        if let Some(updated_at) = updated_at
            && self.fits(updated_at)
        {
            self.updated_at.clone_from(updated_at);
        }
    }

    /// A turn begins with what the person says.
    pub fn begin_turn(&mut self, prompt: &[ContentBlock]) {
        self.revision += 1;
        self.turn = true;
        self.stop_reason = None;
        self.said(prompt);
        self.keep_within();
    }

    /// A turn has ended; `None` if it failed.
    pub fn end_turn(&mut self, stop_reason: Option<&StopReason>) {
        self.revision += 1;
        self.turn = false;
        self.echo = None;
        self.stop_reason = stop_reason.filter(|reason| self.fits(reason)).cloned();
    }

    /// The connection is gone: whatever the agent said that it did, it does no more.
    pub(crate) fn disconnected(&mut self) {
        self.revision += 1;
        self.activity = Activity::Idle;
        self.background = None;
    }

    /// Whether a turn of this client's runs.
    pub(crate) fn in_turn(&self) -> bool {
        self.turn
    }

    /// Marks what is not finished as cancelled, as a client should as soon as it cancels: prompt
    /// turn, "Cancellation".
    pub fn cancel_turn(&mut self) {
        self.revision += 1;
        for item in &mut self.items {
            if let ItemKind::ToolCall(call) = &mut item.kind
                && !call.is_finished()
            {
                call.cancelled = true;
                item.revision = self.revision;
            }
        }
    }

    /// A terminal of this session was started.
    pub fn terminal_started(&mut self, id: &TerminalId, command: &str, cwd: Option<&str>) {
        self.change_terminal(id, |terminal| {
            terminal.command = Some(command.to_owned());
            terminal.cwd = cwd.map(str::to_owned);
        });
        self.keep_within();
    }

    /// A terminal of this session printed something.
    pub fn terminal_output(&mut self, id: &TerminalId, text: &str) {
        self.change_terminal(id, |terminal| terminal.print(text));
        self.keep_within();
    }

    /// The command of a terminal of this session ended.
    pub fn terminal_exited(&mut self, id: &TerminalId, status: &TerminalExitStatus) {
        self.change_terminal(id, |terminal| {
            terminal.exit_status = Some(status.clone().into());
            terminal.weigh();
        });
        self.keep_within();
    }

    /// The agent has released a terminal of this session.
    pub fn terminal_released(&mut self, id: &TerminalId) {
        self.change_terminal(id, |terminal| terminal.released = true);
        self.keep_within();
    }

    /// Changes a terminal, new or known.
    pub(super) fn change_terminal(
        &mut self,
        id: &TerminalId,
        change: impl FnOnce(&mut ThreadTerminal),
    ) {
        self.revision += 1;
        let terminal = self.terminals.entry(id.clone()).or_default();
        terminal.heard = self.revision;
        change(terminal);
        self.reweigh_terminal(id);
    }
}
