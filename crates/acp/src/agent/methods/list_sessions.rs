//! `session/list`, which lists sessions one page at a time.

use acp_wire::v1::{ListSessionsRequest, ListSessionsResponse, SessionArchiveFilter, SessionInfo};
use acp_wire::{MessageHandler, Request};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::error::{Error, Result};
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `session/list`, which lists sessions one page at a time.
pub trait ListSessions: Send + Sync {
    /// Returns a page of sessions, starting at `request.cursor`. If `request.cwd` is given, lists only sessions with
    /// that working directory. The agent chooses the page size and the cursor for the next page. An agent that
    /// implements [`ArchiveSession`](super::ArchiveSession) also applies `request.archived`.
    ///
    /// # Errors
    /// The cursor is invalid, or the sessions cannot be read.
    fn list(
        &self,
        request: ListSessionsRequest,
    ) -> impl Future<Output = Result<ListSessionsResponse>> + Send;
}

impl ListSessions for UnsupportedMethod {
    async fn list(&self, _: ListSessionsRequest) -> Result<ListSessionsResponse> {
        match *self {}
    }
}

offered_by! { list_sessions: ListSessionsRequest }

impl<A: Agent> MessageHandler<ListSessionsRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: ListSessionsRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            if let Some(SessionArchiveFilter::Unknown(filter)) = &request.archived {
                return Err(Error::invalid_params(format!(
                    "unknown archive filter {filter:?}"
                )));
            }
            match side.agent.list_sessions() {
                // Every agent of version 2 supports `session/list`, and lists at least its open sessions.
                None if side.client_info().is_v2() => Ok(side.list_open_sessions(&request)),
                offer => {
                    let offer = require_handler(offer, ListSessionsRequest::METHOD)?;
                    offer.list(request).await
                }
            }
        });
    }
}

impl<A: Agent> AgentSide<A> {
    fn list_open_sessions(&self, request: &ListSessionsRequest) -> ListSessionsResponse {
        let sessions = self.lock_sessions();
        let here = sessions
            .values()
            .map(|entry| &entry.session)
            .filter(|s| request.cwd.as_deref().is_none_or(|cwd| cwd == s.cwd()))
            // Archived sessions have been closed.
            .filter(|_| request.archived != Some(SessionArchiveFilter::Only));
        let archived = self.agent.archive_session().map(|_| false);
        let mut infos: Vec<SessionInfo> = here
            .map(|session| {
                let mut info = SessionInfo::new(session.id(), session.cwd());
                info.archived = archived;
                info
            })
            .collect();
        infos.sort_by(|a, b| a.session_id.cmp(&b.session_id));
        ListSessionsResponse::new(infos)
    }
}
