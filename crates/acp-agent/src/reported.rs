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
pub(crate) struct Reported {
    handle: ToolCallHandle,
    v2: bool,
    state: Mutex<State>,
}

struct State {
    /// What the client has been told.
    told: ToolCallUpdate,
    status: ToolCallStatus,
    /// What it is told with the next update.
    waiting: ToolCallUpdate,
}

impl Reported {
    /// Reports a call for the first time.
    pub(crate) async fn begin(turn: &Turn, call: ToolCall) -> acp::Result<Self> {
        let mut told = ToolCallUpdate::new(&call.tool_call_id)
            .title(&call.title)
            .kind(call.kind.clone())
            .content(call.content.clone())
            .locations(call.locations.clone());
        told.raw_input.clone_from(&call.raw_input);
        told.raw_output.clone_from(&call.raw_output);
        let state = State {
            told,
            status: call.status.clone(),
            waiting: ToolCallUpdate::new(&call.tool_call_id),
        };
        Ok(Self {
            handle: turn.tool_call(call).await?,
            v2: turn.client().version() == ProtocolVersion::V2,
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> &ToolCallId {
        self.handle.id()
    }

    /// An update of this call, to be filled in.
    pub(crate) fn change(&self) -> ToolCallUpdate {
        self.handle.change()
    }

    /// Reports a change, with what was waiting. What the client has already is left out, and if it has all of it,
    /// nothing is reported.
    pub(crate) async fn update(&self, change: ToolCallUpdate) -> acp::Result<()> {
        let update = {
            let mut state = self.state();
            let none = self.handle.change();
            let mut update = std::mem::replace(&mut state.waiting, none);
            merge(&mut update, change);
            let status = update.status.take();
            let status = status.filter(|status| *status != state.status);
            keep_changes(&mut update, &state.told);
            if status.is_none() && update == self.handle.change() {
                return Ok(());
            }
            merge(&mut state.told, update.clone());
            if let Some(status) = status {
                state.status = status;
            }
            update.status = Some(state.status.clone());
            update
        };
        self.handle.update(update).await
    }

    /// Reports a change together with the next one.
    pub(crate) fn later(&self, change: ToolCallUpdate) {
        merge(&mut self.state().waiting, change);
    }

    /// Reports what is waiting, if anything is.
    pub(crate) async fn flush(&self) -> acp::Result<()> {
        self.update(self.change()).await
    }

    /// It is under way.
    pub(crate) async fn start(&self) -> acp::Result<()> {
        let update = self.change().status(ToolCallStatus::InProgress);
        self.update(update).await
    }

    /// What it has produced, all of it.
    pub(crate) async fn content(&self, content: Vec<ToolCallContent>) -> acp::Result<()> {
        self.update(self.change().content(content)).await
    }

    /// It failed, and why; that replaces its content.
    pub(crate) async fn fail(&self, why: impl Into<String>) -> acp::Result<()> {
        let update = self.change().status(ToolCallStatus::Failed);
        self.update(update.content(vec![text(why)])).await
    }

    /// It was not finished when the turn was cancelled. What it has shown stays.
    pub(crate) async fn cancel(&self) -> acp::Result<()> {
        let mut update = self.change();
        if self.v2 {
            update.status = Some(ToolCallStatus::from(CANCELLED));
        } else {
            let state = self.state();
            let shown = state.waiting.content.as_ref();
            let shown = shown.or(state.told.content.as_ref()).cloned();
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
    fn lay<T>(into: &mut Option<T>, change: Option<T>) {
        if change.is_some() {
            *into = change;
        }
    }
    lay(&mut into.title, change.title);
    lay(&mut into.kind, change.kind);
    lay(&mut into.status, change.status);
    lay(&mut into.content, change.content);
    lay(&mut into.locations, change.locations);
    lay(&mut into.raw_input, change.raw_input);
    lay(&mut into.raw_output, change.raw_output);
}

/// Leaves out of an update what the client has already.
fn keep_changes(update: &mut ToolCallUpdate, told: &ToolCallUpdate) {
    fn leave_out<T: PartialEq>(update: &mut Option<T>, told: &Option<T>) {
        if update == told {
            *update = None;
        }
    }
    leave_out(&mut update.title, &told.title);
    leave_out(&mut update.kind, &told.kind);
    leave_out(&mut update.content, &told.content);
    leave_out(&mut update.locations, &told.locations);
    leave_out(&mut update.raw_input, &told.raw_input);
    leave_out(&mut update.raw_output, &told.raw_output);
}
