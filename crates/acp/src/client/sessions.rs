//! The sessions a client has open, and their threads.

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

/// How many sessions that nobody has opened yet may have threads. Agents send updates for a session
/// ahead of the answer that names it; one that invents sessions does not fill memory.
const UNCLAIMED: usize = 64;

pub(crate) struct ClientSessions {
    table: Mutex<Table>,
    /// How many requests that open a session wait for their answers.
    opening_count: Mutex<usize>,
    /// How much a thread keeps, in bytes.
    thread_limit: usize,
    /// The client's code runs outside of the locks, for it may look at sessions itself.
    state_factory: StateFactory,
}

#[derive(Default)]
struct Table {
    entries: HashMap<SessionId, ClientSessionEntry>,
    /// Those that nobody has opened. They are few, however many sessions there are.
    unopened: HashMap<SessionId, Unopened>,
    /// Of sessions that another has made for a part of its work, that other. They are few, too.
    parents: HashMap<SessionId, SessionId>,
}

/// A session, and what is known of it.
#[derive(Default)]
pub(crate) struct ClientSessionEntry {
    pub(crate) thread: ThreadHandle,
    /// What the client keeps of it. Gone when the connection is over.
    client_state: Option<ErasedState>,
    pub(crate) is_replaying: bool,
    /// Of the turn that runs, or ran last: cancelled when the turn is.
    pub(crate) turn: CancellationToken,
    pub(crate) is_running: bool,
    /// What a turn of an agent that speaks version 2 waits for.
    pending_turn: Option<PendingTurn>,
}

/// What is known of a session that nobody has opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unopened {
    /// The agent has named it.
    Unclaimed,
    /// It may be the one that is being opened. There are no more of these than requests that open sessions.
    Provisional,
}

impl Table {
    /// How many sessions there are of a kind that nobody has opened.
    fn count(&self, kind: Unopened) -> usize {
        self.unopened
            .values()
            .filter(|other| **other == kind)
            .count()
    }
}

/// A request that opens a session and waits for its answer. As long as it does, the agent may speak for one session
/// that is not known yet.
pub(crate) struct ClientSessionOpening {
    sessions: Arc<ClientSessions>,
    /// The session, if it is an old one.
    id: Option<SessionId>,
}

impl Drop for ClientSessionOpening {
    fn drop(&mut self) {
        self.sessions.end_opening(self.id.as_ref());
    }
}

/// What the agent says of a session that is open.
#[derive(Default)]
pub(crate) struct SessionAnnouncement<'a> {
    pub(crate) modes: Option<&'a SessionModeState>,
    pub(crate) models: Option<&'a SessionModelState>,
    pub(crate) options: Option<&'a [SessionConfigOption]>,
}

impl ClientSessionEntry {
    /// What the client keeps of the session.
    pub(crate) fn client_state<C: Client>(&self) -> Option<Arc<C::State>> {
        self.client_state.as_ref()?.get::<C>()
    }

    /// A turn begins, of an agent that speaks version 2.
    pub(crate) fn begin_prompt(&mut self, prompting: PendingTurn) {
        self.pending_turn = Some(prompting);
    }

    /// The prompt has been answered; gives the turn if that was its end.
    pub(crate) fn accept_prompt(&mut self) -> Option<FinishedTurn> {
        let over = self.pending_turn.as_mut()?.accept();
        self.end_finished_turn(over)
    }

    /// The agent says what it does; gives the turn if that was its end.
    pub(crate) fn agent_state(&mut self, state: &StateUpdate) -> Option<FinishedTurn> {
        let Some(prompting) = &mut self.pending_turn else {
            // Work of the agent's own: what was cancelled before is not of it.
            if !matches!(state, StateUpdate::Idle(_)) && self.turn.is_cancelled() {
                self.turn = CancellationToken::new();
            }
            return None;
        };
        let over = prompting.apply_state(state);
        self.end_finished_turn(over)
    }

    /// Whether there is something to cancel: a turn, or work that the agent began by itself.
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

    /// The turn has ended.
    pub(crate) fn end_turn(&mut self, stop_reason: Option<&StopReason>) {
        self.is_running = false;
        self.pending_turn = None;
        self.thread.change(|thread| thread.end_turn(stop_reason));
    }
}

impl ClientSessions {
    /// None yet. Each thread will keep `kept` bytes.
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

    /// Looks at a session, or changes it.
    pub(crate) fn with_session<T>(
        &self,
        id: &SessionId,
        f: impl FnOnce(&mut ClientSessionEntry) -> T,
    ) -> Option<T> {
        self.with_known(id, f).ok()
    }

    /// The same; gives `f` back where there is no such session.
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

    /// Tells what the client keeps of a session that a turn has ended.
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

    /// The session that a message is for, be it opened already or not.
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

    /// A request is about to open a session: a new one, or this old one. `None` if it is known already which one.
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

    /// The request has been answered, or nobody waits for it any more. What it did not open goes.
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

    /// Whether what the agent asks for in this session is done: the client has opened it, or may be opening it.
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

    /// Adds a session, unless it has been added meanwhile.
    fn add(
        &self,
        id: &SessionId,
        mut entry: ClientSessionEntry,
        unopened: Option<Unopened>,
    ) -> ThreadHandle {
        let thread = entry.thread.clone();
        // All that nobody has opened keep as much as one that somebody has. So do all subagents.
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
            // Ahead of what the client keeps of the one that is not needed.
            drop(sessions);
            return thread;
        }
        sessions.entries.insert(id.clone(), entry);
        sessions
            .unopened
            .extend(unopened.map(|kind| (id.clone(), kind)));
        thread
    }

    /// Someone opens the session.
    pub(crate) fn claim(&self, id: &SessionId) -> ThreadHandle {
        {
            let mut sessions = self.lock();
            sessions.unopened.remove(id);
            // Also if another session has announced it as a subagent: what it asks is asked where it was opened.
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

    /// Someone opens the session and has it replayed: what was seen of it before is not part of it.
    /// Gives what there was, for [`restore`](Self::restore).
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

    /// The replay has failed: the session is what it was before.
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

    /// The session is open, with what the agent says of it.
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

    /// The session is open no more.
    pub(crate) fn remove(&self, id: &SessionId) {
        self.remove_subagents(id);
        self.remove_one(id);
    }

    fn remove_one(&self, id: &SessionId) {
        // What the client keeps of it is dropped when the lock is free again.
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

    /// The connection is over: turns have failed, and clients keep nothing of sessions any more.
    pub(crate) fn close_all(&self, reason: &CloseReason) {
        // Dropped, and told, when the lock is free again.
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

/// A session before it was replayed.
pub(crate) struct ReplayBackup {
    unopened: Option<Unopened>,
    parent: Option<SessionId>,
    thread: Thread,
}
