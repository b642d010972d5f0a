//! What was decided about the agent's actions, for the exit code and for `--output`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_host::{ActionDecision, Denier};

/// The maximum number of denied actions to remember.
const MAX_DENIALS: usize = 1000;

/// The decisions on the agent's actions, shared by the run and its client.
#[derive(Clone, Default)]
pub(super) struct RunDecisions(Arc<Mutex<DecisionCounts>>);

/// How often actions were allowed and denied.
#[derive(Default)]
pub(super) struct DecisionCounts {
    pub(super) allowed: usize,
    pub(super) denied: usize,
    /// Whether the user, who was asked, has denied one. They know.
    pub(super) is_denied_by_user: bool,
    /// The first denied actions.
    pub(super) denials: Vec<ActionDecision>,
}

impl RunDecisions {
    pub(super) fn add(&self, decision: ActionDecision) {
        let mut counts = self.counts();
        if decision.denied_by.is_none() {
            counts.allowed += 1;
            return;
        }
        counts.denied += 1;
        counts.is_denied_by_user |= decision.denied_by == Some(Denier::User);
        if counts.denials.len() < MAX_DENIALS {
            counts.denials.push(decision);
        }
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, DecisionCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
