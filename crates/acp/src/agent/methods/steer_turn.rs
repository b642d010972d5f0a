//! `_session/steering`, which adds a message to the running turn.

use acp_wire::v1::{SteerRequest, SteerResponse, SteeringOutcome};
use acp_wire::{MessageHandler, Request, v2};

use crate::agent::side::AgentSide;
use crate::agent::{Agent, Prompt, Session};
use crate::error::{Error, Result};
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_handler};

/// A handler for `_session/steering`, which adds a message to the running turn. Several agents support this extension
/// and declare it as `_meta.steering.supported` in the response to `initialize`.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait SteerTurn<S = ()>: Send + Sync {
    /// Adds a message to the running turn, for the model to read as soon as possible. Returns `false` if the turn no
    /// longer accepts messages. The client then sends the message as a prompt.
    ///
    /// This is called only while [`Agent::prompt`] is running in the session and the turn is not cancelled. Do not send
    /// updates of the session from here: updates must follow the message, so they wait until this method returns. An
    /// accepted message is part of the conversation and goes to the [`Recorder`](super::super::Recorder).
    ///
    /// # Errors
    /// The message cannot be accepted.
    fn steer(
        &self,
        state: &S,
        session: &Session,
        message: &Prompt,
    ) -> impl Future<Output = Result<bool>> + Send;
}

impl<S: Sync> SteerTurn<S> for UnsupportedMethod {
    async fn steer(&self, _: &S, _: &Session, _: &Prompt) -> Result<bool> {
        match *self {}
    }
}

offered_by! { steer_turn: SteerRequest }

/// The reason sent to the client if no running turn accepts the message.
const NO_RUNNING_TURN: &str = "noRunningTurn";

impl<A: Agent> MessageHandler<SteerRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: SteerRequest) {
        let Self { side, responder } = self;
        let conn = responder.connection().clone();
        // Spawned so that it is not dropped when the client cancels the request: an accepted message must be recorded.
        conn.spawn_until_aborted(Box::pin(async move {
            let answer = side.steer(request).await;
            responder.respond(answer).await;
        }));
    }
}

impl<A: Agent> AgentSide<A> {
    async fn steer(&self, request: SteerRequest) -> Result<SteerResponse> {
        let steer = require_handler(self.agent.steer_turn(), SteerRequest::METHOD)?;
        let session = self.session(&request.session_id)?;
        if request.prompt.is_empty() {
            return Err(Error::invalid_params("the prompt has no content blocks"));
        }
        self.check_content(&request.prompt)?;
        let message = Prompt {
            content: request.prompt,
            meta: request.meta,
        };
        // Updates that follow from the message come after it, both in the recording and on the wire.
        let order_guard = session.lock_order().await;
        let state = session.agent_state::<A>();
        let taken = match state.filter(|_| session.is_working()) {
            Some(state) => steer.steer(&state, &session, &message).await?,
            None => false,
        };
        if !taken {
            // Do not start a turn, because there would be no request whose response could report its end.
            return Ok(SteerResponse::new(SteeringOutcome::PromptRequired).reason(NO_RUNNING_TURN));
        }
        let id = session.new_message_id();
        session.record_user_message(&id, &message.content).await?;
        if session.client().is_v2() {
            let message_update = v2::Message::new(&id).content(message.content);
            session.send_recorded_user_message(message_update).await?;
        }
        drop(order_guard);
        Ok(SteerResponse::new(SteeringOutcome::Injected))
    }
}
