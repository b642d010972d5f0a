//! `session/archive` and `session/unarchive`: hides a session from lists, and shows it in them again.

use acp_wire::v1::{
    ArchiveSessionRequest, ArchiveSessionResponse, SessionId, UnarchiveSessionRequest,
    UnarchiveSessionResponse,
};
use acp_wire::{Handle, Request};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::error::Result;
use crate::pending_request::{NotOffered, PendingRequest, offered};

/// `session/archive` and `session/unarchive`: hides a session from lists, and shows it in them again. Unstable.
///
/// An agent that offers it also reads `archived` of [`ListSessionsRequest`](acp_wire::v1::ListSessionsRequest), and sets
/// `archived` of every [`SessionInfo`](acp_wire::v1::SessionInfo) that it lists.
pub trait ArchiveSession: Send + Sync {
    /// Archives a session: it keeps its id and its history. If it was open, it has been closed: its turn has been cancelled
    /// and has ended. One that is archived already stays so.
    ///
    /// # Errors
    /// There is no such session
    /// ([`jsonrpc::Error::RESOURCE_NOT_FOUND`](acp_wire::jsonrpc::Error::RESOURCE_NOT_FOUND)).
    fn archive(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;

    /// Lists a session again. It is not opened. One that is not archived stays so.
    ///
    /// # Errors
    /// There is no such session.
    fn unarchive(&self, session: &SessionId) -> impl Future<Output = Result<()>> + Send;
}

impl ArchiveSession for NotOffered {
    async fn archive(&self, _: &SessionId) -> Result<()> {
        match *self {}
    }
    async fn unarchive(&self, _: &SessionId) -> Result<()> {
        match *self {}
    }
}

impl<A: Agent> Handle<ArchiveSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, ArchiveSessionRequest { session_id, .. }: ArchiveSessionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let offer = side.agent.archive_session();
            let archive = offered(offer, ArchiveSessionRequest::METHOD)?;
            // A session that is not open can be archived as well.
            let _ = side.close(&session_id).await;
            archive.archive(&session_id).await?;
            Ok(ArchiveSessionResponse::new())
        });
    }
}

impl<A: Agent> Handle<UnarchiveSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, UnarchiveSessionRequest { session_id, .. }: UnarchiveSessionRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let offer = side.agent.archive_session();
            let archive = offered(offer, UnarchiveSessionRequest::METHOD)?;
            archive.unarchive(&session_id).await?;
            Ok(UnarchiveSessionResponse::new())
        });
    }
}
