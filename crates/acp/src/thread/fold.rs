//! How updates change a thread.

use acp_wire::v1::{
    ContentBlock, ContentChunk, SessionConfigId, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigSelect, SessionConfigSelectOption, SessionModeId,
    SessionModeState, SessionUpdate, StopReason, TerminalExitStatus, TerminalId, ToolCall,
    ToolCallId, ToolCallStatus, ToolCallUpdate, ToolKind,
};

use super::{Item, ItemKind, Message, PLAN, Thread, ThreadPlan, ThreadTerminal, ThreadToolCall};

/// The id of the config option that stands for the modes of an agent without config options.
pub(crate) const MODE: &str = "mode";

impl Thread {
    /// Folds an update of version 1.
    pub fn apply(&mut self, update: &SessionUpdate) {
        self.revision += 1;
        match update {
            SessionUpdate::UserMessageChunk(chunk) => self.chunk(chunk, Speaker::User),
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk(chunk, Speaker::Agent),
            SessionUpdate::AgentThoughtChunk(chunk) => self.chunk(chunk, Speaker::Thought),
            SessionUpdate::ToolCall(call) => {
                self.new_tool_call(call);
                if let Some(meta) = &call.meta {
                    self.terminal_meta(&call.tool_call_id, meta);
                }
            }
            SessionUpdate::ToolCallUpdate(update) => {
                self.update_tool_call(update);
                if let Some(meta) = &update.meta {
                    self.terminal_meta(&update.tool_call_id, meta);
                }
            }
            SessionUpdate::Plan(plan) => self.set_plan(PLAN, plan.entries.clone()),
            SessionUpdate::AvailableCommandsUpdate(update) => {
                self.commands.clone_from(&update.available_commands);
            }
            SessionUpdate::CurrentModeUpdate(update) => self.set_mode(&update.current_mode_id),
            SessionUpdate::ConfigOptionUpdate(update) => {
                self.replace_config_options(&update.config_options);
            }
            SessionUpdate::SessionInfoUpdate(update) => {
                if let Some(title) = &update.title {
                    self.title.clone_from(title);
                }
                if let Some(updated_at) = &update.updated_at {
                    self.updated_at.clone_from(updated_at);
                }
            }
            SessionUpdate::UsageUpdate(usage) => self.usage = Some(usage.clone()),
            SessionUpdate::Unknown(object) => self.push(ItemKind::Unknown(object.clone())),
            // The enum grows with the protocol; what has no place here yet is not lost to those who
            // read the updates themselves.
            _ => {}
        }
    }

    /// A turn begins with what the person says.
    pub fn begin_turn(&mut self, prompt: &[ContentBlock]) {
        self.revision += 1;
        self.running = true;
        self.stop_reason = None;
        self.push(ItemKind::User(Message {
            id: None,
            content: prompt.to_vec(),
        }));
    }

    /// A turn has ended; `None` if it failed.
    pub fn end_turn(&mut self, stop_reason: Option<&StopReason>) {
        self.revision += 1;
        self.running = false;
        self.stop_reason = stop_reason.cloned();
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

    /// What session setup says of modes and config options. Agents send both while modes are being
    /// superseded; the config options count then.
    pub fn set_up(
        &mut self,
        modes: Option<&SessionModeState>,
        options: Option<&[SessionConfigOption]>,
    ) {
        self.revision += 1;
        let mode_options = options.is_some_and(|options| {
            options
                .iter()
                .any(|o| o.category == Some(SessionConfigOptionCategory::Mode))
        });
        self.config_options = match modes {
            Some(modes) if !mode_options => vec![mode_option(modes)],
            _ => Vec::new(),
        };
        self.modes_only = !self.config_options.is_empty();
        self.config_options
            .extend(options.unwrap_or_default().iter().cloned());
    }

    /// All config options anew, as the answer to setting one gives them.
    pub fn set_config_options(&mut self, options: &[SessionConfigOption]) {
        self.revision += 1;
        self.replace_config_options(options);
    }

    /// The agent's options anew. Its modes, if they are shown as one, are not among them.
    fn replace_config_options(&mut self, options: &[SessionConfigOption]) {
        let is_mode =
            |o: &SessionConfigOption| o.category == Some(SessionConfigOptionCategory::Mode);
        self.modes_only &= !options.iter().any(is_mode);
        self.config_options
            .retain(|o| self.modes_only && is_mode(o));
        self.config_options.extend(options.iter().cloned());
    }

    /// Whether the mode is set by `session/set_mode`, for there is no option for it.
    pub(crate) fn has_modes_only(&self) -> bool {
        self.modes_only
    }

    /// The mode has changed.
    pub fn set_mode(&mut self, mode: &SessionModeId) {
        self.revision += 1;
        let option = self
            .config_options
            .iter_mut()
            .find(|o| o.category == Some(SessionConfigOptionCategory::Mode));
        if let Some(SessionConfigKind::Select(select)) = option.map(|o| &mut o.kind) {
            select.current_value = mode.as_str().into();
        }
    }

    /// A terminal of this session was started.
    pub fn terminal_started(&mut self, id: &TerminalId, command: &str, cwd: Option<&str>) {
        let terminal = self.touch_terminal(id);
        terminal.command = Some(command.to_owned());
        terminal.cwd = cwd.map(str::to_owned);
    }

    /// A terminal of this session printed something.
    pub fn terminal_output(&mut self, id: &TerminalId, text: &str) {
        self.touch_terminal(id).print(text);
    }

    /// The command of a terminal of this session ended.
    pub fn terminal_exited(&mut self, id: &TerminalId, status: &TerminalExitStatus) {
        self.touch_terminal(id).exit_status = Some(status.clone());
    }

    /// The agent has released a terminal of this session.
    pub fn terminal_released(&mut self, id: &TerminalId) {
        self.touch_terminal(id).released = true;
    }

    pub(super) fn touch_terminal(&mut self, id: &TerminalId) -> &mut ThreadTerminal {
        self.revision += 1;
        self.terminals.entry(id.clone()).or_default()
    }

    fn push(&mut self, kind: ItemKind) {
        self.items.push(Item {
            revision: self.revision,
            kind,
        });
    }

    fn chunk(&mut self, chunk: &ContentChunk, speaker: Speaker) {
        let last = self.items.last_mut().and_then(|item| {
            let message = match (&mut item.kind, speaker) {
                (ItemKind::User(m), Speaker::User)
                | (ItemKind::Agent(m), Speaker::Agent)
                | (ItemKind::Thought(m), Speaker::Thought) => m,
                _ => return None,
            };
            // Agents that give ids begin a new message by another one.
            let same = message.id == chunk.message_id
                || message.id.is_none()
                || chunk.message_id.is_none();
            if !same {
                return None;
            }
            item.revision = self.revision;
            Some(message)
        });
        if let Some(message) = last {
            if message.id.is_none() {
                message.id.clone_from(&chunk.message_id);
            }
            append(&mut message.content, &chunk.content);
            return;
        }
        let message = Message {
            id: chunk.message_id.clone(),
            content: vec![chunk.content.clone()],
        };
        self.push(match speaker {
            Speaker::User => ItemKind::User(message),
            Speaker::Agent => ItemKind::Agent(message),
            Speaker::Thought => ItemKind::Thought(message),
        });
    }

    fn set_plan(&mut self, id: &str, entries: Vec<acp_wire::v1::PlanEntry>) {
        let revision = self.revision;
        if let Some(plan) = self.plans.iter_mut().find(|plan| plan.id == id) {
            plan.entries = entries;
            plan.revision = revision;
        } else {
            self.plans.push(ThreadPlan {
                id: id.to_owned(),
                entries,
                revision,
            });
        }
    }

    /// A tool call that was announced. If its id is known already, from a permission request or an
    /// update that came first, or because the agent uses ids twice while the first is unfinished, it
    /// is that one; an id used again after its call has finished is a new call.
    fn new_tool_call(&mut self, call: &ToolCall) {
        let known = self
            .tool_call(&call.tool_call_id)
            .is_some_and(|known| !known.is_finished());
        if !known {
            self.tool_calls.remove(&call.tool_call_id);
        }
        let target = self.tool_call_mut(&call.tool_call_id);
        target.title.clone_from(&call.title);
        target.kind = call.kind.clone();
        target.status = call.status.clone();
        target.content.clone_from(&call.content);
        target.locations.clone_from(&call.locations);
        target.raw_input.clone_from(&call.raw_input);
        target.raw_output.clone_from(&call.raw_output);
    }

    /// A change of a tool call, or of one that was never announced: real agents send only updates,
    /// or a permission request first.
    pub(crate) fn update_tool_call(&mut self, update: &ToolCallUpdate) {
        let call = self.tool_call_mut(&update.tool_call_id);
        if let Some(title) = &update.title {
            call.title.clone_from(title);
        }
        if let Some(kind) = &update.kind {
            call.kind = kind.clone();
        }
        if let Some(status) = &update.status {
            call.status = status.clone();
        }
        if let Some(content) = &update.content {
            call.content.clone_from(content);
        }
        if let Some(locations) = &update.locations {
            call.locations.clone_from(locations);
        }
        if let Some(raw_input) = &update.raw_input {
            call.raw_input = Some(raw_input.clone());
        }
        if let Some(raw_output) = &update.raw_output {
            call.raw_output = Some(raw_output.clone());
        }
    }

    /// What a permission request says of its tool call.
    pub fn permission_requested(&mut self, update: &ToolCallUpdate) {
        self.revision += 1;
        self.update_tool_call(update);
    }

    fn tool_call_mut(&mut self, id: &ToolCallId) -> &mut ThreadToolCall {
        let at = self.tool_calls.get(id).copied().unwrap_or_else(|| {
            let call = ThreadToolCall {
                id: id.clone(),
                title: String::new(),
                kind: ToolKind::default(),
                status: ToolCallStatus::default(),
                cancelled: false,
                content: Vec::new(),
                locations: Vec::new(),
                raw_input: None,
                raw_output: None,
            };
            self.items.push(Item {
                revision: self.revision,
                kind: ItemKind::ToolCall(Box::new(call)),
            });
            self.tool_calls.insert(id.clone(), self.items.len() - 1);
            self.items.len() - 1
        });
        let revision = self.revision;
        match self.items.get_mut(at) {
            Some(Item {
                revision: at,
                kind: ItemKind::ToolCall(call),
            }) => {
                *at = revision;
                call
            }
            // Items are never removed, and the index is made where the item is.
            _ => unreachable!("the index of tool calls points at a tool call"),
        }
    }
}

#[derive(Clone, Copy)]
enum Speaker {
    User,
    Agent,
    Thought,
}

/// Appends a chunk; text goes to the end of text.
fn append(content: &mut Vec<ContentBlock>, chunk: &ContentBlock) {
    if let (Some(ContentBlock::Text(last)), ContentBlock::Text(next)) = (content.last_mut(), chunk)
        && last.annotations == next.annotations
    {
        last.text.push_str(&next.text);
        return;
    }
    content.push(chunk.clone());
}

/// Modes as the config option that supersedes them.
fn mode_option(modes: &SessionModeState) -> SessionConfigOption {
    let values = modes
        .available_modes
        .iter()
        .map(|mode| {
            let value = SessionConfigSelectOption::new(mode.id.as_str(), mode.name.clone());
            match &mode.description {
                Some(description) => value.description(description.clone()),
                None => value,
            }
        })
        .collect();
    let select = SessionConfigSelect::new(modes.current_mode_id.as_str(), values);
    SessionConfigOption::new(SessionConfigId::from(MODE), "Mode", select)
        .category(SessionConfigOptionCategory::Mode)
}
