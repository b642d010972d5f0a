//! `session/close`: frees what a session holds.

use acp_wire::v1::{CloseSessionRequest, CloseSessionResponse, SessionId};
use acp_wire::{Handle, Request};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{NotOffered, PendingRequest, offered};

/// `session/close`: frees what a session holds.
pub trait CloseSession: Send + Sync {
    /// Frees it. Its turn has been cancelled and has ended, and the library has forgotten it.
    ///
    /// # Errors
    /// What it holds cannot be freed. It is closed all the same.
    fn close_session(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;
}

impl CloseSession for NotOffered {
    async fn close_session(&self, _: &SessionId) -> Result<()> {
        match *self {}
    }
}

impl<A: Agent> Handle<CloseSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, CloseSessionRequest { session_id, .. }: CloseSessionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let close = side.agent.close_session();
            if side.client_info().speaks_v2() {
                // Every agent of version 2 closes, and what is closed already stays so.
                let _ = side.forget(&session_id).await;
            } else {
                offered(close, CloseSessionRequest::METHOD)?;
                side.forget(&session_id).await?;
            }
            if let Some(close) = close {
                close.close_session(&session_id).await?;
            }
            Ok(CloseSessionResponse::new())
        });
    }
}
