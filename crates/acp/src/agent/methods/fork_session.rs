//! `session/fork`: a new session that begins as a copy of another.

use std::sync::Arc;

use acp_wire::v1::SessionId;
use acp_wire::{Handle, v1, v2};

use crate::agent::Agent;
use crate::agent::session::{Session, SessionOpened};
use crate::agent::side::AgentSide;
use crate::dialect::OpensSession;
use crate::error::Result;
use crate::pending_request::{NotOffered, PendingRequest};
use crate::session_setup::SessionSetup;

/// `session/fork`: a new session that begins as a copy of another. Unstable.
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait ForkSession<S = ()>: Send + Sync {
    /// Copies the session `from`; `session` is the new one.
    ///
    /// # Errors
    /// There is no session `from`, or it cannot be copied.
    fn fork(
        &self,
        from: &SessionId,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<SessionOpened<S>>> + Send;
}

impl<S> ForkSession<S> for NotOffered {
    async fn fork(&self, _: &SessionId, _: &Session, _: SessionSetup) -> Result<SessionOpened<S>> {
        match *self {}
    }
}

impl<A: Agent> Handle<v1::ForkSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::ForkSessionRequest) {
        self.fork(request.session_id.clone(), request.setup());
    }
}

impl<A: Agent> Handle<v2::ForkSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v2::ForkSessionRequest) {
        self.fork(request.session_id.clone(), request.setup());
    }
}

impl<A: Agent> PendingRequest<AgentSide<A>> {
    fn fork(self, from: SessionId, setup: SessionSetup) {
        let side = Arc::clone(&self.side);
        self.responder
            .work(async move |responder| side.fork(from, setup, responder).await);
    }
}
