//! The session table, which tracks the sessions that are known, open or being replayed, and the subagents.

use std::collections::HashMap;

use acp_wire::v1::SessionId;

use super::session_opening::SessionAnnouncement;
use crate::thread::{Thread, ThreadHandle};

/// The maximum number of sessions in the table that the client has not opened. There can be some, because agents may
/// send updates for a session before the response with its id. The limit keeps an agent from filling memory with
/// made-up sessions.
pub(crate) const MAX_UNOPENED_SESSIONS: usize = 64;

/// A connection's sessions, each with data `S` that the owner of the table stores with it.
#[derive(Debug)]
pub(crate) struct SessionTable<S> {
    pub(super) entries: HashMap<SessionId, SessionEntry<S>>,
    /// Sessions that the client has not opened.
    unopened: HashMap<SessionId, UnopenedReason>,
    /// The parent of each subagent. The number of entries is limited.
    pub(super) parents: HashMap<SessionId, SessionId>,
    /// The size limit of a thread, in bytes.
    thread_limit: usize,
    /// The number of pending requests that open a session.
    pub(crate) opening_count: usize,
}

/// A session in the table: its thread, and the data that the table's owner stores with it.
#[derive(Debug, Default)]
pub(crate) struct SessionEntry<S> {
    pub(crate) thread: ThreadHandle,
    pub(crate) is_replaying: bool,
    /// The table owner's data for the session.
    pub(crate) kept: S,
}

/// The reason why a session is in the table although the client has not opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnopenedReason {
    /// The agent has sent an update for the session.
    Unclaimed,
    /// The client may be opening the session. There is at most one for each pending request that opens a session.
    Provisional,
}

/// A session's state before a replay, to restore if the replay fails.
#[derive(Debug)]
pub(crate) struct ReplayBackup {
    unopened: Option<UnopenedReason>,
    parent: Option<SessionId>,
    /// The thread. It is boxed because every request that opens a session reserves space for a backup.
    thread: Box<Thread>,
}

impl<S> SessionTable<S> {
    /// Creates an empty table. `thread_limit` is the maximum size of each thread, in bytes.
    pub(crate) fn new(thread_limit: usize) -> Self {
        Self {
            entries: HashMap::new(),
            unopened: HashMap::new(),
            parents: HashMap::new(),
            thread_limit,
            opening_count: 0,
        }
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<&SessionEntry<S>> {
        self.entries.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &SessionId) -> Option<&mut SessionEntry<S>> {
        self.entries.get_mut(id)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut SessionEntry<S>> {
        self.entries.values_mut()
    }

    /// Returns `true` if the client has opened the session, or if its parent has announced it.
    pub(crate) fn is_open(&self, id: &SessionId) -> bool {
        self.entries.contains_key(id) && !self.unopened.contains_key(id)
    }

    /// Returns why a session is in the table although it is not open. Returns `None` if it is open or unknown.
    pub(crate) fn unopened(&self, id: &SessionId) -> Option<UnopenedReason> {
        self.unopened.get(id).copied()
    }

    /// Returns the ids of the sessions that are unopened for the given reason.
    pub(crate) fn unopened_ids(&self, kind: UnopenedReason) -> impl Iterator<Item = &SessionId> {
        let all = self.unopened.iter();
        all.filter(move |(_, other)| **other == kind)
            .map(|(id, _)| id)
    }

    pub(crate) fn set_unopened(&mut self, id: &SessionId, kind: UnopenedReason) {
        self.unopened.insert(id.clone(), kind);
    }

    /// Adds a session unless it is already known. Returns the session's thread, and also `entry` if it was not added.
    pub(crate) fn add(
        &mut self,
        id: &SessionId,
        entry: SessionEntry<S>,
        unopened: Option<UnopenedReason>,
    ) -> (ThreadHandle, Option<SessionEntry<S>>) {
        let was_unopened = unopened.is_none() && self.unopened.remove(id).is_some();
        if let Some(known) = self.entries.get(id) {
            let thread = known.thread.clone();
            if was_unopened {
                let limit = self.thread_limit(id, None);
                thread.change(|thread| thread.set_limit(limit));
            }
            return (thread, Some(entry));
        }
        let thread = entry.thread.clone();
        let limit = self.thread_limit(id, unopened);
        thread.change(|thread| thread.set_limit(limit));
        self.unopened
            .extend(unopened.map(|kind| (id.clone(), kind)));
        self.entries.insert(id.clone(), entry);
        (thread, None)
    }

    /// Returns the size limit of a session's thread. Unopened sessions and subagents get a fraction of the usual limit,
    /// so that all of either kind together are no larger than one opened session.
    fn thread_limit(&self, id: &SessionId, unopened: Option<UnopenedReason>) -> usize {
        if unopened.is_none() && !self.parents.contains_key(id) {
            self.thread_limit
        } else {
            self.thread_limit / MAX_UNOPENED_SESSIONS
        }
    }

    /// Marks a session as opened by the client, and returns its thread if the session is known.
    pub(crate) fn claim(&mut self, id: &SessionId) -> Option<ThreadHandle> {
        // A subagent that the client opens becomes a root session.
        let is_new_root = self.unopened.contains_key(id) || self.parents.contains_key(id);
        if is_new_root {
            self.unopened.remove(id);
            self.parents.remove(id);
        }
        let thread = self.entries.get(id)?.thread.clone();
        if is_new_root {
            thread.change(|thread| thread.set_limit(self.thread_limit));
        }
        Some(thread)
    }

    /// Starts a replay, which replaces the thread's content. Returns a backup to pass to [`restore`](Self::restore), or
    /// `None` if the session is unknown.
    pub(crate) fn begin_replay(&mut self, id: &SessionId) -> Option<ReplayBackup> {
        let entry = self.entries.get_mut(id)?;
        entry.is_replaying = true;
        let backup = ReplayBackup {
            unopened: self.unopened.get(id).copied(),
            parent: self.parents.get(id).cloned(),
            thread: Box::new(entry.thread.change(Thread::begin_replay)),
        };
        self.claim(id);
        Some(backup)
    }

    /// Restores a session from its backup after a failed replay.
    pub(crate) fn restore(&mut self, id: &SessionId, before: ReplayBackup) {
        let unopened = before.unopened.map(|kind| (id.clone(), kind));
        self.unopened.extend(unopened);
        let parent = before.parent.map(|parent| (id.clone(), parent));
        self.parents.extend(parent);
        if let Some(entry) = self.entries.get_mut(id) {
            entry.is_replaying = false;
            entry
                .thread
                .change(|thread| thread.end_replay(*before.thread));
        }
    }

    /// Applies what the agent announced for an opened session, and ends the replay.
    pub(crate) fn announce(&mut self, id: &SessionId, announced: &SessionAnnouncement<'_>) {
        for child in self.descendants(id) {
            if let Some(child) = self.entries.get_mut(&child) {
                child.is_replaying = false;
            }
        }
        if let Some(entry) = self.entries.get_mut(id) {
            entry.is_replaying = false;
            announced.apply(&entry.thread);
        }
    }

    /// Removes a session and its subagents, and returns them.
    pub(crate) fn remove(&mut self, id: &SessionId) -> Vec<SessionEntry<S>> {
        let mut removed = self.remove_subagents(id);
        removed.extend(self.remove_session_entry(id));
        removed
    }

    pub(super) fn remove_session_entry(&mut self, id: &SessionId) -> Option<SessionEntry<S>> {
        self.unopened.remove(id);
        self.parents.remove(id);
        self.entries.remove(id)
    }
}
