//! Sessions in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use acp::v1::SessionId;

use super::entry::Entry;
use super::error::StoreError;
use super::kept::{Kept, Listed, Page, Properties, SessionFilter, Version, Which};
use super::session_store::{SessionStore, Stored};

/// How much is kept if nothing else is said, in bytes of entries.
const MOST: usize = 256 * 1024 * 1024;

/// Keeps sessions for as long as it lives itself: for tests, and for an agent that is to open sessions again
/// that it closed.
#[derive(Debug)]
pub struct MemoryStore {
    held: Mutex<Held>,
    most: usize,
}

#[derive(Debug, Default)]
struct Held {
    sessions: HashMap<SessionId, Session>,
    bytes: usize,
}

#[derive(Debug)]
struct Session {
    kept: Kept,
    log: BTreeMap<u64, Entry>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// A store with room for 256 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::with_room(MOST)
    }

    /// A store with room for entries of so many bytes; more are refused with [`StoreError::Full`].
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self {
            held: Mutex::default(),
            most: bytes,
        }
    }

    fn held<T>(
        &self,
        work: impl FnOnce(&mut Held) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        work(&mut self.held.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Held {
    fn session(&mut self, id: &SessionId) -> Result<&mut Session, StoreError> {
        let session = self.sessions.get_mut(id);
        session.ok_or_else(|| StoreError::NotFound(id.clone()))
    }

    fn expected(&mut self, id: &SessionId, version: Version) -> Result<&mut Session, StoreError> {
        let session = self.session(id)?;
        if session.kept.version != version {
            return Err(StoreError::Conflict(id.clone()));
        }
        Ok(session)
    }

    /// Takes room for entries.
    fn take<'a>(
        &mut self,
        entries: impl IntoIterator<Item = &'a Entry>,
        most: usize,
    ) -> Result<(), StoreError> {
        let more = size(entries);
        if self.bytes + more > most {
            return Err(StoreError::Full(format!("{most} bytes are in memory")));
        }
        self.bytes += more;
        Ok(())
    }
}

fn size<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> usize {
    entries.into_iter().map(|entry| entry.body.len()).sum()
}

fn done<'a, T: Send + 'a>(result: Result<T, StoreError>) -> Stored<'a, T> {
    Box::pin(std::future::ready(result))
}

impl SessionStore for MemoryStore {
    fn create(&self, id: SessionId, properties: Properties) -> Stored<'_, Kept> {
        done(self.held(|held| {
            if held.sessions.contains_key(&id) {
                return Err(StoreError::Exists(id));
            }
            let now = SystemTime::now();
            let kept = Kept {
                id: id.clone(),
                properties,
                created: now,
                updated: now,
                version: Version::default(),
                next: 0,
                folded: 0,
            };
            let log = BTreeMap::new();
            held.sessions.insert(
                id,
                Session {
                    kept: kept.clone(),
                    log,
                },
            );
            Ok(kept)
        }))
    }

    fn fork(&self, from: SessionId, id: SessionId, properties: Properties) -> Stored<'_, Kept> {
        done(self.held(|held| {
            if held.sessions.contains_key(&id) {
                return Err(StoreError::Exists(id));
            }
            let Session { kept, log } = held.session(&from)?;
            let now = SystemTime::now();
            let kept = Kept {
                id: id.clone(),
                properties,
                created: now,
                updated: now,
                version: Version::default(),
                next: kept.next,
                folded: kept.folded,
            };
            let log = log.clone();
            held.take(log.values(), self.most)?;
            let session = Session {
                kept: kept.clone(),
                log,
            };
            held.sessions.insert(id, session);
            Ok(kept)
        }))
    }

    fn find(&self, id: SessionId) -> Stored<'_, Kept> {
        done(self.held(|held| Ok(held.session(&id)?.kept.clone())))
    }

    fn append(
        &self,
        id: SessionId,
        expected: Version,
        entries: Vec<Entry>,
        properties: Option<Properties>,
    ) -> Stored<'_, Version> {
        done(self.held(|held| {
            held.expected(&id, expected)?;
            held.take(&entries, self.most)?;
            let Session { kept, log } = held.session(&id)?;
            if !entries.is_empty() {
                kept.updated = SystemTime::now();
            }
            for entry in entries {
                log.insert(kept.next, entry);
                kept.next += 1;
            }
            if let Some(properties) = properties {
                kept.properties = properties;
            }
            kept.version.0 += 1;
            Ok(kept.version)
        }))
    }

    fn read(&self, id: SessionId, expected: Version, which: Which, from: u64) -> Stored<'_, Page> {
        done(self.held(|held| {
            let session = held.expected(&id, expected)?;
            let entries = session.log.range(from..);
            let entries = entries.filter(|(_, entry)| which.has(entry.kind));
            Page::of(entries.map(|(number, entry)| Ok((*number, entry.clone()))))
        }))
    }

    fn fold(
        &self,
        id: SessionId,
        expected: Version,
        from: u64,
        to: u64,
        entries: Vec<Entry>,
    ) -> Stored<'_, Version> {
        done(self.held(|held| {
            let session = held.expected(&id, expected)?;
            let numbers: Vec<u64> = session.log.range(from..to).map(|(n, _)| *n).collect();
            let old: Vec<Entry> = numbers
                .iter()
                .filter_map(|number| session.log.remove(number))
                .collect();
            session.log.extend((from..to).zip(entries.iter().cloned()));
            session.kept.folded = to;
            session.kept.version.0 += 1;
            let version = session.kept.version;
            held.bytes = (held.bytes + size(&entries)).saturating_sub(size(&old));
            Ok(version)
        }))
    }

    fn list(
        &self,
        filter: SessionFilter,
        cursor: Option<String>,
        most: usize,
    ) -> Stored<'_, Listed> {
        done(self.held(|held| {
            let after = cursor.as_deref().map(place).transpose()?;
            let sessions = held.sessions.values().map(|session| &session.kept);
            let mut sessions: Vec<&Kept> = sessions
                .filter(|kept| kept.next > 0)
                .filter(|kept| {
                    let properties = &kept.properties;
                    let archived = filter.archived.is_none_or(|it| it == properties.archived);
                    let cwd = filter.cwd.as_ref();
                    archived && cwd.is_none_or(|cwd| *cwd == properties.cwd)
                })
                .filter(|kept| after.as_ref().is_none_or(|after| order(kept) > *after))
                .collect();
            sessions.sort_by_key(|kept| order(kept));
            let more = sessions.len() > most;
            let sessions: Vec<Kept> = sessions.into_iter().take(most).cloned().collect();
            let last = sessions.last().filter(|_| more).map(order);
            let cursor = last.map(|(updated, id)| format!("{}-{id}", updated.0));
            Ok(Listed { sessions, cursor })
        }))
    }

    fn delete(&self, id: SessionId) -> Stored<'_, ()> {
        done(self.held(|held| {
            let Some(session) = held.sessions.remove(&id) else {
                return Err(StoreError::NotFound(id));
            };
            held.bytes = held.bytes.saturating_sub(size(session.log.values()));
            Ok(())
        }))
    }
}

/// Where a session stands in the list: the newest first.
type Place = (std::cmp::Reverse<u64>, SessionId);

fn order(kept: &Kept) -> Place {
    let since = kept.updated.duration_since(SystemTime::UNIX_EPOCH);
    let nanos = since.unwrap_or_default().as_nanos();
    let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
    (std::cmp::Reverse(nanos), kept.id.clone())
}

fn place(cursor: &str) -> Result<Place, StoreError> {
    let read = || {
        let (updated, id) = cursor.split_once('-')?;
        Some((std::cmp::Reverse(updated.parse().ok()?), id.into()))
    };
    read().ok_or_else(|| StoreError::Cursor(cursor.to_owned()))
}
