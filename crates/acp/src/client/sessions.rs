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
use super::turn::{Over, Prompting};
use crate::error::{CloseReason, Error};
use crate::session_setup::LONGEST_ID;
use crate::thread::{Thread, ThreadHandle};

/// How many sessions that nobody has opened yet may have threads. Agents send updates for a session
/// ahead of the answer that names it; one that invents sessions does not fill memory.
const UNCLAIMED: usize = 64;

pub(crate) struct Sessions {
    table: Mutex<Table>,
    /// How many requests that open a session wait for their answers.
    openings: Mutex<usize>,
    /// How much a thread keeps, in bytes.
    kept: usize,
    /// The client's code runs outside of the locks, for it may look at sessions itself.
    states: StateFactory,
}

#[derive(Default)]
struct Table {
    entries: HashMap<SessionId, SessionEntry>,
    /// Those that nobody has opened. They are few, however many sessions there are.
    unopened: HashMap<SessionId, Unopened>,
    /// Of sessions that another has made for a part of its work, that other. They are few, too.
    parents: HashMap<SessionId, SessionId>,
}

/// A session, and what is known of it.
#[derive(Default)]
pub(crate) struct SessionEntry {
    pub(crate) thread: ThreadHandle,
    /// What the client keeps of it. Gone when the connection is over.
    client: Option<ErasedState>,
    pub(crate) replaying: bool,
    /// Of the turn that runs, or ran last: cancelled when the turn is.
    pub(crate) turn: CancellationToken,
    pub(crate) running: bool,
    /// What a turn of an agent that speaks version 2 waits for.
    prompting: Option<Prompting>,
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
pub(crate) struct Opening {
    sessions: Arc<Sessions>,
    /// The session, if it is an old one.
    id: Option<SessionId>,
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.sessions.opening_ended(self.id.as_ref());
    }
}

/// What the agent says of a session that is open.
#[derive(Default)]
pub(crate) struct Opened<'a> {
    pub(crate) modes: Option<&'a SessionModeState>,
    pub(crate) models: Option<&'a SessionModelState>,
    pub(crate) options: Option<&'a [SessionConfigOption]>,
}

impl SessionEntry {
    /// What the client keeps of the session.
    pub(crate) fn client_state<C: Client>(&self) -> Option<Arc<C::State>> {
        self.client.as_ref()?.get::<C>()
    }

    /// A turn begins, of an agent that speaks version 2.
    pub(crate) fn prompting(&mut self, prompting: Prompting) {
        self.prompting = Some(prompting);
    }

    /// The prompt has been answered; gives the turn if that was its end.
    pub(crate) fn prompt_taken(&mut self) -> Option<Over> {
        let over = self.prompting.as_mut()?.taken();
        self.ended(over)
    }

    /// The agent says what it does; gives the turn if that was its end.
    pub(crate) fn agent_state(&mut self, state: &StateUpdate) -> Option<Over> {
        let Some(prompting) = &mut self.prompting else {
            // Work of the agent's own: what was cancelled before is not of it.
            if !matches!(state, StateUpdate::Idle(_)) && self.turn.is_cancelled() {
                self.turn = CancellationToken::new();
            }
            return None;
        };
        let over = prompting.state(state);
        self.ended(over)
    }

    /// Whether there is something to cancel: a turn, or work that the agent began by itself.
    pub(crate) fn at_work(&self) -> bool {
        self.running || self.thread.read(Thread::is_running)
    }

    fn ended(&mut self, over: Option<Over>) -> Option<Over> {
        let over = over?;
        self.end_turn(over.stop_reason());
        Some(over)
    }

    fn stop_reason(&self) -> Option<StopReason> {
        self.thread.read(|thread| thread.stop_reason().cloned())
    }

    /// The turn has ended.
    pub(crate) fn end_turn(&mut self, stop_reason: Option<&StopReason>) {
        self.running = false;
        self.prompting = None;
        self.thread.change(|thread| thread.end_turn(stop_reason));
    }
}

impl Sessions {
    /// None yet. Each thread will keep `kept` bytes.
    pub(crate) fn new<C: Client>(kept: usize, client: &Arc<C>) -> Self {
        Self {
            table: Mutex::default(),
            openings: Mutex::default(),
            kept,
            states: StateFactory::of(client),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a session, or changes it.
    pub(crate) fn with<T>(
        &self,
        id: &SessionId,
        f: impl FnOnce(&mut SessionEntry) -> T,
    ) -> Option<T> {
        self.with_known(id, f).ok()
    }

    /// The same; gives `f` back where there is no such session.
    fn with_known<T, F: FnOnce(&mut SessionEntry) -> T>(
        &self,
        id: &SessionId,
        f: F,
    ) -> Result<T, F> {
        let (done, ended) = {
            let mut sessions = self.lock();
            let Some(state) = sessions.entries.get_mut(id) else {
                return Err(f);
            };
            let ran = state.running;
            let done = f(state);
            let ended = (ran && !state.running).then(|| state.stop_reason());
            (done, ended)
        };
        if let Some(stop_reason) = ended {
            for session in self.descendants(id).iter().chain([id]) {
                self.turn_ended(session, stop_reason.as_ref());
            }
        }
        Ok(done)
    }

    /// Tells what the client keeps of a session that a turn has ended.
    fn turn_ended(&self, id: &SessionId, stop_reason: Option<&StopReason>) {
        let client = self
            .lock()
            .entries
            .get(id)
            .and_then(|entry| entry.client.clone());
        if let Some(client) = client {
            client.turn_ended(stop_reason);
        }
    }

    /// The session that a message is for, be it opened already or not.
    pub(crate) fn receive<T>(
        &self,
        id: &SessionId,
        f: impl FnOnce(&mut SessionEntry) -> T,
    ) -> Option<T> {
        let f = match self.with_known(id, f) {
            Ok(done) => return Some(done),
            Err(f) => f,
        };
        let is_full = || self.lock().count(Unopened::Unclaimed) >= UNCLAIMED;
        if id.as_str().len() > LONGEST_ID || is_full() {
            return None;
        }
        self.add(id, SessionEntry::default(), Some(Unopened::Unclaimed));
        self.with(id, f)
    }

    /// A request is about to open a session: a new one, or this old one. `None` if it is known already which one.
    pub(crate) fn opening(self: &Arc<Self>, id: Option<&SessionId>) -> Option<Opening> {
        let is_known = |id| {
            let sessions = self.lock();
            sessions.entries.contains_key(id)
                && sessions.unopened.get(id) != Some(&Unopened::Unclaimed)
        };
        if id.is_some_and(is_known) {
            return None;
        }
        *self.openings() += 1;
        let opening = Opening {
            sessions: Arc::clone(self),
            id: id.cloned(),
        };
        if let Some(id) = id {
            self.serves(id);
        }
        Some(opening)
    }

    fn openings(&self) -> MutexGuard<'_, usize> {
        self.openings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request has been answered, or nobody waits for it any more. What it did not open goes.
    fn opening_ended(&self, id: Option<&SessionId>) {
        let left = {
            let mut openings = self.openings();
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
    pub(crate) fn serves(&self, id: &SessionId) -> bool {
        {
            let openings = *self.openings();
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
        self.add(id, SessionEntry::default(), Some(Unopened::Provisional));
        true
    }

    /// Adds a session, unless it has been added meanwhile.
    fn add(
        &self,
        id: &SessionId,
        mut entry: SessionEntry,
        unopened: Option<Unopened>,
    ) -> ThreadHandle {
        let thread = entry.thread.clone();
        // All that nobody has opened keep as much as one that somebody has. So do all subagents.
        let is_subagent = self.lock().parents.contains_key(id);
        let kept = match unopened {
            None if !is_subagent => self.kept,
            _ => self.kept / UNCLAIMED,
        };
        thread.change(|thread| thread.set_limit(kept));
        entry.client = self.states.make(id, &thread);
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
        let known = self.with(id, |state| {
            state.thread.change(|thread| thread.set_limit(self.kept));
            state.thread.clone()
        });
        known.unwrap_or_else(|| self.add(id, SessionEntry::default(), None))
    }

    /// Someone opens the session and has it replayed: what was seen of it before is not part of it.
    /// Gives what there was, for [`restore`](Self::restore).
    pub(crate) fn claim_for_replay(&self, id: &SessionId) -> Option<BeforeReplay> {
        self.remove_subagents(id);
        let (unopened, parent) = {
            let mut sessions = self.lock();
            (
                sessions.unopened.get(id).copied(),
                sessions.parents.remove(id),
            )
        };
        let before = self.with(id, |state| BeforeReplay {
            unopened,
            parent,
            thread: state.thread.change(Thread::begin_replay),
        });
        self.claim(id);
        self.with(id, |state| state.replaying = true);
        before
    }

    /// The replay has failed: the session is what it was before.
    pub(crate) fn restore(&self, id: &SessionId, before: Option<BeforeReplay>) {
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
        self.with(id, |state| {
            state.replaying = false;
            state
                .thread
                .change(|thread| thread.end_replay(before.thread));
        });
    }

    /// The session is open, with what the agent says of it.
    pub(crate) fn opened(&self, id: &SessionId, opened: &Opened<'_>) {
        self.claim(id);
        for child in self.descendants(id) {
            self.with(&child, |state| state.replaying = false);
        }
        self.with(id, |state| {
            state.replaying = false;
            let Opened {
                modes,
                models,
                options,
            } = *opened;
            if modes.is_some() || models.is_some() || options.is_some() {
                state
                    .thread
                    .change(|thread| thread.set_up(modes, models, options));
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
            if let Some(client) = entry.client {
                client.closed();
            }
        }
    }

    /// The connection is over: turns have failed, and clients keep nothing of sessions any more.
    pub(crate) fn closed(&self, reason: &CloseReason) {
        // Dropped, and told, when the lock is free again.
        let mut over: Vec<Over> = Vec::new();
        let mut states = Vec::new();
        for entry in self.lock().entries.values_mut() {
            entry.turn.cancel();
            let prompting = entry.prompting.as_mut();
            over.extend(prompting.map(|p| p.failed(Error::Closed(reason.clone()))));
            let ran = entry.running;
            if ran {
                entry.end_turn(None);
            }
            entry.thread.change(Thread::disconnected);
            states.extend(entry.client.take().map(|state| (state, ran)));
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
pub(crate) struct BeforeReplay {
    unopened: Option<Unopened>,
    parent: Option<SessionId>,
    thread: Thread,
}
