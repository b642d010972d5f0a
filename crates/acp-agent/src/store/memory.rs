//! Implements a session store in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use acp::v1::SessionId;

use super::entry::StoreEntry;
use super::error::StoreError;
use super::session_store::{SessionStore, StoreFuture};
use super::stored_session::{
    EntryFilter, EntryPage, HistoryEnd, SessionFilter, SessionPage, SessionProperties,
    SessionRevision, StoredSession,
};

/// The default size limit of a store, in bytes of entries.
const DEFAULT_LIMIT_BYTES: usize = 256 * 1024 * 1024;

/// An in-memory session store. Use it for tests, or for agents that reopen closed sessions without storing them on
/// disk.
#[derive(Debug)]
pub struct MemoryStore {
    state: Mutex<MemoryStoreState>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct MemoryStoreState {
    sessions: HashMap<SessionId, MemorySession>,
    bytes: usize,
}

#[derive(Debug)]
struct MemorySession {
    stored: StoredSession,
    log: BTreeMap<u64, StoreEntry>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Creates a store with a limit of 256 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(DEFAULT_LIMIT_BYTES)
    }

    /// Creates a store with a size limit, in bytes of entries. Entries that exceed the limit are rejected with
    /// [`StoreError::Full`].
    #[must_use]
    pub fn with_limit(bytes: usize) -> Self {
        Self {
            state: Mutex::default(),
            max_bytes: bytes,
        }
    }

    fn with_state<T>(
        &self,
        work: impl FnOnce(&mut MemoryStoreState) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl MemoryStoreState {
    fn session(&mut self, id: &SessionId) -> Result<&mut MemorySession, StoreError> {
        let session = self.sessions.get_mut(id);
        session.ok_or_else(|| StoreError::NotFound(id.clone()))
    }

    fn session_at_revision(
        &mut self,
        id: &SessionId,
        version: SessionRevision,
    ) -> Result<&mut MemorySession, StoreError> {
        let session = self.session(id)?;
        if session.stored.revision != version {
            return Err(StoreError::Conflict(id.clone()));
        }
        Ok(session)
    }

    /// Counts the size of the entries toward the limit.
    fn reserve_bytes<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a StoreEntry>,
        most: usize,
    ) -> Result<(), StoreError> {
        let more = entries_size(entries);
        if self.bytes + more > most {
            return Err(StoreError::Full(format!(
                "memory limit of {most} bytes reached"
            )));
        }
        self.bytes += more;
        Ok(())
    }
}

fn entries_size<'a>(entries: impl IntoIterator<Item = &'a StoreEntry>) -> usize {
    entries.into_iter().map(|entry| entry.body.len()).sum()
}

fn ready_future<'a, T: Send + 'a>(result: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(std::future::ready(result))
}

impl SessionStore for MemoryStore {
    fn create(
        &self,
        id: SessionId,
        properties: SessionProperties,
    ) -> StoreFuture<'_, StoredSession> {
        ready_future(self.with_state(|held| {
            if held.sessions.contains_key(&id) {
                return Err(StoreError::Exists(id));
            }
            let now = SystemTime::now();
            let stored = StoredSession {
                id: id.clone(),
                properties,
                created_at: now,
                updated_at: now,
                revision: SessionRevision::default(),
                next_entry: 0,
                folded_until: 0,
            };
            let log = BTreeMap::new();
            held.sessions.insert(
                id,
                MemorySession {
                    stored: stored.clone(),
                    log,
                },
            );
            Ok(stored)
        }))
    }

    fn fork(
        &self,
        from: SessionId,
        id: SessionId,
        properties: SessionProperties,
        end: Option<HistoryEnd>,
    ) -> StoreFuture<'_, StoredSession> {
        ready_future(self.with_state(|held| {
            if held.sessions.contains_key(&id) {
                return Err(StoreError::Exists(id));
            }
            let MemorySession { stored, log } = match end {
                Some(end) => held.session_at_revision(&from, end.revision)?,
                None => held.session(&from)?,
            };
            let next_entry = end.map_or(stored.next_entry, |end| end.next_entry);
            let log: BTreeMap<_, _> = log
                .range(..next_entry)
                .map(|(number, entry)| (*number, entry.clone()))
                .collect();
            let now = SystemTime::now();
            let stored = StoredSession {
                id: id.clone(),
                properties,
                created_at: now,
                updated_at: now,
                revision: SessionRevision::default(),
                next_entry,
                folded_until: stored.folded_until.min(next_entry),
            };
            held.reserve_bytes(log.values(), self.max_bytes)?;
            let session = MemorySession {
                stored: stored.clone(),
                log,
            };
            held.sessions.insert(id, session);
            Ok(stored)
        }))
    }

    fn find(&self, id: SessionId) -> StoreFuture<'_, StoredSession> {
        ready_future(self.with_state(|held| Ok(held.session(&id)?.stored.clone())))
    }

    fn append(
        &self,
        id: SessionId,
        expected: SessionRevision,
        entries: Vec<StoreEntry>,
        properties: Option<SessionProperties>,
    ) -> StoreFuture<'_, SessionRevision> {
        ready_future(self.with_state(|held| {
            held.session_at_revision(&id, expected)?;
            held.reserve_bytes(&entries, self.max_bytes)?;
            let MemorySession { stored, log } = held.session(&id)?;
            if !entries.is_empty() {
                stored.updated_at = SystemTime::now();
            }
            for entry in entries {
                log.insert(stored.next_entry, entry);
                stored.next_entry += 1;
            }
            if let Some(properties) = properties {
                stored.properties = properties;
            }
            stored.revision.0 += 1;
            Ok(stored.revision)
        }))
    }

    fn read(
        &self,
        id: SessionId,
        expected: SessionRevision,
        which: EntryFilter,
        from: u64,
    ) -> StoreFuture<'_, EntryPage> {
        ready_future(self.with_state(|held| {
            let session = held.session_at_revision(&id, expected)?;
            let entries = session.log.range(from..);
            let entries = entries.filter(|(_, entry)| which.includes(entry.kind));
            EntryPage::from_entries(entries.map(|(number, entry)| Ok((*number, entry.clone()))))
        }))
    }

    fn fold(
        &self,
        id: SessionId,
        expected: SessionRevision,
        from: u64,
        to: u64,
        entries: Vec<StoreEntry>,
    ) -> StoreFuture<'_, SessionRevision> {
        ready_future(self.with_state(|held| {
            let session = held.session_at_revision(&id, expected)?;
            let numbers: Vec<u64> = session.log.range(from..to).map(|(n, _)| *n).collect();
            let old: Vec<StoreEntry> = numbers
                .iter()
                .filter_map(|number| session.log.remove(number))
                .collect();
            session.log.extend((from..to).zip(entries.iter().cloned()));
            session.stored.folded_until = to;
            session.stored.revision.0 += 1;
            let version = session.stored.revision;
            held.bytes = (held.bytes + entries_size(&entries)).saturating_sub(entries_size(&old));
            Ok(version)
        }))
    }

    fn list(
        &self,
        filter: SessionFilter,
        cursor: Option<String>,
        most: usize,
    ) -> StoreFuture<'_, SessionPage> {
        ready_future(self.with_state(|held| {
            let after = cursor.as_deref().map(parse_cursor).transpose()?;
            let sessions = held.sessions.values().map(|session| &session.stored);
            let mut sessions: Vec<&StoredSession> = sessions
                .filter(|stored| stored.next_entry > 0)
                .filter(|stored| {
                    let properties = &stored.properties;
                    let archived = filter.archived.is_none_or(|it| it == properties.archived);
                    let cwd = filter.cwd.as_ref();
                    archived && cwd.is_none_or(|cwd| *cwd == properties.cwd)
                })
                .filter(|stored| {
                    after
                        .as_ref()
                        .is_none_or(|after| list_position(stored) > *after)
                })
                .collect();
            sessions.sort_by_key(|stored| list_position(stored));
            let more = sessions.len() > most;
            let sessions: Vec<StoredSession> = sessions.into_iter().take(most).cloned().collect();
            let last = sessions.last().filter(|_| more).map(list_position);
            let cursor = last.map(|(updated, id)| format!("{}-{id}", updated.0));
            Ok(SessionPage { sessions, cursor })
        }))
    }

    fn delete(&self, id: SessionId) -> StoreFuture<'_, ()> {
        ready_future(self.with_state(|held| {
            let Some(session) = held.sessions.remove(&id) else {
                return Err(StoreError::NotFound(id));
            };
            held.bytes = held
                .bytes
                .saturating_sub(entries_size(session.log.values()));
            Ok(())
        }))
    }
}

/// The sort key for listing sessions, most recently changed first.
type ListPosition = (std::cmp::Reverse<u64>, SessionId);

fn list_position(stored: &StoredSession) -> ListPosition {
    let since = stored.updated_at.duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
    (std::cmp::Reverse(nanos), stored.id.clone())
}

fn parse_cursor(cursor: &str) -> Result<ListPosition, StoreError> {
    let read = || {
        let (updated, id) = cursor.split_once('-')?;
        Some((std::cmp::Reverse(updated.parse().ok()?), id.into()))
    };
    read().ok_or_else(|| StoreError::Cursor(cursor.to_owned()))
}
