//! `session/resume`, which opens an existing session. In version 2, it can also replay the session.

use std::sync::Arc;

use acp_wire::v1::SessionId;
use acp_wire::{MessageHandler, Request, v1, v2};

use crate::agent::Agent;
use crate::agent::open_session::ReopenMode;
use crate::agent::session::{OpenedSession, Session};
use crate::agent::side::AgentSide;
use crate::dialect::OpenSessionRequest;
use crate::error::{Error, Result};
use crate::pending_request::{PendingRequest, UnsupportedMethod};
use crate::session_setup::SessionSetup;

/// A handler for `session/resume`, which opens an existing session without a replay.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait ResumeSession<S = ()>: Send + Sync {
    /// Opens an existing session without a replay.
    ///
    /// # Errors
    /// The same as for [`LoadSession::load`](super::LoadSession::load).
    fn resume(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<OpenedSession<S>>> + Send;
}

impl<S> ResumeSession<S> for UnsupportedMethod {
    async fn resume(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession<S>> {
        match *self {}
    }
}

offered_by! { resume_session: v1::ResumeSessionRequest }

impl<A: Agent> MessageHandler<v1::ResumeSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::ResumeSessionRequest) {
        let id = request.session_id.clone();
        self.reopen(
            id,
            request.into_setup(),
            ReopenMode::Resume,
            v1::ResumeSessionRequest::METHOD,
        );
    }
}

impl<A: Agent> MessageHandler<v2::ResumeSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v2::ResumeSessionRequest) {
        let open_method = match &request.replay_from {
            None => ReopenMode::Resume,
            Some(v2::ReplayFrom::Start(_)) => ReopenMode::Load,
            Some(_) => {
                let error =
                    Error::invalid_params("this agent can only replay a session from the start");
                return self.reject(error);
            }
        };
        let id = request.session_id.clone();
        self.reopen(
            id,
            request.into_setup(),
            open_method,
            v2::ResumeSessionRequest::METHOD,
        );
    }
}

impl<A: Agent> PendingRequest<AgentSide<A>> {
    pub(super) fn reopen(
        self,
        id: SessionId,
        setup: SessionSetup,
        open_method: ReopenMode,
        method: &'static str,
    ) {
        let side = Arc::clone(&self.side);
        self.responder.spawn_with_responder(async move |responder| {
            side.reopen(id, setup, open_method, method, responder).await
        });
    }
}
