//! `session/archive` and `session/unarchive`, which hide a session from lists and show it again.

use acp_wire::v1::{
    ArchiveSessionRequest, ArchiveSessionResponse, SessionId, UnarchiveSessionRequest,
    UnarchiveSessionResponse,
};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::session::Session;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `session/archive` and `session/unarchive`, which hide a session from lists and show it again.
/// Unstable.
///
/// An agent that has this handler also applies `archived` of
/// [`ListSessionsRequest`](acp_wire::v1::ListSessionsRequest), and sets `archived` of every
/// [`SessionInfo`](acp_wire::v1::SessionInfo) that it lists.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait ArchiveSession<S = ()>: Send + Sync {
    /// Archives a session, keeping its id and history. If the session was open, the library has already cancelled its
    /// turn, waited for the turn to end, and closed the session. Does nothing if the session is already archived.
    ///
    /// # Errors
    /// The session does not exist
    /// ([`jsonrpc::Error::RESOURCE_NOT_FOUND`](acp_wire::jsonrpc::Error::RESOURCE_NOT_FOUND)).
    fn archive(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;

    /// Lists an archived session again, without opening it. `state` is the session's state if it is open. Does nothing
    /// if the session is not archived.
    ///
    /// # Errors
    /// The session does not exist.
    fn unarchive(
        &self,
        state: Option<&S>,
        session: &SessionId,
    ) -> impl Future<Output = Result<()>> + Send;
}

impl<S: Sync> ArchiveSession<S> for UnsupportedMethod {
    async fn archive(&self, _: &SessionId) -> Result<()> {
        match *self {}
    }
    async fn unarchive(&self, _: Option<&S>, _: &SessionId) -> Result<()> {
        match *self {}
    }
}

offered_by! { archive_session: ArchiveSessionRequest, UnarchiveSessionRequest }

impl<A: Agent> MessageHandler<ArchiveSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, ArchiveSessionRequest { session_id, .. }: ArchiveSessionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let offer = side.agent.archive_session();
            let archive = require_handler(offer, ArchiveSessionRequest::METHOD)?;
            // A session that is not open can also be archived.
            if side.session(&session_id).is_ok() {
                side.close(&session_id).await?;
            }
            archive.archive(&session_id).await?;
            Ok(ArchiveSessionResponse::new())
        });
    }
}

impl<A: Agent> MessageHandler<UnarchiveSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, UnarchiveSessionRequest { session_id, .. }: UnarchiveSessionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let offer = side.agent.archive_session();
            let archive = require_handler(offer, UnarchiveSessionRequest::METHOD)?;
            let session = side.session(&session_id).ok();
            let state = session.as_ref().and_then(Session::agent_state::<A>);
            archive.unarchive(state.as_deref(), &session_id).await?;
            Ok(UnarchiveSessionResponse::new())
        });
    }
}
