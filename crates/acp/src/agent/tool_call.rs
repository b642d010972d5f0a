//! The agent's tool calls.

use acp_wire::v1::{
    ContentBlock, SessionUpdate, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};

use super::session::Session;
use crate::error::Result;

/// The status name of a cancelled tool call, which exists only in version 2.
pub(crate) const CANCELLED_STATUS: &str = "cancelled";

/// A new tool call to report. A string becomes a call with that title, as in `turn.report_tool_call("Read notes.txt")`.
/// To choose the id yourself, convert a [`ToolCall`].
#[derive(Debug, Clone)]
pub struct NewToolCall {
    /// Whether the library generates the id when the call is reported.
    needs_id: bool,
    call: ToolCall,
}

impl NewToolCall {
    /// Creates a tool call with a title for the user. The library generates its id.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            needs_id: true,
            call: ToolCall::new("", title),
        }
    }

    /// Sets the kind of tool, such as read or edit.
    #[must_use]
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.call = self.call.kind(kind);
        self
    }

    /// Sets the status of the call. The default is `pending`.
    #[must_use]
    pub fn status(mut self, status: ToolCallStatus) -> Self {
        self.call = self.call.status(status);
        self
    }

    /// Sets the content that the call produces, such as a diff.
    #[must_use]
    pub fn content(mut self, content: Vec<ToolCallContent>) -> Self {
        self.call = self.call.content(content);
        self
    }

    /// Sets the files that the call works on, so that an editor can follow the agent's work.
    #[must_use]
    pub fn locations(mut self, locations: Vec<ToolCallLocation>) -> Self {
        self.call = self.call.locations(locations);
        self
    }

    /// Sets the tool's input, as arbitrary JSON.
    #[must_use]
    pub fn raw_input(mut self, input: impl Into<serde_json::Value>) -> Self {
        self.call = self.call.raw_input(input.into());
        self
    }

    /// Returns the tool call. If it has no id yet, calls `id` to create one.
    pub(super) fn into_tool_call(self, id: impl FnOnce() -> ToolCallId) -> ToolCall {
        let mut call = self.call;
        if self.needs_id {
            call.tool_call_id = id();
        }
        call
    }
}

impl From<&str> for NewToolCall {
    fn from(title: &str) -> Self {
        Self::new(title)
    }
}

impl From<String> for NewToolCall {
    fn from(title: String) -> Self {
        Self::new(title)
    }
}

impl From<ToolCall> for NewToolCall {
    fn from(call: ToolCall) -> Self {
        Self {
            needs_id: false,
            call,
        }
    }
}

/// A handle to a reported tool call, for reporting changes to it. The handle is cheap to clone, and dropping it reports
/// nothing. See "Updating" on the specification's page "Tool Calls".
#[derive(Debug, Clone)]
pub struct ToolCallHandle {
    session: Session,
    id: ToolCallId,
}

impl ToolCallHandle {
    pub(crate) fn new(session: Session, id: ToolCallId) -> Self {
        Self { session, id }
    }

    /// Returns the id of the tool call, unique in its session.
    #[must_use]
    pub fn id(&self) -> &ToolCallId {
        &self.id
    }

    /// Creates an empty update to fill in and pass to [`send_update`](Self::send_update).
    #[must_use]
    pub fn new_update(&self) -> ToolCallUpdate {
        ToolCallUpdate::new(&self.id)
    }

    /// Sends any update of the tool call, such as a new title.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn send_update(&self, update: ToolCallUpdate) -> Result<()> {
        self.session
            .send_update(SessionUpdate::ToolCallUpdate(update.into()))
            .await
    }

    /// Reports that the call is running (`in_progress`).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn start(&self) -> Result<()> {
        self.send_update(self.new_update().status(ToolCallStatus::InProgress))
            .await
    }

    /// Replaces the call's content. See "Content" on the specification's page "Tool Calls".
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn set_content(&self, content: Vec<ToolCallContent>) -> Result<()> {
        self.send_update(self.new_update().content(content)).await
    }

    /// Reports that the call succeeded (`completed`).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn complete(&self) -> Result<()> {
        self.send_update(self.new_update().status(ToolCallStatus::Completed))
            .await
    }

    /// Reports that the call was cancelled with its turn, and replaces its content with `content`. Version 1 has no
    /// such status, so version 1 clients see a failed call with a note about the cancellation.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn cancel(&self, mut content: Vec<ToolCallContent>) -> Result<()> {
        let status = if self.session.client().is_v2() {
            // The conversion to version 1 does not change this status.
            ToolCallStatus::from(CANCELLED_STATUS)
        } else {
            content.push(ContentBlock::text("Cancelled.").into());
            ToolCallStatus::Failed
        };
        self.send_update(self.new_update().status(status).content(content))
            .await
    }

    /// Reports that the call failed (`failed`), and replaces its content with the reason.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn fail(&self, why: impl Into<String>) -> Result<()> {
        let why = ToolCallContent::from(ContentBlock::text(why));
        self.send_update(
            self.new_update()
                .status(ToolCallStatus::Failed)
                .content(vec![why]),
        )
        .await
    }
}
