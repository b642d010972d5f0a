//! What a live agent has still to write to the store.
//!
//! One batch is written at a time. It contains the changes of all sessions since the last one, so a slow store gets
//! fewer, larger batches. What is in a batch can be read by clients when it has been written.

use std::collections::BTreeSet;
use std::sync::Arc;

use acp::v1::SessionId;
use tokio::sync::Notify;

use super::agent::LiveAgent;
use super::session::SharedSession;
use crate::store::{FencingToken, LiveSessionChange, LiveSessionKey};

/// The maximum size of the lines in a batch, in bytes.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The agent's messages are not read while more than this many bytes wait to be written.
pub(super) const MAX_UNWRITTEN_BYTES: usize = 8 * 1024 * 1024;

/// What a live agent has still to write to the store.
#[derive(Debug)]
pub(super) struct Unwritten {
    agent: String,
    /// The sessions that have changed.
    sessions: BTreeSet<SessionId>,
    /// The last changes of sessions that are not live any more.
    last_changes: Vec<LiveSessionChange>,
    /// The sessions that are not live any more.
    ended: Vec<EndedSession>,
    /// The batch that is being written.
    in_flight: Vec<SessionInFlight>,
    /// The sessions whose end is in that batch.
    ended_in_flight: Vec<LiveSessionKey>,
    /// The size of the lines that have not been written yet.
    bytes: usize,
    /// Notified when there is something to write.
    wake: Arc<Notify>,
}

#[derive(Debug)]
struct SessionInFlight {
    id: SessionId,
    token: FencingToken,
    /// The log is written up to this position then.
    until: u64,
    bytes: usize,
}

/// What happens to a stored session that is not live any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredSessionEnd {
    /// It stays in the store, without an owner.
    Closed,
    /// It is deleted.
    Deleted,
    /// It belongs to another server.
    Lost,
}

/// A stored session that is not live any more.
#[derive(Debug, Clone)]
pub(super) struct EndedSession {
    pub(super) key: LiveSessionKey,
    pub(super) token: FencingToken,
    pub(super) is_deleted: bool,
}

/// What to write to the store.
#[derive(Debug, Default)]
pub(super) struct UnwrittenBatch {
    pub(super) changes: Vec<LiveSessionChange>,
    /// Sessions to give up or delete, after the changes.
    pub(super) ended: Vec<EndedSession>,
}

impl Unwritten {
    /// `wake` is notified when there is something to write.
    pub(super) fn new(agent: &str, wake: Arc<Notify>) -> Self {
        Self {
            agent: agent.to_owned(),
            sessions: BTreeSet::new(),
            last_changes: Vec::new(),
            ended: Vec::new(),
            in_flight: Vec::new(),
            ended_in_flight: Vec::new(),
            bytes: 0,
            wake,
        }
    }

    /// Adds a session that has changed.
    pub(super) fn add(&mut self, session: &SessionId) {
        if !self.sessions.contains(session) {
            self.sessions.insert(session.clone());
        }
        self.wake.notify_one();
    }

    pub(super) fn count_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Takes what is to be written about a session that is not live any more.
    pub(super) fn end(&mut self, session: &mut SharedSession, end: StoredSessionEnd) {
        self.sessions.remove(&session.id);
        let Some(token) = session.record.as_ref().map(|record| record.token) else {
            return;
        };
        if end == StoredSessionEnd::Lost {
            return;
        }
        if end == StoredSessionEnd::Closed
            && let Some((change, _)) = session.take_change(&self.agent, usize::MAX)
        {
            self.last_changes.push(change);
        }
        self.ended.push(EndedSession {
            key: self.key(&session.id),
            token,
            is_deleted: end == StoredSessionEnd::Deleted,
        });
        self.wake.notify_one();
    }

    pub(super) fn key(&self, session: &SessionId) -> LiveSessionKey {
        LiveSessionKey {
            agent: self.agent.clone(),
            session: session.to_string(),
        }
    }
}

impl LiveAgent {
    /// Returns the size of the lines that have not been written yet, in bytes.
    pub(super) fn unwritten_bytes(&self) -> usize {
        self.unwritten
            .as_ref()
            .map_or(0, |unwritten| unwritten.bytes)
    }

    /// Returns `true` if the end of a session is not written yet. It must not be opened again before.
    pub(super) fn is_ending(&self, session: &SessionId) -> bool {
        self.unwritten.as_ref().is_some_and(|unwritten| {
            let waiting = unwritten.ended.iter().map(|ended| &ended.key);
            let mut all = waiting.chain(&unwritten.ended_in_flight);
            all.any(|key| key.session == session.0.as_ref())
        })
    }

    /// Takes what is to be written to the store. Returns `None` if there is nothing. The caller writes it, and then calls
    /// [`batch_written`](Self::batch_written).
    pub(super) fn take_unwritten(&mut self) -> Option<UnwrittenBatch> {
        let unwritten = self.unwritten.as_mut()?;
        let mut batch = UnwrittenBatch {
            changes: std::mem::take(&mut unwritten.last_changes),
            ended: std::mem::take(&mut unwritten.ended),
        };
        let ended = batch.ended.iter().map(|ended| ended.key.clone());
        unwritten.ended_in_flight = ended.collect();
        let mut room = MAX_BATCH_BYTES;
        let mut readable = Vec::new();
        for id in std::mem::take(&mut unwritten.sessions) {
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            if room == 0 {
                unwritten.sessions.insert(id);
                continue;
            }
            let token = session.record.as_ref().map(|record| record.token);
            let (Some(token), Some((change, until))) =
                (token, session.take_change(&unwritten.agent, room))
            else {
                continue;
            };
            if change.is_empty() {
                session.log.readable(until);
                readable.push(id);
                continue;
            }
            let bytes = change.lines.iter().map(|line| line.line.len()).sum();
            room = room.saturating_sub(bytes);
            unwritten.in_flight.push(SessionInFlight {
                id: id.clone(),
                token,
                until,
                bytes,
            });
            batch.changes.push(change);
            if session.has_unwritten() {
                unwritten.sessions.insert(id);
            }
        }
        for id in readable {
            self.wake_clients(&id);
        }
        let is_empty = batch.changes.is_empty() && batch.ended.is_empty();
        (!is_empty).then_some(batch)
    }

    /// Shows clients what has been written. The `lost` sessions were not written, since another server owns them.
    pub(super) fn batch_written(&mut self, lost: &[LiveSessionKey]) {
        let Some(unwritten) = &mut self.unwritten else {
            return;
        };
        unwritten.ended_in_flight.clear();
        for written in std::mem::take(&mut unwritten.in_flight) {
            let id = &written.id;
            if let Some(unwritten) = &mut self.unwritten {
                unwritten.bytes = unwritten.bytes.saturating_sub(written.bytes);
            }
            let session = self.sessions.get_mut(id);
            let is_same = |session: &&mut SharedSession| {
                let record = session.record.as_ref();
                record.is_some_and(|record| record.token == written.token)
            };
            let Some(session) = session.filter(is_same) else {
                continue;
            };
            if lost.iter().any(|key| key.session == id.0.as_ref()) {
                self.lose_session(id);
                continue;
            }
            session.log.written(written.until);
            session.prompts.ends_written(written.until);
            self.wake_clients(id);
            self.send_prompt_if_written(id);
        }
        if let Some(unwritten) = &mut self.unwritten
            && unwritten.sessions.is_empty()
        {
            unwritten.bytes = 0;
        }
    }

    /// Removes stored sessions from memory that have been at rest since the last call. This server still owns them, and
    /// reads them from the store when a client opens them.
    pub(super) fn forget_sessions_at_rest(&mut self) {
        let Self {
            sessions,
            parents,
            at_rest,
            ..
        } = self;
        sessions.retain(|id, session| {
            let is_kept =
                !session.is_still_at_rest() || parents.values().any(|parent| parent == id);
            if let (false, Some(record)) = (is_kept, &session.record) {
                at_rest.insert(id.clone(), record.token);
            }
            is_kept
        });
    }
}

impl LiveSessionChange {
    /// Returns `true` if there is nothing to write.
    fn is_empty(&self) -> bool {
        !self.is_new
            && self.head.is_none()
            && self.replaced.is_empty()
            && self.lines.is_empty()
            && self.prompts.is_empty()
    }
}
