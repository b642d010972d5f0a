//! The table of a client's sessions and their threads.

mod subagents;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_wire::v1::{
    SessionConfigOption, SessionId, SessionModeState, SessionModelState, StopReason,
};
use acp_wire::v2::StateUpdate;
use tokio_util::sync::CancellationToken;

use super::Client;
use super::state::{ErasedState, StateFactory};
use super::turn::{FinishedTurn, PendingTurn};
use crate::error::{CloseReason, Error};
use crate::session_setup::LONGEST_ID;
use crate::thread::{Thread, ThreadHandle};

/// The maximum number of sessions in the table that the client has not opened. Agents may send updates for a session
/// before the response that contains its id. The limit keeps an agent that invents sessions from filling memory.
const UNCLAIMED: usize = 64;

pub(crate) struct ClientSessions {
    table: Mutex<Table>,
    /// The number of pending requests that open a session.
    opening_count: Mutex<usize>,
    /// The size limit of a thread, in bytes.
    thread_limit: usize,
    /// The factory for the client's states. Call it without holding a lock: the client's code may access sessions.
    state_factory: StateFactory,
}

#[derive(Default)]
struct Table {
    entries: HashMap<SessionId, ClientSessionEntry>,
    /// The sessions that the client has not opened. Their number is limited.
    unopened: HashMap<SessionId, Unopened>,
    /// The parent of each subagent. Their number is limited, too.
    parents: HashMap<SessionId, SessionId>,
}

/// A session in the table: its thread, the client's state and the current turn.
#[derive(Default)]
pub(crate) struct ClientSessionEntry {
    pub(crate) thread: ThreadHandle,
    /// The client's own state for the session. `None` once the connection has closed.
    client_state: Option<ErasedState>,
    pub(crate) is_replaying: bool,
    /// The token of the current or last turn. It is cancelled with the turn.
    pub(crate) turn: CancellationToken,
    pub(crate) is_running: bool,
    /// The pending turn, if the agent speaks version 2.
    pending_turn: Option<PendingTurn>,
}

/// The reason why a session that the client has not opened is in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unopened {
    /// The agent has sent an update for the session.
    Unclaimed,
    /// The client may be opening the session. There are at most as many of these as pending requests that open
    /// sessions.
    Provisional,
}

impl Table {
    /// Returns the number of unopened sessions of this kind.
    fn count(&self, kind: Unopened) -> usize {
        self.unopened
            .values()
            .filter(|other| **other == kind)
            .count()
    }
}

/// A pending request that opens a session. While it is pending, the agent may send requests for one session that is
/// not known yet.
pub(crate) struct ClientSessionOpening {
    sessions: Arc<ClientSessions>,
    /// The session's id, if the session already exists.
    id: Option<SessionId>,
}

impl Drop for ClientSessionOpening {
    fn drop(&mut self) {
        self.sessions.end_opening(self.id.as_ref());
    }
}

/// The modes, models and options that the agent reports when a session is opened.
#[derive(Default)]
pub(crate) struct SessionAnnouncement<'a> {
    pub(crate) modes: Option<&'a SessionModeState>,
    pub(crate) models: Option<&'a SessionModelState>,
    pub(crate) options: Option<&'a [SessionConfigOption]>,
}

impl ClientSessionEntry {
    /// Returns the client's own state for the session.
    pub(crate) fn client_state<C: Client>(&self) -> Option<Arc<C::State>> {
        self.client_state.as_ref()?.get::<C>()
    }

    /// Starts a version 2 agent's turn.
    pub(crate) fn begin_prompt(&mut self, prompting: PendingTurn) {
        self.pending_turn = Some(prompting);
    }

    /// Records that the agent has accepted the prompt. Returns the turn if it has already ended.
    pub(crate) fn accept_prompt(&mut self) -> Option<FinishedTurn> {
        let over = self.pending_turn.as_mut()?.accept();
        self.end_finished_turn(over)
    }

    /// Applies a state that the agent reported. Returns the turn if the state ended it.
    pub(crate) fn agent_state(&mut self, state: &StateUpdate) -> Option<FinishedTurn> {
        let Some(prompting) = &mut self.pending_turn else {
            // The agent works on its own. An earlier cancel does not apply to this work.
            if !matches!(state, StateUpdate::Idle(_)) && self.turn.is_cancelled() {
                self.turn = CancellationToken::new();
            }
            return None;
        };
        let over = prompting.apply_state(state);
        self.end_finished_turn(over)
    }

    /// Returns `true` if the agent is working in this session: on a turn, or on work that it started by itself.
    pub(crate) fn is_working(&self) -> bool {
        self.is_running || self.thread.read(Thread::is_running)
    }

    fn end_finished_turn(&mut self, over: Option<FinishedTurn>) -> Option<FinishedTurn> {
        let over = over?;
        self.end_turn(over.stop_reason());
        Some(over)
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.thread.read(|thread| thread.stop_reason().cloned())
    }

    /// Ends the session's turn.
    pub(crate) fn end_turn(&mut self, stop_reason: Option<&StopReason>) {
        self.is_running = false;
        self.pending_turn = None;
        self.thread.change(|thread| thread.end_turn(stop_reason));
    }
}

impl ClientSessions {
    /// Creates an empty table. Each thread stores up to `kept` bytes.
    pub(crate) fn new<C: Client>(kept: usize, client: &Arc<C>) -> Self {
        Self {
            table: Mutex::default(),
            opening_count: Mutex::default(),
            thread_limit: kept,
            state_factory: StateFactory::of(client),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `f` on a session, if the session is known.
    pub(crate) fn with_session<T>(
        &self,
        id: &SessionId,
        f: impl FnOnce(&mut ClientSessionEntry) -> T,
    ) -> Option<T> {
        self.with_known(id, f).ok()
    }

    /// Runs `f` on a session. Returns `f` as the error if the session is not known.
    fn with_known<T, F: FnOnce(&mut ClientSessionEntry) -> T>(
        &self,
        id: &SessionId,
        f: F,
    ) -> Result<T, F> {
        let (done, ended) = {
            let mut sessions = self.lock();
            let Some(state) = sessions.entries.get_mut(id) else {
                return Err(f);
            };
            let ran = state.is_running;
            let done = f(state);
            let ended = (ran && !state.is_running).then(|| state.stop_reason());
            (done, ended)
        };
        if let Some(stop_reason) = ended {
            for session in self.descendants(id).iter().chain([id]) {
                self.notify_turn_ended(session, stop_reason.as_ref());
            }
        }
        Ok(done)
    }

    /// Notifies the client's own state for a session that a turn has ended.
    fn notify_turn_ended(&self, id: &SessionId, stop_reason: Option<&StopReason>) {
        let client = self
            .lock()
            .entries
            .get(id)
            .and_then(|entry| entry.client_state.clone());
        if let Some(client) = client {
            client.turn_ended(stop_reason);
        }
    }

    /// Runs `f` on the session that a message is for, and adds the session if it is unknown.
    pub(crate) fn receive<T>(
        &self,
        id: &SessionId,
        f: impl FnOnce(&mut ClientSessionEntry) -> T,
    ) -> Option<T> {
        let f = match self.with_known(id, f) {
            Ok(done) => return Some(done),
            Err(f) => f,
        };
        let is_full = || self.lock().count(Unopened::Unclaimed) >= UNCLAIMED;
        if id.as_str().len() > LONGEST_ID || is_full() {
            return None;
        }
        self.add(id, ClientSessionEntry::default(), Some(Unopened::Unclaimed));
        self.with_session(id, f)
    }

    /// Starts to open a session: a new one, or the one with this id. Returns `None` if that session is already known.
    pub(crate) fn begin_opening(
        self: &Arc<Self>,
        id: Option<&SessionId>,
    ) -> Option<ClientSessionOpening> {
        let is_known = |id| {
            let sessions = self.lock();
            sessions.entries.contains_key(id)
                && sessions.unopened.get(id) != Some(&Unopened::Unclaimed)
        };
        if id.is_some_and(is_known) {
            return None;
        }
        *self.lock_openings() += 1;
        let opening = ClientSessionOpening {
            sessions: Arc::clone(self),
            id: id.cloned(),
        };
        if let Some(id) = id {
            self.accepts_requests(id);
        }
        Some(opening)
    }

    fn lock_openings(&self) -> MutexGuard<'_, usize> {
        self.opening_count
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an opening whose request has a response or was dropped. Removes provisional sessions that it did not open.
    fn end_opening(&self, id: Option<&SessionId>) {
        let left = {
            let mut openings = self.lock_openings();
            *openings = openings.saturating_sub(1);
            *openings
        };
        let gone: Vec<SessionId> = {
            let sessions = self.lock();
            let provisional = sessions
                .unopened
                .iter()
                .filter(|(_, kind)| **kind == Unopened::Provisional)
                .map(|(id, _)| id);
            match id {
                Some(id) => provisional.filter(|other| *other == id).cloned().collect(),
                None => provisional.skip(left).cloned().collect(),
            }
        };
        for id in gone {
            self.remove(&id);
        }
    }

    /// Returns `true` if the agent may send requests in this session: the client has opened it, or may be opening it.
    pub(crate) fn accepts_requests(&self, id: &SessionId) -> bool {
        {
            let openings = *self.lock_openings();
            let mut sessions = self.lock();
            let has_room = sessions.count(Unopened::Provisional) < openings;
            let is_there = sessions.entries.contains_key(id);
            match sessions.unopened.get_mut(id) {
                None if is_there => return true,
                Some(Unopened::Provisional) => return true,
                _ if !has_room || id.as_str().len() > LONGEST_ID => return false,
                Some(kind) => {
                    *kind = Unopened::Provisional;
                    return true;
                }
                None => {}
            }
        }
        self.add(
            id,
            ClientSessionEntry::default(),
            Some(Unopened::Provisional),
        );
        true
    }

    /// Adds a session, unless it was added concurrently.
    fn add(
        &self,
        id: &SessionId,
        mut entry: ClientSessionEntry,
        unopened: Option<Unopened>,
    ) -> ThreadHandle {
        let thread = entry.thread.clone();
        // All unopened sessions together may store as much as one opened session, and so may all subagents.
        let is_subagent = self.lock().parents.contains_key(id);
        let kept = match unopened {
            None if !is_subagent => self.thread_limit,
            _ => self.thread_limit / UNCLAIMED,
        };
        thread.change(|thread| thread.set_limit(kept));
        entry.client_state = self.state_factory.make(id, &thread);
        let mut sessions = self.lock();
        if let Some(there) = sessions.entries.get(id) {
            let thread = there.thread.clone();
            if unopened.is_none() && sessions.unopened.remove(id).is_some() {
                thread.change(|thread| thread.set_limit(kept));
            }
            // Unlock before dropping the client's state that is not needed.
            drop(sessions);
            return thread;
        }
        sessions.entries.insert(id.clone(), entry);
        sessions
            .unopened
            .extend(unopened.map(|kind| (id.clone(), kind)));
        thread
    }

    /// Marks a session as opened by the client, and returns its thread.
    pub(crate) fn claim(&self, id: &SessionId) -> ThreadHandle {
        {
            let mut sessions = self.lock();
            sessions.unopened.remove(id);
            // Opening a session takes precedence over its announcement as a subagent: it becomes a root session.
            sessions.parents.remove(id);
        }
        let known = self.with_session(id, |state| {
            state
                .thread
                .change(|thread| thread.set_limit(self.thread_limit));
            state.thread.clone()
        });
        known.unwrap_or_else(|| self.add(id, ClientSessionEntry::default(), None))
    }

    /// Marks a session as opened and starts a replay, which replaces the thread's content. Returns the earlier state,
    /// for [`restore`](Self::restore).
    pub(crate) fn claim_for_replay(&self, id: &SessionId) -> Option<ReplayBackup> {
        self.remove_subagents(id);
        let (unopened, parent) = {
            let mut sessions = self.lock();
            (
                sessions.unopened.get(id).copied(),
                sessions.parents.remove(id),
            )
        };
        let before = self.with_session(id, |state| ReplayBackup {
            unopened,
            parent,
            thread: state.thread.change(Thread::begin_replay),
        });
        self.claim(id);
        self.with_session(id, |state| state.is_replaying = true);
        before
    }

    /// Restores a session to its earlier state after the replay failed.
    pub(crate) fn restore(&self, id: &SessionId, before: Option<ReplayBackup>) {
        let Some(before) = before else {
            self.remove(id);
            return;
        };
        {
            let mut sessions = self.lock();
            let unopened = before.unopened.map(|kind| (id.clone(), kind));
            sessions.unopened.extend(unopened);
            let parent = before.parent.map(|parent| (id.clone(), parent));
            sessions.parents.extend(parent);
        }
        self.with_session(id, |state| {
            state.is_replaying = false;
            state
                .thread
                .change(|thread| thread.end_replay(before.thread));
        });
    }

    /// Applies the modes, models and options that the agent reports when a session has been opened.
    pub(crate) fn apply_announcement(&self, id: &SessionId, opened: &SessionAnnouncement<'_>) {
        self.claim(id);
        for child in self.descendants(id) {
            self.with_session(&child, |state| state.is_replaying = false);
        }
        self.with_session(id, |state| {
            state.is_replaying = false;
            let SessionAnnouncement {
                modes,
                models,
                options,
            } = *opened;
            if modes.is_some() || models.is_some() || options.is_some() {
                state
                    .thread
                    .change(|thread| thread.apply_session_setup(modes, models, options));
            }
        });
    }

    /// Removes a closed session and its subagents.
    pub(crate) fn remove(&self, id: &SessionId) {
        self.remove_subagents(id);
        self.remove_one(id);
    }

    fn remove_one(&self, id: &SessionId) {
        // The client's state is dropped after the lock is released.
        let removed = {
            let mut sessions = self.lock();
            sessions.unopened.remove(id);
            sessions.parents.remove(id);
            sessions.entries.remove(id)
        };
        if let Some(entry) = removed {
            entry.turn.cancel();
            if let Some(client) = entry.client_state {
                client.closed();
            }
        }
    }

    /// Closes all sessions when the connection closes: turns fail, and the client's own states are dropped.
    pub(crate) fn close_all(&self, reason: &CloseReason) {
        // These are dropped and notified after the lock is released.
        let mut over: Vec<FinishedTurn> = Vec::new();
        let mut states = Vec::new();
        for entry in self.lock().entries.values_mut() {
            entry.turn.cancel();
            let prompting = entry.pending_turn.as_mut();
            over.extend(prompting.map(|p| p.fail(Error::Closed(reason.clone()))));
            let ran = entry.is_running;
            if ran {
                entry.end_turn(None);
            }
            entry.thread.change(Thread::set_disconnected);
            states.extend(entry.client_state.take().map(|state| (state, ran)));
        }
        for (state, ran) in states {
            if ran {
                state.turn_ended(None);
            }
            state.closed();
        }
    }
}

/// The state of a session before a replay.
pub(crate) struct ReplayBackup {
    unopened: Option<Unopened>,
    parent: Option<SessionId>,
    thread: Thread,
}
