//! `_session/steering`: a message for the turn that runs.

use acp_wire::v1::{SteerRequest, SteerResponse, SteeringOutcome};
use acp_wire::{MessageHandler, Request, v2};

use crate::agent::side::AgentSide;
use crate::agent::{Agent, Prompt, Session};
use crate::error::{Error, Result};
use crate::pending_request::{PendingRequest, UnsupportedMethod, require_offer};

/// `_session/steering`: a message for the turn that runs, an extension that several agents have. Clients find it by
/// `_meta.steering.supported` of the answer to `initialize`.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait SteerTurn<S = ()>: Send + Sync {
    /// Puts a message into the turn that runs, for the model to read as soon as it can. `false` if the turn takes no more:
    /// the client then sends the message as a prompt.
    ///
    /// Called only while [`Agent::prompt`] works in this session and nobody has cancelled it. Must not send updates of the
    /// session, which wait until this has returned: they come behind the message. A message that was taken belongs to the
    /// conversation: the [`Recorder`](super::super::Recorder) has it.
    ///
    /// # Errors
    /// The message cannot be taken.
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

/// No turn takes the message.
const NO_TURN: &str = "noRunningTurn";

impl<A: Agent> MessageHandler<SteerRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: SteerRequest) {
        let Self { side, responder } = self;
        let conn = responder.connection().clone();
        let aborted = conn.0.abort_token.clone();
        // Not dropped when the client takes the request back: what the agent has taken must be recorded.
        conn.0.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = aborted.cancelled() => {}
                answer = side.steer(request) => responder.answer(answer).await,
            }
        });
    }
}

impl<A: Agent> AgentSide<A> {
    async fn steer(&self, request: SteerRequest) -> Result<SteerResponse> {
        let steer = require_offer(self.agent.steer_turn(), SteerRequest::METHOD)?;
        let session = self.session(&request.session_id)?;
        if request.prompt.is_empty() {
            return Err(Error::invalid_params("the prompt is empty"));
        }
        self.check_content(&request.prompt)?;
        let message = Prompt {
            content: request.prompt,
            meta: request.meta,
        };
        // What the turn says to it comes behind it, in what is recorded and in what is told.
        let in_order = session.lock_order().await;
        let state = session.state_of::<A>();
        let taken = match state.filter(|_| session.is_working()) {
            Some(state) => steer.steer(&state, &session, &message).await?,
            None => false,
        };
        if !taken {
            // A turn of its own has no request that its end could be told by.
            return Ok(SteerResponse::new(SteeringOutcome::PromptRequired).reason(NO_TURN));
        }
        let id = session.new_message_id();
        session.record_user_message(&id, &message.content).await?;
        if session.client().is_v2() {
            let told = v2::Message::new(&id).content(message.content);
            session.send_user_message(told).await?;
        }
        drop(in_order);
        Ok(SteerResponse::new(SteeringOutcome::Injected))
    }
}
