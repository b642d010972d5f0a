//! `session/delete`, which deletes a session permanently.

use acp_wire::v1::{DeleteSessionRequest, DeleteSessionResponse, SessionId};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `session/delete`, which deletes a session permanently.
pub trait DeleteSession: Send + Sync {
    /// Deletes a session. If the session was open, the library has already cancelled its turn, waited for the turn to
    /// end, and closed the session.
    ///
    /// # Errors
    /// The session cannot be deleted. A session that does not exist is not an error.
    fn delete(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;
}

impl DeleteSession for UnsupportedMethod {
    async fn delete(&self, _: &SessionId) -> Result<()> {
        match *self {}
    }
}

offered_by! { delete_session: DeleteSessionRequest }

impl<A: Agent> MessageHandler<DeleteSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, DeleteSessionRequest { session_id, .. }: DeleteSessionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let delete =
                require_handler(side.agent.delete_session(), DeleteSessionRequest::METHOD)?;
            // A session that is not open can also be deleted.
            let _ = side.close(&session_id).await;
            delete.delete(&session_id).await?;
            Ok(DeleteSessionResponse::new())
        });
    }
}
