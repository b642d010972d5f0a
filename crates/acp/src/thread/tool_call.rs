//! Applies tool call updates to a thread.

use acp_wire::v1::{ToolCallId, ToolCallLocation, ToolKind};
use acp_wire::v2::{self, ToolCallCapabilities, ToolCallStatus};
use serde_json::Value;

use super::content::ThreadToolCallContent;
use super::size::ToolCallSize;
use super::{ItemKind, Thread};
use crate::memory::weight;
use crate::update::ToolCallPatch;

/// A tool call as shown to the user, built from its updates.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ThreadToolCall {
    /// The id of the tool call, unique in its session.
    pub id: ToolCallId,
    /// The programmatic name of the tool, if the agent reports it.
    pub name: Option<String>,
    /// The title to show to the user, or empty if the agent has sent none.
    pub title: String,
    /// The kind of tool, such as read or edit.
    pub kind: ToolKind,
    /// The most recent status from the agent.
    pub status: ToolCallStatus,
    /// Whether the call was unfinished when its turn was cancelled.
    pub is_cancelled: bool,
    /// The content that the call has produced.
    pub content: Vec<ThreadToolCallContent>,
    /// The files that the call works on.
    pub locations: Vec<ToolCallLocation>,
    /// The tool's input, as arbitrary JSON.
    pub raw_input: Option<Value>,
    /// The tool's output, as arbitrary JSON.
    pub raw_output: Option<Value>,
    /// The operations that a client may perform on the call.
    pub capabilities: Option<ToolCallCapabilities>,
    /// Whether a part of the call was dropped because the thread exceeded its limit. See
    /// [`Thread::truncation`](super::Thread::truncation).
    pub is_truncated: bool,
    pub(super) part_sizes: ToolCallSize,
}

impl ThreadToolCall {
    /// Creates a tool call with only an id.
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

    /// Returns the title, or the id if there is no title.
    #[must_use]
    pub fn title_or_id(&self) -> &str {
        match self.title.trim().is_empty() {
            true => self.id.as_str(),
            false => &self.title,
        }
    }

    /// Returns `true` if the call has finished or was cancelled.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is_cancelled || self.has_ended()
    }

    /// Returns `true` if the agent has reported a final status.
    fn has_ended(&self) -> bool {
        use ToolCallStatus::{Cancelled, Completed, Failed};
        matches!(self.status, Completed | Failed | Cancelled)
    }

    /// Applies an update to the tool call. Absent fields are unchanged.
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
        // Some agents send late updates for a call that has ended.
        if self.has_ended()
            && matches!(status, ToolCallStatus::Pending | ToolCallStatus::InProgress)
        {
            return;
        }
        match status {
            ToolCallStatus::Cancelled => self.is_cancelled = true,
            // The call completed before the agent noticed that the turn was cancelled.
            ToolCallStatus::Completed => self.is_cancelled = false,
            _ => {}
        }
        self.status = status;
    }

    /// Appends a chunk to the call's content.
    pub(super) fn apply_chunk(&mut self, content: &v2::ToolCallContent) {
        self.content.push(content.clone().into());
        self.part_sizes.content = self.part_sizes.content.saturating_add(weight(content));
    }
}

impl Thread {
    /// Applies an update to a new or known tool call. A new call with the id of an unfinished call changes that call,
    /// because the agent may have reported it before in an update or a permission request, or may reuse ids. If the
    /// earlier call has finished, a new call is added.
    pub(super) fn update_tool_call(&mut self, update: &ToolCallPatch) {
        let id = &update.tool_call_id;
        if update.is_new && self.tool_call(id).is_some_and(ThreadToolCall::is_finished) {
            self.tool_calls.remove(id);
        }
        self.change_tool_call(id, |call| call.apply(update));
    }

    /// Applies `change` to a tool call, adding the call if it is new, because some agents send only updates, or send a
    /// permission request first.
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
            self.update_item_weight(at);
        }
    }

    /// Applies a permission request's tool call, and returns the complete call.
    pub fn apply_permission_request(&mut self, update: &ToolCallPatch) -> ThreadToolCall {
        let id = &update.tool_call_id;
        self.revision += 1;
        let mut asked = None;
        self.change_tool_call(id, |call| {
            call.apply(update);
            asked = Some(call.clone());
        });
        self.nest_tool_call(id, update.meta.as_ref().and_then(Option::as_ref));
        self.enforce_limit();
        asked.unwrap_or_else(|| ThreadToolCall::new(id))
    }
}
