//! `session/load`, which opens an existing session and replays it. In version 2, this is `session/resume` with
//! `replayFrom`.

use acp_wire::{MessageHandler, Request, v1};

use crate::agent::Agent;
use crate::agent::open_session::ReopenMode;
use crate::agent::session::{OpenedSession, Session};
use crate::agent::side::AgentSide;
use crate::dialect::OpenSessionRequest;
use crate::error::Result;
use crate::pending_request::{PendingRequest, UnsupportedMethod};
use crate::session_setup::SessionSetup;

/// A handler for `session/load`, which opens an existing session and replays it. In version 2, this is `session/resume`
/// with `replayFrom`. See "Loading Sessions" on the specification's page "Session Setup".
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait LoadSession<S = ()>: Send + Sync {
    /// Replays a session by sending every message and tool call in its history through `session`.
    ///
    /// # Errors
    /// The session does not exist, or it cannot be opened. If the client already had the session open, it stays open
    /// unchanged.
    fn load(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> impl Future<Output = Result<OpenedSession<S>>> + Send;
}

impl<S> LoadSession<S> for UnsupportedMethod {
    async fn load(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession<S>> {
        match *self {}
    }
}

offered_by! { load_session: v1::LoadSessionRequest }

impl<A: Agent> MessageHandler<v1::LoadSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::LoadSessionRequest) {
        let id = request.session_id.clone();
        self.reopen(
            id,
            request.into_setup(),
            ReopenMode::Load,
            v1::LoadSessionRequest::METHOD,
        );
    }
}
