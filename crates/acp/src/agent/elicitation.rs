//! Elicitation: the agent requests input from the user, in a form or on a web page.

use acp_wire::v1::{
    CompleteElicitationNotification, CreateElicitationRequest, ElicitationAction, ElicitationId,
    ElicitationMode, ElicitationNoContent, ElicitationScope, ToolCallId,
};

use super::initialize::ClientInfo;
use super::session::Session;
use super::turn::Turn;
use crate::error::Result;

/// Checks that the client supports the elicitation mode: a form or a web page.
pub(crate) fn check_mode_support(client: &ClientInfo, mode: &ElicitationMode) -> Result<()> {
    let offered = client.capabilities().elicitation.as_ref();
    match mode {
        ElicitationMode::Form { .. } if offered.is_none_or(|e| e.form.is_none()) => {
            Err(Session::client_capability_error("elicitation.form"))
        }
        ElicitationMode::Url { .. } if offered.is_none_or(|e| e.url.is_none()) => {
            Err(Session::client_capability_error("elicitation.url"))
        }
        _ => Ok(()),
    }
}

impl Turn {
    /// Requests input from the user (`elicitation/create`), optionally for a tool call. If the turn is cancelled in the
    /// meantime, returns [`ElicitationAction::Cancel`] at once.
    ///
    /// # Errors
    /// The client does not support the mode ([`Error::Unsupported`](crate::Error::Unsupported)), the client returned an
    /// error, or the connection has ended.
    pub async fn elicit(
        &self,
        message: impl Into<String>,
        mode: ElicitationMode,
        tool_call: Option<ToolCallId>,
    ) -> Result<ElicitationAction> {
        check_mode_support(self.session().client(), &mode)?;
        let scope = ElicitationScope::Session {
            session_id: self.id().clone(),
            tool_call_id: tool_call,
        };
        let request = CreateElicitationRequest::new(message, mode, scope);
        let answer = self.wait_for_user(self.connection().request(&request));
        match answer.await? {
            Some(answer) => Ok(answer.action),
            None => Ok(ElicitationAction::Cancel(ElicitationNoContent::default())),
        }
    }
}

impl Session {
    /// Reports that the user has completed an elicitation on a web page (`elicitation/complete`).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn complete_elicitation(&self, id: impl Into<ElicitationId>) -> Result<()> {
        self.connection()
            .notify(&CompleteElicitationNotification::new(id))
            .await
    }
}
