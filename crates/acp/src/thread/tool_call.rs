//! Tool calls, put together from their updates.

use acp_wire::v1::{ToolCallId, ToolCallLocation, ToolKind};
use acp_wire::v2::{self, ToolCallCapabilities, ToolCallStatus};
use serde_json::Value;

use super::content::ThreadToolCallContent;
use super::size::ToolCallSize;
use super::weight::weight;
use super::{ItemKind, Thread};
use crate::update::ToolCallPatch;

/// A tool call, put together from its updates.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ThreadToolCall {
    /// Its id.
    pub id: ToolCallId,
    /// The tool's name for programs, if the agent says.
    pub name: Option<String>,
    /// What it does, for people; empty if the agent has not said.
    pub title: String,
    /// What sort of thing it does.
    pub kind: ToolKind,
    /// How far it is.
    pub status: ToolCallStatus,
    /// It was not finished when its turn was cancelled.
    pub is_cancelled: bool,
    /// What it has produced.
    pub content: Vec<ThreadToolCallContent>,
    /// The files it works on.
    pub locations: Vec<ToolCallLocation>,
    /// What the tool was given.
    pub raw_input: Option<Value>,
    /// What the tool gave back.
    pub raw_output: Option<Value>,
    /// What a client may do with it.
    pub capabilities: Option<ToolCallCapabilities>,
    /// Something of it was dropped, because the thread would have become larger than its limit:
    /// [`Thread::truncation`](super::Thread::truncation).
    pub is_truncated: bool,
    pub(super) part_sizes: ToolCallSize,
}

impl ThreadToolCall {
    /// A call of which nothing is known yet.
    pub fn new(id: impl Into<ToolCallId>) -> Self {
        Self {
            id: id.into(),
            name: None,
            title: String::new(),
            kind: ToolKind::default(),
            status: ToolCallStatus::default(),
            is_cancelled: false,
            content: Vec::new(),
            locations: Vec::new(),
            raw_input: None,
            raw_output: None,
            capabilities: None,
            is_truncated: false,
            part_sizes: ToolCallSize::default(),
        }
    }

    /// Whether nothing more is to come of it.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_cancelled || self.has_ended()
    }

    /// Whether the agent says so.
    fn has_ended(&self) -> bool {
        use ToolCallStatus::{Cancelled, Completed, Failed};
        matches!(self.status, Completed | Failed | Cancelled)
    }

    /// A change of it.
    pub fn apply(&mut self, update: &ToolCallPatch) {
        if update.is_new {
            *self = Self {
                is_cancelled: self.is_cancelled,
                capabilities: self.capabilities.take(),
                part_sizes: ToolCallSize {
                    capabilities: self.part_sizes.capabilities,
                    ..ToolCallSize::default()
                },
                ..Self::new(&self.id)
            };
        }
        if let Some(name) = &update.name {
            self.name.clone_from(name);
        }
        if let Some(title) = &update.title {
            self.title = title.clone().unwrap_or_default();
        }
        if let Some(kind) = &update.kind {
            self.kind = kind.clone().unwrap_or_default();
        }
        if let Some(status) = &update.status {
            self.set_status(status.clone().unwrap_or_default());
        }
        if let Some(content) = &update.content {
            self.part_sizes.content = weight(content);
            let content = content.iter().flatten().cloned();
            self.content = content.map(Into::into).collect();
        }
        if let Some(locations) = &update.locations {
            self.locations = locations.clone().unwrap_or_default();
            self.part_sizes.locations = weight(locations);
        }
        if let Some(raw_input) = &update.raw_input {
            self.raw_input = Some(raw_input.clone()).filter(|value| !value.is_null());
            self.part_sizes.raw_input = weight(raw_input);
        }
        if let Some(raw_output) = &update.raw_output {
            self.raw_output = Some(raw_output.clone()).filter(|value| !value.is_null());
            self.part_sizes.raw_output = weight(raw_output);
        }
        if let Some(capabilities) = &update.capabilities {
            self.capabilities.clone_from(capabilities);
            self.part_sizes.capabilities = weight(capabilities);
        }
    }

    fn set_status(&mut self, status: ToolCallStatus) {
        // Real agents send late news of a call that has ended.
        if self.has_ended()
            && matches!(status, ToolCallStatus::Pending | ToolCallStatus::InProgress)
        {
            return;
        }
        match status {
            ToolCallStatus::Cancelled => self.is_cancelled = true,
            // It was done before the agent heard that its turn was cancelled.
            ToolCallStatus::Completed => self.is_cancelled = false,
            _ => {}
        }
        self.status = status;
    }

    /// A piece of what it has produced.
    pub(super) fn apply_chunk(&mut self, content: &v2::ToolCallContent) {
        self.content.push(content.clone().into());
        self.part_sizes.content = self.part_sizes.content.saturating_add(weight(content));
    }
}

impl Thread {
    /// A tool call that is announced or changed. If its id is known already when it is announced, from a permission
    /// request or an update that came first, or because the agent uses ids twice while the first is unfinished,
    /// it is that one; an id used again after its call has finished is a new call.
    pub(super) fn update_tool_call(&mut self, update: &ToolCallPatch) {
        let id = &update.tool_call_id;
        if update.is_new && self.tool_call(id).is_some_and(ThreadToolCall::is_finished) {
            self.tool_calls.remove(id);
        }
        self.change_tool_call(id, |call| call.apply(update));
    }

    /// Changes the tool call with this id. One that was never announced is made: real agents send only
    /// updates, or a permission request first.
    pub(super) fn change_tool_call(
        &mut self,
        id: &ToolCallId,
        change: impl FnOnce(&mut ThreadToolCall),
    ) {
        let known = self.tool_calls.get(id).copied();
        let at = known.unwrap_or_else(|| {
            let at = self.push(ItemKind::ToolCall(Box::new(ThreadToolCall::new(id))));
            self.tool_calls.insert(id.clone(), at);
            at
        });
        if let Some(item) = self.item_mut(at)
            && let ItemKind::ToolCall(call) = &mut item.kind
        {
            change(call);
            self.reweigh(at);
        }
    }

    /// What a permission request says of its tool call; gives the call as it is then.
    pub fn apply_permission_request(&mut self, update: &ToolCallPatch) -> ThreadToolCall {
        let id = &update.tool_call_id;
        self.revision += 1;
        let mut asked = None;
        self.change_tool_call(id, |call| {
            call.apply(update);
            asked = Some(call.clone());
        });
        self.truncate_to();
        asked.unwrap_or_else(|| ThreadToolCall::new(id))
    }
}
