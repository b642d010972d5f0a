//! A tool call as its client has it. What is reported of it is what changed, and always its status: some clients take
//! a call whose update has none for done, and show twice what they are sent twice.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp::agent::{ToolCallHandle, Turn};
use acp::v1::{
    ContentBlock, ProtocolVersion, ToolCall, ToolCallContent, ToolCallId, ToolCallStatus,
    ToolCallUpdate,
};

/// The status of version 2 for a call that was cancelled. Version 1 has none.
const CANCELLED: &str = "cancelled";

/// A tool call that was reported.
pub(crate) struct ReportedCall {
    handle: ToolCallHandle,
    is_v2: bool,
    state: Mutex<ReportedCallState>,
}

struct ReportedCallState {
    /// What the client has been told.
    reported: ToolCallUpdate,
    status: ToolCallStatus,
    /// What it is told with the next update.
    deferred_update: ToolCallUpdate,
}

impl ReportedCall {
    /// Reports a call for the first time.
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
            handle: turn.tool_call(call).await?,
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

    /// An update of this call, to be filled in.
    pub(crate) fn new_update(&self) -> ToolCallUpdate {
        self.handle.new_update()
    }

    /// Reports a change, with what was waiting. What the client has already is left out, and if it has all of it,
    /// nothing is reported.
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
        self.handle.update(update).await
    }

    /// Reports a change together with the next one.
    pub(crate) fn defer_update(&self, change: ToolCallUpdate) {
        merge(&mut self.lock_state().deferred_update, change);
    }

    /// Reports what is waiting, if anything is.
    pub(crate) async fn flush(&self) -> acp::Result<()> {
        self.update(self.new_update()).await
    }

    /// It is under way.
    pub(crate) async fn start(&self) -> acp::Result<()> {
        let update = self.new_update().status(ToolCallStatus::InProgress);
        self.update(update).await
    }

    /// What it has produced, all of it.
    pub(crate) async fn content(&self, content: Vec<ToolCallContent>) -> acp::Result<()> {
        self.update(self.new_update().content(content)).await
    }

    /// It failed, and why; that replaces its content.
    pub(crate) async fn fail(&self, why: impl Into<String>) -> acp::Result<()> {
        let update = self.new_update().status(ToolCallStatus::Failed);
        self.update(update.content(vec![text(why)])).await
    }

    /// It was not finished when the turn was cancelled. What it has shown stays.
    pub(crate) async fn cancel(&self) -> acp::Result<()> {
        let mut update = self.new_update();
        if self.is_v2 {
            update.status = Some(ToolCallStatus::from(CANCELLED));
        } else {
            let state = self.lock_state();
            let shown = state.deferred_update.content.as_ref();
            let shown = shown.or(state.reported.content.as_ref()).cloned();
            drop(state);
            let mut content = shown.unwrap_or_default();
            content.push(text("Cancelled."));
            update = update.status(ToolCallStatus::Failed).content(content);
        }
        self.update(update).await
    }
}

/// Text as content.
pub(crate) fn text(text: impl Into<String>) -> ToolCallContent {
    ContentBlock::text(text).into()
}

/// Lays a change over another one.
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

/// Leaves out of an update what the client has already.
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
