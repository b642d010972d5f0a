//! The sessions a client has open, and their threads.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_wire::v1::{SessionConfigOption, SessionId, SessionModeState};
use tokio_util::sync::CancellationToken;

use crate::thread::ThreadHandle;

/// How many sessions that nobody has opened yet may have threads. Agents send updates for a session
/// ahead of the answer that names it; one that invents sessions does not fill memory.
const UNCLAIMED: usize = 64;

#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<SessionId, State>>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) thread: ThreadHandle,
    /// Someone has opened it.
    claimed: bool,
    pub(crate) replaying: bool,
    /// Of the turn that runs, or ran last: cancelled when the turn is.
    pub(crate) turn: CancellationToken,
    pub(crate) running: bool,
    /// Modes are set by `session/set_mode`, for the agent has no config option for them.
    pub(crate) modes_only: bool,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a session, or changes it.
    pub(crate) fn with<T>(&self, id: &SessionId, f: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.lock().get_mut(id).map(f)
    }

    /// The session that an update is for, be it opened already or not.
    pub(crate) fn receive<T>(&self, id: &SessionId, f: impl FnOnce(&mut State) -> T) -> Option<T> {
        let mut sessions = self.lock();
        if let Some(state) = sessions.get_mut(id) {
            return Some(f(state));
        }
        if sessions.values().filter(|state| !state.claimed).count() >= UNCLAIMED {
            return None;
        }
        Some(f(sessions.entry(id.clone()).or_default()))
    }

    /// Someone opens the session.
    pub(crate) fn claim(&self, id: &SessionId) -> ThreadHandle {
        let mut sessions = self.lock();
        let state = sessions.entry(id.clone()).or_default();
        state.claimed = true;
        state.thread.clone()
    }

    /// Someone opens the session and has it replayed: what was seen of it before is not part of it.
    pub(crate) fn claim_for_replay(&self, id: &SessionId) -> ThreadHandle {
        let state = State { claimed: true, replaying: true, ..State::default() };
        let thread = state.thread.clone();
        self.lock().insert(id.clone(), state);
        thread
    }

    /// The session is open, with what the agent says of it.
    pub(crate) fn opened(
        &self,
        id: &SessionId,
        modes: Option<&SessionModeState>,
        options: Option<&[SessionConfigOption]>,
    ) {
        self.claim(id);
        self.with(id, |state| {
            state.replaying = false;
            state.modes_only = modes.is_some()
                && !options.unwrap_or_default().iter().any(|option| {
                    option.category == Some(acp_wire::v1::SessionConfigOptionCategory::Mode)
                });
            if modes.is_some() || options.is_some() {
                state.thread.change(|thread| thread.set_up(modes, options));
            }
        });
    }

    pub(crate) fn remove(&self, id: &SessionId) {
        if let Some(state) = self.lock().remove(id) {
            state.turn.cancel();
        }
    }

    /// The connection is over: turns have failed.
    pub(crate) fn closed(&self) {
        for state in self.lock().values_mut() {
            state.turn.cancel();
            if std::mem::take(&mut state.running) {
                state.thread.change(|thread| thread.end_turn(None));
            }
        }
    }
}
