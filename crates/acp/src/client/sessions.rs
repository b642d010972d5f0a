//! A live client's sessions: the client core's session table behind a lock, with the client's own state for each
//! session and the future that waits for the session's turn.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_wire::v1::{ContentBlock, MessageId, SessionId, StopReason, Usage};
use acp_wire::v2::StateUpdate;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::Client;
use super::side::UpdateContext;
use super::state::{ErasedState, StateFactory};
use crate::client_core::{
    MAX_UNOPENED_SESSIONS, PermissionRequest, ReceivedPermissionRequest, ReplayBackup,
    SessionAnnouncement, SessionEntry, SessionTable, UnopenedReason,
};
use crate::error::{CloseReason, Error, Result};
use crate::session_setup::MAX_ID_BYTES;
use crate::thread::{Thread, ThreadHandle, TurnResult};
use crate::update::Update;

pub(crate) struct ClientSessions {
    table: Mutex<SessionTable<LiveSession>>,
    /// Creates the client's states. Do not hold a lock when calling it, because the client's code may use sessions.
    state_factory: StateFactory,
}

/// An entry in a live client's session table.
pub(crate) type ClientSessionEntry = SessionEntry<LiveSession>;

/// A live client's data for a session: its own state, and the turn.
#[derive(Default)]
pub(crate) struct LiveSession {
    /// The client's own state for the session, or `None` after the connection has closed.
    client_state: Option<ErasedState>,
    /// The token that cancels the current or most recent turn.
    turn: CancellationToken,
    /// Passes the turn's result to the waiting future, if the agent speaks version 2.
    waiting: Option<oneshot::Sender<Result<StopReason>>>,
}

/// An ended turn. Dropping it sends the result to the waiting future.
#[derive(Debug)]
pub(crate) struct FinishedTurn {
    result: Option<Result<StopReason>>,
    sender: Option<oneshot::Sender<Result<StopReason>>>,
}

impl FinishedTurn {
    fn stop_reason(&self) -> Option<&StopReason> {
        self.result.as_ref()?.as_ref().ok()
    }
}

impl Drop for FinishedTurn {
    fn drop(&mut self) {
        if let (Some(waiting), Some(end)) = (self.sender.take(), self.result.take()) {
            // This fails if the future was dropped.
            let _ = waiting.send(end);
        }
    }
}

/// The data that the client gets along with an update.
pub(crate) struct ReceivedUpdate<S> {
    pub(crate) context: UpdateContext,
    /// The client's own state for the session, or `None` if the connection has closed.
    pub(crate) client_state: Option<Arc<S>>,
    /// The turn that the update ended, if any.
    pub(crate) finished_turn: Option<FinishedTurn>,
}

/// A pending request that opens a session. While it is pending, the agent may send requests for one unknown session.
pub(crate) struct ClientSessionOpening {
    sessions: Arc<ClientSessions>,
    /// The id of the session to open, unless it is new.
    id: Option<SessionId>,
}

impl Drop for ClientSessionOpening {
    fn drop(&mut self) {
        self.sessions.end_opening(self.id.as_ref());
    }
}

impl ClientSessionEntry {
    /// Returns the client's own state for the session.
    pub(crate) fn client_state<C: Client>(&self) -> Option<Arc<C::State>> {
        self.kept.client_state.as_ref()?.get::<C>()
    }

    /// Starts a turn, unless one is running.
    fn begin_turn(&mut self, prompt: &[ContentBlock]) -> Result<(), &'static str> {
        let is_replaying = self.is_replaying;
        self.thread.change(|thread| {
            if thread.is_turn_running() {
                return Err("a turn is already running in this session");
            }
            if is_replaying {
                return Err("the session is still being loaded");
            }
            thread.begin_turn(prompt);
            Ok(())
        })?;
        self.kept.turn = CancellationToken::new();
        Ok(())
    }

    /// Applies an update to the thread. If this ended the turn, returns the turn.
    fn receive_update(&mut self, update: &Update) -> Option<FinishedTurn> {
        let result = self.thread.change(|thread| thread.receive(update));
        if let Update::StateUpdate(state) = update
            && !matches!(state, StateUpdate::Idle(_))
            && self.kept.turn.is_cancelled()
            && !self.thread.read(Thread::is_turn_running)
        {
            // The agent has started work by itself. An earlier cancel does not apply to this work.
            self.kept.turn = CancellationToken::new();
        }
        Some(self.finished_turn(result?))
    }

    /// Takes the future that waits for the turn, and returns it with the turn's result.
    fn finished_turn(&mut self, result: TurnResult) -> FinishedTurn {
        FinishedTurn {
            result: Some(result.map_err(Error::Rpc)),
            sender: self.kept.waiting.take(),
        }
    }

    /// Ends the session's turn. Returns `false` if no turn was running.
    fn end_turn(&mut self, stop_reason: Option<&StopReason>) -> bool {
        self.kept.waiting = None;
        self.thread.change(|thread| {
            let was_running = thread.is_turn_running();
            thread.end_turn(stop_reason);
            was_running
        })
    }

    /// Returns the token of the running turn, or of work that the agent has started on its own.
    fn running_turn(&self) -> Option<CancellationToken> {
        let is_running = self.thread.read(Thread::is_running);
        is_running.then(|| self.kept.turn.clone())
    }
}

impl ClientSessions {
    /// Creates an empty table. `kept` is the maximum size of each thread, in bytes.
    pub(crate) fn new<C: Client>(kept: usize, client: &Arc<C>) -> Self {
        Self {
            table: Mutex::new(SessionTable::new(kept)),
            state_factory: StateFactory::for_client(client),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionTable<LiveSession>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the client's own state for a session, if the session is known.
    pub(crate) fn client_state<C: Client>(&self, id: &SessionId) -> Option<Arc<C::State>> {
        self.lock().get(id)?.client_state::<C>()
    }

    /// Returns the id of the root session: the topmost parent of a subagent, or else the session itself.
    pub(crate) fn root_session(&self, id: &SessionId) -> SessionId {
        self.lock().root_session(id)
    }

    /// Starts a turn in a session.
    ///
    /// # Errors
    /// The session is closed or being loaded, or a turn is running in it.
    pub(crate) fn begin_turn(&self, id: &SessionId, prompt: &[ContentBlock]) -> Result<()> {
        let mut sessions = self.lock();
        let begun = sessions.get_mut(id).map(|entry| entry.begin_turn(prompt));
        begun
            .unwrap_or(Err("the session is closed"))
            .map_err(|why| Error::InvalidRequest(why.to_owned()))
    }

    /// Returns a receiver for the running turn's result. It gets none if the session is closed, or if the turn fails
    /// before the agent accepts the prompt.
    pub(crate) fn wait_for_turn(&self, id: &SessionId) -> oneshot::Receiver<Result<StopReason>> {
        let (sender, end) = oneshot::channel();
        if let Some(entry) = self.lock().get_mut(id) {
            entry.kept.waiting = Some(sender);
        }
        end
    }

    /// Returns the token of the running turn, if the agent is working in this session.
    pub(crate) fn running_turn(&self, id: &SessionId) -> Option<CancellationToken> {
        self.lock().get(id)?.running_turn()
    }

    /// Records that a version 2 agent has accepted the prompt, and the id of the prompt's message. Returns the turn if
    /// it has already ended.
    pub(crate) fn accept_prompt(
        &self,
        id: &SessionId,
        message: &MessageId,
    ) -> Option<FinishedTurn> {
        let accept = |entry: &mut ClientSessionEntry| {
            let result = entry.thread.change(|thread| thread.accept_prompt(message));
            Some(entry.finished_turn(result?))
        };
        let finished = self.lock().get_mut(id).and_then(accept)?;
        self.notify_turn_ended(id, finished.stop_reason());
        Some(finished)
    }

    /// Records the tokens that a session's turn has used.
    pub(crate) fn set_turn_usage(&self, id: &SessionId, usage: Option<&Usage>) {
        if let Some(entry) = self.lock().get_mut(id) {
            entry.thread.change(|thread| thread.set_turn_usage(usage));
        }
    }

    /// Ends a session's turn. `stop_reason` is `None` if the turn failed.
    pub(crate) fn end_turn(&self, id: &SessionId, stop_reason: Option<&StopReason>) {
        let end = |entry: &mut ClientSessionEntry| entry.end_turn(stop_reason);
        let was_running = self.lock().get_mut(id).is_some_and(end);
        if was_running {
            self.notify_turn_ended(id, stop_reason);
        }
    }

    /// Notifies the client's states for a session and its subagents that a turn has ended.
    fn notify_turn_ended(&self, id: &SessionId, stop_reason: Option<&StopReason>) {
        let states: Vec<ErasedState> = {
            let sessions = self.lock();
            let descendants = sessions.descendants(id);
            let all = descendants.iter().chain([id]);
            all.filter_map(|id| sessions.get(id)?.kept.client_state.clone())
                .collect()
        };
        for state in states {
            state.turn_ended(stop_reason);
        }
    }

    /// Applies an update to its session, adding the session if it is unknown. Returns the data to deliver to the
    /// client, or `None` if the session is not open and the table is full.
    pub(crate) fn receive_update<C: Client>(
        &self,
        id: &SessionId,
        update: &Update,
    ) -> Option<ReceivedUpdate<C::State>> {
        let with_session_or_add = |entry: &mut ClientSessionEntry| {
            let finished_turn = entry.receive_update(update);
            let context = UpdateContext {
                session_id: id.clone(),
                thread: entry.thread.clone(),
                is_replay: entry.is_replaying,
            };
            ReceivedUpdate {
                context,
                client_state: entry.client_state::<C>(),
                finished_turn,
            }
        };
        let known = self.lock().get_mut(id).map(with_session_or_add);
        let received = match known {
            Some(received) => received,
            None => {
                let is_full = || {
                    self.lock().unopened_ids(UnopenedReason::Unclaimed).count()
                        >= MAX_UNOPENED_SESSIONS
                };
                if id.as_str().len() > MAX_ID_BYTES || is_full() {
                    return None;
                }
                self.add(
                    id,
                    ClientSessionEntry::default(),
                    Some(UnopenedReason::Unclaimed),
                );
                self.lock().get_mut(id).map(with_session_or_add)?
            }
        };
        if let Some(finished) = &received.finished_turn {
            self.notify_turn_ended(id, finished.stop_reason());
        }
        if let Update::SubagentUpdate(update) = update {
            self.adopt(id, &update.session_id);
        }
        Some(received)
    }

    /// Adds the session of a subagent announced by the session `parent`.
    fn adopt(&self, parent: &SessionId, child: &SessionId) {
        let Some(adopted) = self.lock().adopt(parent, child) else {
            return;
        };
        let mut entry = ClientSessionEntry {
            thread: adopted.thread,
            is_replaying: adopted.is_replaying,
            ..ClientSessionEntry::default()
        };
        if let Some(before) = adopted.before {
            // The subagent's pending requests stay pending.
            entry.kept.turn = before.kept.turn;
            if let Some(client) = before.kept.client_state {
                client.closed();
            }
        }
        self.add(child, entry, None);
    }

    /// Applies a permission request to its session. Returns the request to pass to the client and the token that
    /// cancels it, or `None` if the session is unknown. The token is that of the root session's turn, on whose behalf a
    /// subagent works.
    pub(crate) fn request_permission(
        &self,
        request: ReceivedPermissionRequest,
    ) -> Option<(PermissionRequest, CancellationToken)> {
        let sessions = self.lock();
        let request = sessions.request_permission(request)?;
        let root = sessions.get(&request.root_session_id);
        let turn = if request.root_session_id == request.session_id {
            root.map(|root| root.kept.turn.clone())
        } else {
            root.and_then(ClientSessionEntry::running_turn)
        };
        Some((request, turn.unwrap_or_default()))
    }

    /// Registers a request that opens a new session, or the session with the given `id`. Returns `None` if that session
    /// is already known.
    pub(crate) fn begin_opening(
        self: &Arc<Self>,
        id: Option<&SessionId>,
    ) -> Option<ClientSessionOpening> {
        let is_known = |id| {
            let sessions = self.lock();
            sessions.get(id).is_some() && sessions.unopened(id) != Some(UnopenedReason::Unclaimed)
        };
        if id.is_some_and(is_known) {
            return None;
        }
        self.lock().opening_count += 1;
        let opening = ClientSessionOpening {
            sessions: Arc::clone(self),
            id: id.cloned(),
        };
        if let Some(id) = id {
            self.accepts_requests(id);
        }
        Some(opening)
    }

    /// Unregisters a request that opens a session, once it has a response or is dropped. Removes the provisional
    /// sessions that the request did not open.
    fn end_opening(&self, id: Option<&SessionId>) {
        let gone: Vec<SessionId> = {
            let mut sessions = self.lock();
            sessions.opening_count = sessions.opening_count.saturating_sub(1);
            let left = sessions.opening_count;
            let provisional = sessions.unopened_ids(UnopenedReason::Provisional);
            match id {
                Some(id) => provisional.filter(|other| *other == id).cloned().collect(),
                None => provisional.skip(left).cloned().collect(),
            }
        };
        for id in gone {
            self.remove(&id);
        }
    }

    /// Returns `true` if the agent may send requests for a session. The client must have opened the session or may be
    /// opening it.
    pub(crate) fn accepts_requests(&self, id: &SessionId) -> bool {
        {
            let mut sessions = self.lock();
            let unopened = sessions.unopened(id);
            if sessions.is_open(id) || unopened == Some(UnopenedReason::Provisional) {
                return true;
            }
            let count = sessions.unopened_ids(UnopenedReason::Provisional).count();
            if count >= sessions.opening_count || id.as_str().len() > MAX_ID_BYTES {
                return false;
            }
            if unopened.is_some() {
                sessions.set_unopened(id, UnopenedReason::Provisional);
                return true;
            }
        }
        self.add(
            id,
            ClientSessionEntry::default(),
            Some(UnopenedReason::Provisional),
        );
        true
    }

    /// Adds a session, unless another task has added it in the meantime.
    fn add(
        &self,
        id: &SessionId,
        mut entry: ClientSessionEntry,
        unopened: Option<UnopenedReason>,
    ) -> ThreadHandle {
        entry.kept.client_state = self.state_factory.create_state(id, &entry.thread);
        // Drop the state that is not needed after the lock is released.
        let (thread, _unneeded) = self.lock().add(id, entry, unopened);
        thread
    }

    /// Marks a session as opened by the client, and returns its thread.
    pub(crate) fn mark_opened(&self, id: &SessionId) -> ThreadHandle {
        let known = self.lock().claim(id);
        known.unwrap_or_else(|| self.add(id, ClientSessionEntry::default(), None))
    }

    /// Marks a session as opened and starts a replay, which replaces the thread's content. Returns a backup with which
    /// [`undo_replay`](Self::undo_replay) can restore the session.
    pub(crate) fn begin_replay(&self, id: &SessionId) -> Option<ReplayBackup> {
        let subagents = self.lock().remove_subagents(id);
        close_sessions(subagents);
        let before = self.lock().begin_replay(id);
        if before.is_none() {
            self.mark_opened(id);
            self.lock().begin_replay(id);
        }
        before
    }

    /// Restores a session from its backup after a failed replay.
    pub(crate) fn undo_replay(&self, id: &SessionId, before: Option<ReplayBackup>) {
        match before {
            Some(before) => self.lock().restore(id, before),
            None => self.remove(id),
        }
    }

    /// Applies the modes, options and commands that the agent reports when a session is opened.
    pub(crate) fn announce(&self, id: &SessionId, announced: &SessionAnnouncement<'_>) {
        self.mark_opened(id);
        self.lock().announce(id, announced);
    }

    /// Removes a closed session and its subagents.
    pub(crate) fn remove(&self, id: &SessionId) {
        let removed = self.lock().remove(id);
        close_sessions(removed);
    }

    /// Closes all sessions when the connection has closed. Turns fail, and the client's own states are dropped.
    pub(crate) fn close_all(&self, reason: &CloseReason) {
        // Drop and notify these after the lock is released.
        let mut over: Vec<FinishedTurn> = Vec::new();
        let mut states = Vec::new();
        for entry in self.lock().values_mut() {
            entry.kept.turn.cancel();
            over.extend(entry.kept.waiting.take().map(|sender| FinishedTurn {
                result: Some(Err(Error::Closed(reason.clone()))),
                sender: Some(sender),
            }));
            let ran = entry.thread.read(Thread::is_turn_running) && entry.end_turn(None);
            entry.thread.change(Thread::set_disconnected);
            let state = entry.kept.client_state.take();
            states.extend(state.map(|state| (state, ran)));
        }
        for (state, ran) in states {
            if ran {
                state.turn_ended(None);
            }
            state.closed();
        }
    }
}

/// Cancels the turns of removed sessions, and notifies the client's own states.
fn close_sessions(removed: Vec<ClientSessionEntry>) {
    for entry in removed {
        entry.kept.turn.cancel();
        if let Some(client) = entry.kept.client_state {
            client.closed();
        }
    }
}
