//! `tool_call/cancel` and `terminal/cancel`, which cancel one tool call or terminal without ending the turn.

use acp_wire::MessageHandler;
use acp_wire::v1::{TerminalId, ToolCallId};
use acp_wire::v2::{
    CancelTerminalRequest, CancelTerminalResponse, CancelToolCallRequest, CancelToolCallResponse,
};

use crate::agent::Agent;
use crate::agent::session::Session;
use crate::agent::side::AgentSide;
use crate::error::{Error, Result};
use crate::pending_request::{PendingRequest, UnsupportedMethod};

/// A handler for `tool_call/cancel` and `terminal/cancel`, which cancel one tool call or terminal without ending the
/// turn. Only in version 2, in drafts newer than August 2026.
///
/// The agent declares which tool calls and terminals can be cancelled in their `capabilities`, with
/// [`Session::send_update`]. It also reports a cancelled tool call or terminal with an update.
///
/// `S` is the agent's [`State`](super::super::Agent::State).
pub trait CancelWork<S = ()>: Send + Sync {
    /// Cancels a tool call, without waiting for it to end.
    ///
    /// # Errors
    /// The id is unknown or the call has ended: return [`Error::invalid_params`](crate::Error::invalid_params).
    fn cancel_tool_call(
        &self,
        state: &S,
        session: &Session,
        tool_call: &ToolCallId,
    ) -> impl Future<Output = Result<()>> + Send;

    /// Terminates the command in a terminal, without waiting for it to exit.
    ///
    /// # Errors
    /// The id is unknown or the command has exited: return [`Error::invalid_params`](crate::Error::invalid_params).
    fn cancel_terminal(
        &self,
        state: &S,
        session: &Session,
        terminal: &TerminalId,
    ) -> impl Future<Output = Result<()>> + Send;
}

impl<S: Sync> CancelWork<S> for UnsupportedMethod {
    async fn cancel_tool_call(&self, _: &S, _: &Session, _: &ToolCallId) -> Result<()> {
        match *self {}
    }
    async fn cancel_terminal(&self, _: &S, _: &Session, _: &TerminalId) -> Result<()> {
        match *self {}
    }
}

impl<A: Agent> MessageHandler<CancelToolCallRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: CancelToolCallRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let (session, state) = side.open_session(&request.session_id)?;
            let id = request.tool_call_id;
            let Some(work) = side.agent.cancel_work() else {
                return Err(not_cancellable_error("tool call", id.as_str()));
            };
            work.cancel_tool_call(&state, &session, &id).await?;
            Ok(CancelToolCallResponse::new())
        });
    }
}

impl<A: Agent> MessageHandler<CancelTerminalRequest, ()> for PendingRequest<AgentSide<A>> {
    fn handle(self, request: CancelTerminalRequest) {
        let Self { side, responder } = self;
        responder.spawn(async move {
            let (session, state) = side.open_session(&request.session_id)?;
            let id = request.terminal_id;
            let Some(work) = side.agent.cancel_work() else {
                return Err(not_cancellable_error("terminal", id.as_str()));
            };
            work.cancel_terminal(&state, &session, &id).await?;
            Ok(CancelTerminalResponse::new())
        });
    }
}

/// Creates the error for a tool call or terminal that cannot be cancelled.
fn not_cancellable_error(what: &str, id: &str) -> Error {
    Error::invalid_params(format!("the {what} {id} cannot be cancelled"))
}
