//! `session/fork`, which opens a new session as a copy of another.

use std::sync::Arc;

use acp_wire::v1::SessionId;
use acp_wire::{MessageHandler, v1, v2};

use crate::agent::Agent;
use crate::agent::session::{OpenedSession, Session};
use crate::agent::side::AgentSide;
use crate::dialect::OpenSessionRequest;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod};
use crate::session_setup::SessionSetup;

/// A handler for `session/fork`, which opens a new session as a copy of another. Unstable.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait ForkSession<S = ()>: Send + Sync {
    /// Opens `session` as a copy of the session `from`.
    ///
    /// # Errors
    /// The session `from` does not exist, or it cannot be copied.
    fn fork(
        &self,
        from: &SessionId,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<OpenedSession<S>>> + Send;
}

impl<S> ForkSession<S> for UnsupportedMethod {
    async fn fork(&self, _: &SessionId, _: &Session, _: SessionSetup) -> Result<OpenedSession<S>> {
        match *self {}
    }
}

offered_by! { fork_session: v1::ForkSessionRequest }

impl<A: Agent> MessageHandler<v1::ForkSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::ForkSessionRequest) {
        self.fork(request.session_id.clone(), request.into_setup());
    }
}

impl<A: Agent> MessageHandler<v2::ForkSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v2::ForkSessionRequest) {
        self.fork(request.session_id.clone(), request.into_setup());
    }
}

impl<A: Agent> PendingRequest<AgentSide<A>> {
    fn fork(self, from: SessionId, setup: SessionSetup) {
        let side = Arc::clone(&self.side);
        self.responder
            .spawn_with_responder(|responder| side.fork(from, setup, responder));
    }
}
