//! A turn of an agent that speaks version 2, from the prompt to the end of the work.
//!
//! The answer to `session/prompt` only says that the message has become part of the conversation; that
//! the work is done is told by `state_update`:
//!
//! ```text
//!   sent ──answer──▶ taken ──running──▶ at work ──idle──▶ over
//!     └───running──▶ at work, not taken yet ──idle──▶ done, not taken yet ──answer──▶ over
//! ```
//!
//! An `idle` from before, on its way when the prompt was sent, is neither: it comes before anything was
//! seen to run and tells no stop reason, or it comes before the answer.

use acp_wire::v1::StopReason;
use acp_wire::v2::{self, StateUpdate};
use tokio::sync::oneshot;

use crate::error::{Error, Result};

/// How a turn ended.
pub(crate) type TurnResult = Result<StopReason>;

/// A prompt that is being worked on.
#[derive(Debug)]
pub(crate) struct PendingTurn {
    accepted: bool,
    is_working: bool,
    /// The work was done before the answer came.
    early_result: Option<TurnResult>,
    /// Who waits for the end.
    sender: Option<oneshot::Sender<TurnResult>>,
}

/// A turn that is over. Whoever waits is told when this is dropped.
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

    /// The prompt has been answered.
    pub(crate) fn accept(&mut self) -> Option<FinishedTurn> {
        self.accepted = true;
        let end = self.early_result.take()?;
        Some(self.finish(end))
    }

    /// The agent says what it does.
    pub(crate) fn apply_state(&mut self, state: &StateUpdate) -> Option<FinishedTurn> {
        let StateUpdate::Idle(idle) = state else {
            // A state this library does not know may be a busy one.
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

    /// The connection is over.
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

/// What an agent that has stopped working says of it.
fn turn_result(idle: &v2::IdleStateUpdate) -> TurnResult {
    match &idle.stop_reason {
        Some(v2::StopReason::Error) => Err(Error::Rpc(idle.error.clone().unwrap_or_else(|| {
            acp_wire::jsonrpc::Error::internal("the agent failed without giving a reason")
        }))),
        Some(reason) => Ok(reason.as_str().into()),
        None => Ok(StopReason::EndTurn),
    }
}
