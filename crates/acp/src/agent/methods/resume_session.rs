//! `session/resume`: opens an old session. In version 2 it may be asked to replay it as well.

use std::sync::Arc;

use acp_wire::v1::SessionId;
use acp_wire::{Handle, Request, v1, v2};

use crate::agent::Agent;
use crate::agent::opening::Reopen;
use crate::agent::session::{Session, SessionOpened};
use crate::agent::side::AgentSide;
use crate::dialect::OpensSession;
use crate::error::{Error, Result};
use crate::pending_request::{NotOffered, PendingRequest};
use crate::session_setup::SessionSetup;

/// `session/resume`: opens an old session without replaying it.
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait ResumeSession<S = ()>: Send + Sync {
    /// Opens the session.
    ///
    /// # Errors
    /// As [`LoadSession::load`](super::LoadSession::load).
    fn resume(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<SessionOpened<S>>> + Send;
}

impl<S> ResumeSession<S> for NotOffered {
    async fn resume(&self, _: &Session, _: SessionSetup) -> Result<SessionOpened<S>> {
        match *self {}
    }
}

impl<A: Agent> Handle<v1::ResumeSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::ResumeSessionRequest) {
        let id = request.session_id.clone();
        self.reopen(
            id,
            request.setup(),
            Reopen::Resume,
            v1::ResumeSessionRequest::METHOD,
        );
    }
}

impl<A: Agent> Handle<v2::ResumeSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v2::ResumeSessionRequest) {
        let way = match &request.replay_from {
            None => Reopen::Resume,
            Some(v2::ReplayFrom::Start(_)) => Reopen::Load,
            Some(_) => {
                let error = Error::invalid_params(
                    "this agent replays a session from its start, or not at all",
                );
                return self.refuse(error);
            }
        };
        let id = request.session_id.clone();
        self.reopen(id, request.setup(), way, v2::ResumeSessionRequest::METHOD);
    }
}

impl<A: Agent> PendingRequest<AgentSide<A>> {
    pub(super) fn reopen(
        self,
        id: SessionId,
        setup: SessionSetup,
        way: Reopen,
        method: &'static str,
    ) {
        let side = Arc::clone(&self.side);
        self.responder
            .work(async move |responder| side.reopen(id, setup, way, method, responder).await);
    }
}
