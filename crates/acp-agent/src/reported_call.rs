//! Reports tool calls to the client. Each update contains the status and any other fields that changed. Some clients
//! treat a call as completed if an update has no status, and show content twice if it is sent twice.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp::agent::{ToolCallHandle, Turn};
use acp::v1::{
    ContentBlock, ProtocolVersion, ToolCall, ToolCallContent, ToolCallId, ToolCallStatus,
    ToolCallUpdate,
};

/// The status of a cancelled call in version 2. Version 1 has no such status.
const CANCELLED_STATUS: &str = "cancelled";

/// A tool call that has been reported to the client.
pub(crate) struct ReportedCall {
    handle: ToolCallHandle,
    is_v2: bool,
    state: Mutex<ReportedCallState>,
}

struct ReportedCallState {
    /// The fields of the call that the client has received.
    reported: ToolCallUpdate,
    status: ToolCallStatus,
    /// Changes that will be sent with the next update.
    deferred_update: ToolCallUpdate,
}

impl ReportedCall {
    /// Reports a new tool call to the client.
    pub(crate) async fn begin(turn: &Turn, call: ToolCall) -> acp::Result<Self> {
        let mut told = ToolCallUpdate::new(&call.tool_call_id)
            .title(&call.title)
            .kind(call.kind.clone())
            .content(call.content.clone())
            .locations(call.locations.clone());
        told.raw_input.clone_from(&call.raw_input);
        told.raw_output.clone_from(&call.raw_output);
        let state = ReportedCallState {
            reported: told,
            status: call.status.clone(),
            deferred_update: ToolCallUpdate::new(&call.tool_call_id),
        };
        Ok(Self {
            handle: turn.report_tool_call(call).await?,
            is_v2: turn.client().version() == ProtocolVersion::V2,
            state: Mutex::new(state),
        })
    }

    fn lock_state(&self) -> MutexGuard<'_, ReportedCallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> &ToolCallId {
        self.handle.id()
    }

    /// Creates an empty update of this call.
    pub(crate) fn new_update(&self) -> ToolCallUpdate {
        self.handle.new_update()
    }

    /// Reports a change, along with any deferred ones. Omits fields that the client already has, and sends nothing if
    /// none are left.
    pub(crate) async fn update(&self, change: ToolCallUpdate) -> acp::Result<()> {
        let update = {
            let mut state = self.lock_state();
            let none = self.handle.new_update();
            let mut update = std::mem::replace(&mut state.deferred_update, none);
            merge(&mut update, change);
            let status = update.status.take();
            let status = status.filter(|status| *status != state.status);
            omit_unchanged_fields(&mut update, &state.reported);
            if status.is_none() && update == self.handle.new_update() {
                return Ok(());
            }
            merge(&mut state.reported, update.clone());
            if let Some(status) = status {
                state.status = status;
            }
            update.status = Some(state.status.clone());
            update
        };
        self.handle.send_update(update).await
    }

    /// Holds back a change until the next update is sent.
    pub(crate) fn defer_update(&self, change: ToolCallUpdate) {
        merge(&mut self.lock_state().deferred_update, change);
    }

    /// Sends the deferred changes, if there are any.
    pub(crate) async fn flush(&self) -> acp::Result<()> {
        self.update(self.new_update()).await
    }

    /// Reports that the call is running.
    pub(crate) async fn start(&self) -> acp::Result<()> {
        let update = self.new_update().status(ToolCallStatus::InProgress);
        self.update(update).await
    }

    /// Reports the content of the call. It replaces earlier content.
    pub(crate) async fn set_content(&self, content: Vec<ToolCallContent>) -> acp::Result<()> {
        self.update(self.new_update().content(content)).await
    }

    /// Reports that the call failed. The reason replaces its content.
    pub(crate) async fn fail(&self, why: impl Into<String>) -> acp::Result<()> {
        let update = self.new_update().status(ToolCallStatus::Failed);
        self.update(update.content(vec![text_content(why)])).await
    }

    /// Reports that the call was cancelled along with its turn. Keeps its content.
    pub(crate) async fn cancel(&self) -> acp::Result<()> {
        let mut update = self.new_update();
        if self.is_v2 {
            update.status = Some(ToolCallStatus::from(CANCELLED_STATUS));
        } else {
            let state = self.lock_state();
            let shown = state.deferred_update.content.as_ref();
            let shown = shown.or(state.reported.content.as_ref()).cloned();
            drop(state);
            let mut content = shown.unwrap_or_default();
            content.push(text_content("Cancelled."));
            update = update.status(ToolCallStatus::Failed).content(content);
        }
        self.update(update).await
    }
}

/// Creates text content.
pub(crate) fn text_content(text: impl Into<String>) -> ToolCallContent {
    ContentBlock::text(text).into()
}

/// Merges a change into an earlier one.
fn merge(into: &mut ToolCallUpdate, change: ToolCallUpdate) {
    fn overwrite<T>(into: &mut Option<T>, change: Option<T>) {
        if change.is_some() {
            *into = change;
        }
    }
    overwrite(&mut into.title, change.title);
    overwrite(&mut into.kind, change.kind);
    overwrite(&mut into.status, change.status);
    overwrite(&mut into.content, change.content);
    overwrite(&mut into.locations, change.locations);
    overwrite(&mut into.raw_input, change.raw_input);
    overwrite(&mut into.raw_output, change.raw_output);
}

/// Removes the fields of an update that the client already has.
fn omit_unchanged_fields(update: &mut ToolCallUpdate, told: &ToolCallUpdate) {
    fn omit_unchanged<T: PartialEq>(update: &mut Option<T>, told: &Option<T>) {
        if update == told {
            *update = None;
        }
    }
    omit_unchanged(&mut update.title, &told.title);
    omit_unchanged(&mut update.kind, &told.kind);
    omit_unchanged(&mut update.content, &told.content);
    omit_unchanged(&mut update.locations, &told.locations);
    omit_unchanged(&mut update.raw_input, &told.raw_input);
    omit_unchanged(&mut update.raw_output, &told.raw_output);
}
