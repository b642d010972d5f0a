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
pub(crate) type End = Result<StopReason>;

/// A prompt that is being worked on.
#[derive(Debug)]
pub(crate) struct Prompting {
    taken: bool,
    at_work: bool,
    /// The work was done before the answer came.
    done: Option<End>,
    /// Who waits for the end.
    waiting: Option<oneshot::Sender<End>>,
}

/// A turn that is over. Whoever waits is told when this is dropped.
#[derive(Debug)]
pub(crate) struct Over {
    end: Option<End>,
    waiting: Option<oneshot::Sender<End>>,
}

impl Over {
    pub(crate) fn stop_reason(&self) -> Option<&StopReason> {
        self.end.as_ref()?.as_ref().ok()
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        if let (Some(waiting), Some(end)) = (self.waiting.take(), self.end.take()) {
            // Nobody waits any more: the future was dropped.
            let _ = waiting.send(end);
        }
    }
}

impl Prompting {
    pub(crate) fn new(waiting: oneshot::Sender<End>) -> Self {
        Self {
            taken: false,
            at_work: false,
            done: None,
            waiting: Some(waiting),
        }
    }

    /// The prompt has been answered.
    pub(crate) fn taken(&mut self) -> Option<Over> {
        self.taken = true;
        let end = self.done.take()?;
        Some(self.over(end))
    }

    /// The agent says what it does.
    pub(crate) fn state(&mut self, state: &StateUpdate) -> Option<Over> {
        let StateUpdate::Idle(idle) = state else {
            // A state this library does not know may be a busy one.
            self.at_work = true;
            self.done = None;
            return None;
        };
        let ends = self.at_work || self.taken && idle.stop_reason.is_some();
        if !ends {
            return None;
        }
        self.at_work = false;
        let end = end(idle);
        if self.taken {
            Some(self.over(end))
        } else {
            self.done = Some(end);
            None
        }
    }

    /// The connection is over.
    pub(crate) fn failed(&mut self, error: Error) -> Over {
        self.over(Err(error))
    }

    fn over(&mut self, end: End) -> Over {
        Over {
            end: Some(end),
            waiting: self.waiting.take(),
        }
    }
}

/// What an agent that has stopped working says of it.
fn end(idle: &v2::IdleStateUpdate) -> End {
    match &idle.stop_reason {
        Some(v2::StopReason::Error) => Err(Error::Rpc(idle.error.clone().unwrap_or_else(|| {
            acp_wire::jsonrpc::Error::internal("the agent failed and does not say why")
        }))),
        Some(reason) => Ok(reason.as_str().into()),
        None => Ok(StopReason::EndTurn),
    }
}
