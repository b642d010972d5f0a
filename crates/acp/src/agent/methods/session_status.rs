//! `session/status`, which asks whether the agent has a session in memory.

use acp_wire::v1::{SessionId, SessionStatus, SessionStatusRequest, SessionStatusResponse};
use acp_wire::{MessageHandler, Request, jsonrpc, v2};
use serde_json::json;

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `session/status`, which asks whether the agent has a session in memory. Unstable.
pub trait SessionStatusHandler: Send + Sync {
    /// Returns the status of a session that is not open on this connection, without opening or changing it. For open
    /// sessions, the library itself responds. If the session does not exist, returns `None`, and the client gets an
    /// error.
    ///
    /// # Errors
    /// The status cannot be determined.
    fn status(
        &self,
        session: &SessionId,
    ) -> impl Future<Output = Result<Option<SessionStatus>>> + Send;
}

impl SessionStatusHandler for UnsupportedMethod {
    async fn status(&self, _: &SessionId) -> Result<Option<SessionStatus>> {
        match *self {}
    }
}

offered_by! { session_status: SessionStatusRequest }

impl<A: Agent> MessageHandler<SessionStatusRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, SessionStatusRequest { session_id, .. }: SessionStatusRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let answer = side.session_status(&session_id).await?;
            Ok(SessionStatusResponse::new(answer.status))
        });
    }
}

impl<A: Agent> MessageHandler<v2::SessionStatusRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, v2::SessionStatusRequest { session_id, .. }: v2::SessionStatusRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move { side.session_status(&session_id).await });
    }
}

impl<A: Agent> AgentSide<A> {
    async fn session_status(&self, id: &SessionId) -> Result<v2::SessionStatusResponse> {
        let offer = self.agent.session_status();
        let check = require_handler(offer, SessionStatusRequest::METHOD)?;
        if let Ok(session) = self.session(id) {
            let answer = v2::SessionStatusResponse::new(SessionStatus::Open);
            return Ok(answer.state(session.current_state_update()));
        }
        match check.status(id).await? {
            Some(status) => Ok(v2::SessionStatusResponse::new(status)),
            None => {
                let error = jsonrpc::Error::resource_not_found(format!("session {id}"));
                Err(error.data(json!({ "sessionId": id })).into())
            }
        }
    }
}
