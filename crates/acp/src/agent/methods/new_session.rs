//! `session/new`, which opens a new session.

use std::sync::Arc;

use acp_wire::{MessageHandler, v1, v2};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::dialect::OpenSessionRequest;
use crate::pending_request::PendingRequest;
use crate::session_setup::SessionSetup;

impl<A: Agent> MessageHandler<v1::NewSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::NewSessionRequest) {
        self.new_session(request.into_setup());
    }
}

impl<A: Agent> MessageHandler<v2::NewSessionRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v2::NewSessionRequest) {
        self.new_session(request.into_setup());
    }
}

impl<A: Agent> PendingRequest<AgentSide<A>> {
    fn new_session(self, setup: SessionSetup) {
        let side = Arc::clone(&self.side);
        self.responder
            .spawn_with_responder(|responder| side.new_session(setup, responder));
    }
}
