//! `session/close`, which frees a session's resources.

use acp_wire::v1::{CloseSessionRequest, CloseSessionResponse, SessionId};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `session/close`, which frees a session's resources.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait CloseSession<S = ()>: Send + Sync {
    /// Frees any resources that dropping the state does not free. The session's turn has already been cancelled and has
    /// ended, and the library has removed the session. The state is dropped after this call. Archiving or deleting an
    /// open session also calls this method first.
    ///
    /// # Errors
    /// The resources cannot be freed. The session is closed anyway.
    fn close(&self, state: &S, session: &SessionId) -> impl Future<Output = Result<()>> + Send;
}

impl<S: Sync> CloseSession<S> for UnsupportedMethod {
    async fn close(&self, _: &S, _: &SessionId) -> Result<()> {
        match *self {}
    }
}

offered_by! { close_session: CloseSessionRequest }

impl<A: Agent> MessageHandler<CloseSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, CloseSessionRequest { session_id, .. }: CloseSessionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            if side.client_info().is_v2() {
                // Every agent of version 2 supports `session/close`. Closing a closed session does nothing.
                if side.session(&session_id).is_err() {
                    return Ok(CloseSessionResponse::new());
                }
            } else {
                require_handler(side.agent.close_session(), CloseSessionRequest::METHOD)?;
            }
            side.close(&session_id).await?;
            Ok(CloseSessionResponse::new())
        });
    }
}

impl<A: Agent> AgentSide<A> {
    /// Cancels a session's turn, removes the session, and has the agent free its resources.
    pub(super) async fn close(&self, id: &SessionId) -> Result<()> {
        let state = self.remove_session(id).await?;
        match (self.agent.close_session(), state) {
            (Some(close), Some(state)) => close.close(&state, id).await,
            _ => Ok(()),
        }
    }
}
