//! `session/load`: opens an old session and replays it. In version 2 it is `session/resume` with `replayFrom`.

use acp_wire::{Handle, Request, v1};

use crate::agent::Agent;
use crate::agent::opening::Reopen;
use crate::agent::session::{Session, SessionOpened};
use crate::agent::side::AgentSide;
use crate::dialect::OpensSession;
use crate::error::Result;
use crate::pending_request::{NotOffered, PendingRequest};
use crate::session_setup::SessionSetup;

/// `session/load`: opens an old session and replays it. Session setup, "Loading Sessions"; in version 2
/// `session/resume` with `replayFrom`.
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait LoadSession<S = ()>: Send + Sync {
    /// Sends every message and tool call of the session's past through `session`, then returns.
    ///
    /// # Errors
    /// There is no such session, or it cannot be opened. The client then has no session of this id, or
    /// the one that was open before.
    fn load(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<SessionOpened<S>>> + Send;
}

impl<S> LoadSession<S> for NotOffered {
    async fn load(&self, _: &Session, _: SessionSetup) -> Result<SessionOpened<S>> {
        match *self {}
    }
}

impl<A: Agent> Handle<v1::LoadSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::LoadSessionRequest) {
        let id = request.session_id.clone();
        self.reopen(
            id,
            request.setup(),
            Reopen::Load,
            v1::LoadSessionRequest::METHOD,
        );
    }
}
