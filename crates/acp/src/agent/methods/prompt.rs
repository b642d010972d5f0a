//! `session/prompt`, which starts a turn. See `agent/prompt_turn.rs` for the code that runs it.

use acp_wire::{MessageHandler, v1, v2};

use crate::agent::Agent;
use crate::agent::side::AgentSide;
use crate::agent::turn::Prompt;
use crate::pending_request::PendingRequest;

impl<A: Agent> MessageHandler<v1::PromptRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v1::PromptRequest) {
        let prompt = Prompt {
            content: request.prompt,
            meta: request.meta,
        };
        self.side
            .prompt(&request.session_id, prompt, self.responder);
    }
}

impl<A: Agent> MessageHandler<v2::PromptRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: v2::PromptRequest) {
        let prompt = Prompt {
            content: request.prompt,
            meta: request.meta,
        };
        self.side
            .prompt(&request.session_id, prompt, self.responder);
    }
}
