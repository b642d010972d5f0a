//! The progress of a version 2 agent's turn, from the prompt to the end of the work.
//!
//! The response to `session/prompt` only says that the message was accepted. `state_update` reports the end of the
//! work:
//!
//! ```text
//!   sent ──response──▶ accepted ──running──▶ working ──idle──▶ finished
//!     └───running──▶ working, not accepted ──idle──▶ done, not accepted ──response──▶ finished
//! ```
//!
//! An earlier `idle`, still on its way when the prompt was sent, does not end the turn: it arrives before any work
//! was reported and has no stop reason, or it arrives before the response.

use acp_wire::v1::StopReason;
use acp_wire::v2::{self, StateUpdate};
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// The result of a turn.
pub(crate) type TurnResult = Result<StopReason>;

/// A prompt that the agent works on.
#[derive(Debug)]
pub(crate) struct PendingTurn {
    accepted: bool,
    is_working: bool,
    /// The turn's result, if the work ended before the response arrived.
    early_result: Option<TurnResult>,
    /// The sender that passes the result to the waiting future.
    sender: Option<oneshot::Sender<TurnResult>>,
}

/// A turn that has ended. Dropping it sends the result to the waiting future.
#[derive(Debug)]
pub(crate) struct FinishedTurn {
    result: Option<TurnResult>,
    sender: Option<oneshot::Sender<TurnResult>>,
}

impl FinishedTurn {
    pub(crate) fn stop_reason(&self) -> Option<&StopReason> {
        self.result.as_ref()?.as_ref().ok()
    }
}

impl Drop for FinishedTurn {
    fn drop(&mut self) {
        if let (Some(waiting), Some(end)) = (self.sender.take(), self.result.take()) {
            // Fails if the future was dropped.
            let _ = waiting.send(end);
        }
    }
}

impl PendingTurn {
    pub(crate) fn new(waiting: oneshot::Sender<TurnResult>) -> Self {
        Self {
            accepted: false,
            is_working: false,
            early_result: None,
            sender: Some(waiting),
        }
    }

    /// Records that the agent has accepted the prompt. Returns the turn if it has already ended.
    pub(crate) fn accept(&mut self) -> Option<FinishedTurn> {
        self.accepted = true;
        let end = self.early_result.take()?;
        Some(self.finish(end))
    }

    /// Applies a state that the agent reported. Returns the turn if the state ended it.
    pub(crate) fn apply_state(&mut self, state: &StateUpdate) -> Option<FinishedTurn> {
        let StateUpdate::Idle(idle) = state else {
            // An unknown state may be a busy one.
            self.is_working = true;
            self.early_result = None;
            return None;
        };
        let ends = self.is_working || self.accepted && idle.stop_reason.is_some();
        if !ends {
            return None;
        }
        self.is_working = false;
        let end = turn_result(idle);
        if self.accepted {
            Some(self.finish(end))
        } else {
            self.early_result = Some(end);
            None
        }
    }

    /// Ends the turn with an error, because the connection has closed.
    pub(crate) fn fail(&mut self, error: Error) -> FinishedTurn {
        self.finish(Err(error))
    }

    fn finish(&mut self, end: TurnResult) -> FinishedTurn {
        FinishedTurn {
            result: Some(end),
            sender: self.sender.take(),
        }
    }
}

/// Returns the turn result that an idle state reports.
fn turn_result(idle: &v2::IdleStateUpdate) -> TurnResult {
    match &idle.stop_reason {
        Some(v2::StopReason::Error) => Err(Error::Rpc(idle.error.clone().unwrap_or_else(|| {
            acp_wire::jsonrpc::Error::internal("the agent failed without giving a reason")
        }))),
        Some(reason) => Ok(reason.as_str().into()),
        None => Ok(StopReason::EndTurn),
    }
}
