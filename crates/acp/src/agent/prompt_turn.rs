//! Handles prompts, and runs each turn from request to response.

use std::sync::Arc;

use acp_wire::jsonrpc;
use acp_wire::v1::{ContentBlock, PromptResponse, SessionId, StopReason};
use acp_wire::v2;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::session::Session;
use super::side::AgentSide;
use super::turn::{Prompt, Turn};
use super::turn_queue::TurnTicket;
use crate::capabilities::missing_prompt_capability;
use crate::connection::Responder;
use crate::error::{Error, Result};

/// A guard that keeps a turn registered with its session until it is dropped.
struct ActiveTurnGuard {
    session: Session,
    token: CancellationToken,
}

impl ActiveTurnGuard {
    fn new(turn: &Turn) -> Self {
        let (session, token) = (turn.session().clone(), turn.token().clone());
        session.register_turn(token.clone());
        Self { session, token }
    }
}

impl Drop for ActiveTurnGuard {
    fn drop(&mut self) {
        self.token.cancel();
        self.session.remove_ended_turns();
    }
}

/// A guard for a turn that a version 2 client sees as running. If the guard is dropped without a call to
/// [`end`](Self::end), for example because the agent panicked, it reports that the turn failed, so that the client does
/// not wait forever.
struct ReportedTurnGuard {
    session: Session,
    ended: bool,
}

impl ReportedTurnGuard {
    async fn end(mut self, idle: v2::IdleStateUpdate) {
        self.ended = true;
        self.session.end_message();
        self.session.set_working(false);
        // This fails only if the connection has ended.
        let _ = self
            .session
            .send_state_update(v2::StateUpdate::Idle(idle))
            .await;
    }
}

impl Drop for ReportedTurnGuard {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.session.end_message();
        self.session.set_working(false);
        let error = jsonrpc::Error::internal("the turn stopped unexpectedly");
        let idle = v2::IdleStateUpdate::new()
            .stop_reason(v2::StopReason::Error)
            .error(error);
        self.session
            .send_state_update_now(v2::StateUpdate::Idle(idle));
    }
}

impl<A: Agent> AgentSide<A> {
    /// Starts a turn. The connection's reader calls this directly, so that a later cancellation finds the turn, and
    /// prompts run in order of arrival.
    pub(crate) fn prompt(
        self: &Arc<Self>,
        session: &SessionId,
        prompt: Prompt,
        responder: Responder,
    ) {
        let conn = responder.connection().clone();
        let session = match self.session(session) {
            Ok(session) => session,
            Err(error) => return responder.spawn(async move { Err::<(), _>(error) }),
        };
        let limit = conn.0.limits.prompts;
        if session.turn_count() > limit {
            let text = format!("too many queued prompts in this session: the limit is {limit}");
            return responder.spawn(async move { Err::<(), _>(Error::internal(text)) });
        }
        let v2 = session.client().is_v2();
        let place = session.take_turn_ticket();
        let turn = Turn::new(session, CancellationToken::new());
        let running = ActiveTurnGuard::new(&turn);
        let side = Arc::clone(self);
        conn.spawn_until_aborted(Box::pin(async move {
            if v2 {
                side.prompt_v2(turn, place, prompt, &running, responder)
                    .await;
            } else {
                side.prompt_v1(turn, place, prompt, running, responder)
                    .await;
            }
        }));
    }

    /// Runs a turn in version 1, where the response ends the turn.
    async fn prompt_v1(
        &self,
        turn: Turn,
        place: TurnTicket,
        prompt: Prompt,
        running: ActiveTurnGuard,
        responder: Responder,
    ) {
        let request_cancelled = responder.cancellation_token().clone();
        let worked = async {
            let _mine = place.wait().await;
            if turn.is_cancelled() {
                return Ok(StopReason::Cancelled);
            }
            self.check_content(&prompt.content)?;
            let session = turn.session();
            let id = session.new_message_id();
            drop(session.record_prompt(&id, &prompt.content).await?);
            self.run_turn(turn, prompt).await
        };
        // If the client cancels the request, the turn is cancelled.
        let cancelled_by_request = async {
            request_cancelled.cancelled().await;
            running.token.cancel();
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            biased;
            () = cancelled_by_request => return,
            result = worked => result,
        };
        drop(running);
        let result = if request_cancelled.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            result.map(PromptResponse::new)
        };
        responder.respond(result).await;
    }

    /// Runs a turn in version 2. The response, sent once the previous turn has ended, confirms only that the prompt is
    /// part of the conversation. Updates report the results and the end of the turn.
    async fn prompt_v2(
        &self,
        turn: Turn,
        place: TurnTicket,
        prompt: Prompt,
        running: &ActiveTurnGuard,
        responder: Responder,
    ) {
        let request_cancelled = responder.cancellation_token().clone();
        let session = turn.session().clone();
        let refused = if prompt.content.is_empty() {
            Err(Error::invalid_params("the prompt has no content blocks"))
        } else {
            self.check_content(&prompt.content)
        };
        if let Err(error) = refused {
            return responder.respond(Err::<(), _>(error)).await;
        }
        let turn_guard = tokio::select! {
            biased;
            () = request_cancelled.cancelled() => None,
            () = running.token.cancelled() => None,
            turn_guard = place.wait() => Some(turn_guard),
        };
        let Some(_turn_guard) = turn_guard else {
            return responder.respond(Err::<(), _>(Error::Cancelled)).await;
        };
        let id = session.new_message_id();
        let message = v2::Message::new(&id).content(prompt.content.clone());
        // The prompt must be recorded before it is reported as part of the conversation.
        let order_guard = match session.record_prompt(&id, &prompt.content).await {
            Ok(order_guard) => order_guard,
            Err(error) => return responder.respond(Err::<(), _>(error)).await,
        };
        responder.respond(Ok(v2::PromptResponse::new(id))).await;
        session.set_working(true);
        // This fails only if the connection has ended, and then the turn is dropped.
        let _ = session.send_recorded_user_message(message).await;
        drop(order_guard);
        let _ = session
            .send_state_update(v2::StateUpdate::Running(v2::RunningStateUpdate::new()))
            .await;
        let working = ReportedTurnGuard {
            session: session.clone(),
            ended: false,
        };
        let mut idle = v2::IdleStateUpdate::new();
        match self.run_turn(turn, prompt).await {
            Ok(reason) => idle.stop_reason = Some(reason.as_str().into()),
            Err(error) => {
                idle.stop_reason = Some(v2::StopReason::Error);
                idle.error = Some(error.into_rpc());
            }
        }
        working.end(idle).await;
    }

    /// Calls [`Agent::prompt`], and drops its future if the turn is cancelled.
    async fn run_turn(&self, turn: Turn, prompt: Prompt) -> Result<StopReason> {
        turn.session().end_message();
        let state = turn.session().require_agent_state::<A>()?;
        let watch = turn.clone();
        // The agent can accept steering messages until this is dropped.
        let _prompting = turn.session().begin_prompt(turn.token().clone());
        tokio::select! {
            biased;
            result = self.agent.prompt(&state, turn, prompt) => match result {
                _ if watch.is_cancelled() => Ok(StopReason::Cancelled),
                Err(Error::Cancelled) => Ok(StopReason::Cancelled),
                // The client cancelled a request of the agent, and the agent passed the error on.
                Err(Error::Rpc(e)) if e.code == jsonrpc::Error::REQUEST_CANCELLED => {
                    Ok(StopReason::Cancelled)
                }
                result => result,
            },
            () = watch.cancelled_by_default() => Ok(StopReason::Cancelled),
        }
    }

    /// Checks that the agent accepts every content block of a prompt.
    pub(super) fn check_content(&self, prompt: &[ContentBlock]) -> Result<()> {
        match missing_prompt_capability(&self.agent.prompt_capabilities(), prompt) {
            Some(missing) => Err(Error::invalid_params(format!(
                "the prompt has content that requires the prompt capability {missing}, which the agent does not support"
            ))),
            None => Ok(()),
        }
    }
}
