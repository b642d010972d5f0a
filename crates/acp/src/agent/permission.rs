//! `session/request_permission`, which asks the user to permit an action.

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

/// The user's answer to [`Turn::ask`], if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the action must not be performed unless the user allowed it"]
pub enum PermissionAnswer {
    /// The user allowed the action.
    Allowed,
    /// The user rejected the action. Continue the turn without the action.
    Rejected,
    /// There is no answer, because the turn was cancelled or no user is present. End the turn.
    Cancelled,
}

impl PermissionAnswer {
    /// Returns `true` if the user allowed the action.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }
}

impl Turn {
    /// Asks the user to allow a tool call once. The user sees only what you have reported about the call, so report
    /// everything that it will do before you ask. See "Requesting Permission" on the specification's page "Tool Calls".
    ///
    /// To offer other options, such as "always", use [`request_permission`](Self::request_permission).
    ///
    /// # Errors
    /// The client returned an error, or the connection has ended.
    pub async fn ask(&self, call: &ToolCallHandle) -> Result<PermissionAnswer> {
        const ALLOW_KIND: PermissionOptionKind = PermissionOptionKind::AllowOnce;
        const REJECT_KIND: PermissionOptionKind = PermissionOptionKind::RejectOnce;
        // Use each option's kind as its id, because some clients treat any other id as a rejection.
        let options = [("Allow", ALLOW_KIND), ("Reject", REJECT_KIND)]
            .map(|(name, kind)| PermissionOption::new(kind.to_string(), name, kind))
            .to_vec();
        let outcome = self.request_permission(call.new_update(), options).await?;
        Ok(match outcome {
            RequestPermissionOutcome::Selected(option)
                if option.option_id.as_str() == ALLOW_KIND.to_string() =>
            {
                PermissionAnswer::Allowed
            }
            // An option that was not offered does not allow the call.
            RequestPermissionOutcome::Selected(_) => PermissionAnswer::Rejected,
            _ => PermissionAnswer::Cancelled,
        })
    }

    /// Sends a permission request. If the turn is cancelled in the meantime, returns
    /// [`RequestPermissionOutcome::Cancelled`] at once, even if the client does not respond. See "Requesting
    /// Permission" on the specification's page "Tool Calls".
    ///
    /// # Errors
    /// The client returned an error, or the connection has ended.
    pub async fn request_permission(
        &self,
        tool_call: ToolCallUpdate,
        options: Vec<PermissionOption>,
    ) -> Result<RequestPermissionOutcome> {
        let (session, conn) = (self.id(), self.connection());
        let answer = if self.client().is_v2() {
            let known = self.tool_call_title(&tool_call.tool_call_id);
            let title = tool_call.title.clone().or(known);
            let title = title.unwrap_or_else(|| tool_call.tool_call_id.to_string());
            let subject = update::ToolCallPatch::from(tool_call);
            let subject = v2::ToolCallPermissionSubject::new(subject);
            let request = v2::RequestPermissionRequest::new(session, title, options)
                .subject(v2::RequestPermissionSubject::ToolCall(subject));
            self.wait_for_user(conn.request(&request)).await?
        } else {
            let request = RequestPermissionRequest::new(session, tool_call, options);
            // A client that cancels the turn also responds to the pending permission requests of the turn. They are not
            // cancelled separately.
            let ask = RequestOptions {
                cancel_on_drop: false,
                ..RequestOptions::default()
            };
            self.wait_for_user(conn.request_with(&request, ask, |_| ()))
                .await?
        };
        Ok(answer.map_or_else(RequestPermissionOutcome::cancelled, |answer| answer.outcome))
    }
}
