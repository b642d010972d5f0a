//! `session/request_permission`: asking the person before something is done.

use acp_wire::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    ToolCallUpdate,
};
use acp_wire::v2;

use super::tool_call::ToolCallHandle;
use super::turn::Turn;
use crate::connection::RequestOptions;
use crate::error::Result;
use crate::update;

/// What the person said to [`Turn::ask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what was not allowed must not be done"]
pub enum PermissionAnswer {
    /// Do it.
    Allowed,
    /// Do not do it, and go on.
    Rejected,
    /// Nobody answers: the turn is cancelled, or there is nobody to ask. End the turn.
    Cancelled,
}

impl PermissionAnswer {
    /// Whether the person allows it.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }
}

impl Turn {
    /// Asks the person to allow this tool call once: Tool calls, "Requesting Permission". They see only what has been
    /// reported of it, so report everything it will do before you ask.
    ///
    /// [`request_permission`](Self::request_permission) offers other answers, such as "always".
    ///
    /// # Errors
    /// The client's error, or the end of the connection.
    pub async fn ask(&self, call: &ToolCallHandle) -> Result<PermissionAnswer> {
        const ALLOW: PermissionOptionKind = PermissionOptionKind::AllowOnce;
        const REJECT: PermissionOptionKind = PermissionOptionKind::RejectOnce;
        // The id of each is its kind: there are clients that take any other id for a no.
        let options = [("Allow", ALLOW), ("Reject", REJECT)]
            .map(|(name, kind)| PermissionOption::new(kind.to_string(), name, kind))
            .to_vec();
        let outcome = self.request_permission(call.new_update(), options).await?;
        Ok(match outcome {
            RequestPermissionOutcome::Selected(option)
                if option.option_id.as_str() == ALLOW.to_string() =>
            {
                PermissionAnswer::Allowed
            }
            // What was not offered allows nothing.
            RequestPermissionOutcome::Selected(_) => PermissionAnswer::Rejected,
            _ => PermissionAnswer::Cancelled,
        })
    }

    /// Asks for permission: tool calls, "Requesting Permission". A turn that is cancelled meanwhile
    /// gives [`RequestPermissionOutcome::Cancelled`] at once, whether or not the client answers.
    ///
    /// # Errors
    /// The client's error, or the end of the connection.
    pub async fn request_permission(
        &self,
        tool_call: ToolCallUpdate,
        options: Vec<PermissionOption>,
    ) -> Result<RequestPermissionOutcome> {
        let (session, conn) = (self.id(), self.connection());
        let answer = if self.client().is_v2() {
            let known = self.title_of(&tool_call.tool_call_id);
            let title = tool_call.title.clone().or(known);
            let title = title.unwrap_or_else(|| tool_call.tool_call_id.to_string());
            let subject = update::ToolCallPatch::from(tool_call);
            let subject = v2::ToolCallPermissionSubject::new(subject);
            let request = v2::RequestPermissionRequest::new(session, title, options)
                .subject(v2::RequestPermissionSubject::ToolCall(subject));
            self.wait_for_person(conn.request(&request)).await?
        } else {
            let request = RequestPermissionRequest::new(session, tool_call, options);
            // The client answers an open request by itself when it cancels the turn, so the request is
            // not cancelled on top of that.
            let ask = RequestOptions {
                cancel_on_drop: false,
                ..RequestOptions::default()
            };
            self.wait_for_person(conn.request_with(&request, ask, |_| ()))
                .await?
        };
        Ok(answer.map_or_else(RequestPermissionOutcome::cancelled, |answer| answer.outcome))
    }
}
