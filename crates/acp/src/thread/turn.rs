//! Tracks a thread's turn, from the prompt to the end of the work.
//!
//! In version 1, the response to `session/prompt` ends the turn. In version 2, the response only confirms that the
//! message was accepted, and `state_update` reports the end of the work:
//!
//! ```text
//!   sent ──response──▶ accepted ──running──▶ working ──idle──▶ finished
//!     └───running──▶ working, not accepted ──idle──▶ done, not accepted ──response──▶ finished
//! ```
//!
//! An earlier `idle` that was still on its way when the prompt was sent does not end the turn. It arrives before the
//! response, or it arrives before any work was reported and has no stop reason.

use acp_wire::jsonrpc;
use acp_wire::v1::{ContentBlock, MessageId, StopReason, Usage};
use acp_wire::v2::{self, StateUpdate};

use super::Thread;
use crate::update::Update;

/// The result of a turn: its stop reason, or an error from the agent.
pub type TurnResult = Result<StopReason, jsonrpc::Error>;

/// The progress of a running turn.
#[derive(Debug, Clone, Default)]
pub(super) struct TurnProgress {
    is_accepted: bool,
    is_working: bool,
    /// The turn's result, if the turn ended before the response to the prompt arrived.
    early_result: Option<TurnResult>,
}

impl TurnProgress {
    /// Applies a state reported by the agent, and returns the turn's result if the state ends the turn.
    fn apply_state(&mut self, state: &StateUpdate) -> Option<TurnResult> {
        let StateUpdate::Idle(idle) = state else {
            // In an unknown state, the agent may be busy.
            self.is_working = true;
            self.early_result = None;
            return None;
        };
        let ends = self.is_working || self.is_accepted && idle.stop_reason.is_some();
        if !ends {
            return None;
        }
        self.is_working = false;
        let result = turn_result(idle);
        if self.is_accepted {
            return Some(result);
        }
        self.early_result = Some(result);
        None
    }
}

/// Reads the turn's result from the idle state that ended it.
fn turn_result(idle: &v2::IdleStateUpdate) -> TurnResult {
    match &idle.stop_reason {
        Some(v2::StopReason::Error) => Err(idle.error.clone().unwrap_or_else(|| {
            jsonrpc::Error::internal("the agent failed without giving a reason")
        })),
        Some(reason) => Ok(reason.as_str().into()),
        None => Ok(StopReason::EndTurn),
    }
}

impl Thread {
    /// Returns `true` if a turn started by this client is running.
    pub(crate) fn is_turn_running(&self) -> bool {
        self.turn.is_some()
    }

    /// Starts a turn, and adds the user's message.
    pub fn begin_turn(&mut self, prompt: &[ContentBlock]) {
        self.revision += 1;
        self.turn = Some(TurnProgress::default());
        self.stop_reason = None;
        self.turn_usage = None;
        self.add_prompt_echo(prompt);
        self.enforce_limit();
    }

    /// Adds a message that the user has sent to the running turn. If the agent sends it back right after that, it is
    /// not shown twice.
    pub fn add_user_message(&mut self, content: &[ContentBlock]) {
        self.revision += 1;
        self.add_prompt_echo(content);
        self.enforce_limit();
    }

    /// Records that a version 2 agent has accepted the prompt, and the id of the prompt's message. Returns the turn's
    /// result if it has already ended.
    pub(crate) fn accept_prompt(&mut self, message: &MessageId) -> Option<TurnResult> {
        self.confirm_prompt_echo(message);
        let turn = self.turn.as_mut()?;
        turn.is_accepted = true;
        let result = turn.early_result.take();
        self.end_turn_with(result)
    }

    /// Applies an update to the thread and its turn, and returns the turn's result if the update ended it.
    pub(crate) fn receive(&mut self, update: &Update) -> Option<TurnResult> {
        self.apply_to_items(update);
        let Update::StateUpdate(state) = update else {
            return None;
        };
        let result = self.turn.as_mut()?.apply_state(state);
        self.end_turn_with(result)
    }

    fn end_turn_with(&mut self, result: Option<TurnResult>) -> Option<TurnResult> {
        let result = result?;
        self.end_turn(result.as_ref().ok());
        Some(result)
    }

    /// Records the tokens that the turn has used, as reported at its end.
    pub(crate) fn set_turn_usage(&mut self, usage: Option<&Usage>) {
        if usage.is_some() && self.fits_within(&usage) {
            self.revision += 1;
            self.turn_usage = usage.cloned();
        }
    }

    /// Ends the running turn. `stop_reason` is `None` if the turn failed.
    pub fn end_turn(&mut self, stop_reason: Option<&StopReason>) {
        self.revision += 1;
        self.turn = None;
        self.echo = None;
        self.stop_reason = stop_reason
            .filter(|reason| self.fits_within(reason))
            .cloned();
    }
}
