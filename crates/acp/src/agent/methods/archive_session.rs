//! `session/archive` and `session/unarchive`: hides a session from lists, and shows it in them again.

use acp_wire::v1::{
    ArchiveSessionRequest, ArchiveSessionResponse, SessionId, UnarchiveSessionRequest,
    UnarchiveSessionResponse,
};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::session::Session;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_offer};

/// `session/archive` and `session/unarchive`: hides a session from lists, and shows it in them again. Unstable.
///
/// An agent that offers it also reads `archived` of [`ListSessionsRequest`](acp_wire::v1::ListSessionsRequest), and sets
/// `archived` of every [`SessionInfo`](acp_wire::v1::SessionInfo) that it lists.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait ArchiveSession<S = ()>: Send + Sync {
    /// Archives a session: it keeps its id and its history. If it was open, it has been closed: its turn has been cancelled
    /// and has ended. One that is archived already stays so.
    ///
    /// # Errors
    /// There is no such session
    /// ([`jsonrpc::Error::RESOURCE_NOT_FOUND`](acp_wire::jsonrpc::Error::RESOURCE_NOT_FOUND)).
    fn archive(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;

    /// Lists a session again, which has a state if it is open. It is not opened by this. One that is not archived stays
    /// so.
    ///
    /// # Errors
    /// There is no such session.
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

impl<A: Agent> MessageHandler<ArchiveSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, ArchiveSessionRequest { session_id, .. }: ArchiveSessionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let offer = side.agent.archive_session();
            let archive = require_offer(offer, ArchiveSessionRequest::METHOD)?;
            // A session that is not open can be archived as well.
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
            let archive = require_offer(offer, UnarchiveSessionRequest::METHOD)?;
            let session = side.session(&session_id).ok();
            let state = session.as_ref().and_then(Session::state_of::<A>);
            archive.unarchive(state.as_deref(), &session_id).await?;
            Ok(UnarchiveSessionResponse::new())
        });
    }
}
