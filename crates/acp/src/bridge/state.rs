//! A bridge's pending requests and its sessions. Both tables are limited in size.

use std::collections::{BTreeMap, HashMap};

use acp_wire::jsonrpc::{self, RequestId};

use crate::lru_map::to_key;
use crate::session_setup::MAX_ID_BYTES;

/// One side's pending requests, each with the data needed to translate its response.
#[derive(Debug)]
pub(super) struct PendingRequests<T> {
    pending: BTreeMap<RequestId, T>,
    limit: usize,
}

impl<T> PendingRequests<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            pending: BTreeMap::new(),
            limit,
        }
    }

    /// Checks that a request with this id can be accepted.
    ///
    /// # Errors
    /// The id is in use or too long, or too many requests are pending. The error is the response to send.
    pub(super) fn check_capacity(&self, id: &RequestId) -> Result<(), jsonrpc::Error> {
        if self.pending.contains_key(id) {
            return Err(jsonrpc::Error::new(
                jsonrpc::Error::INVALID_REQUEST,
                "Invalid request: a request with this id is already in flight",
            ));
        }
        if matches!(id, RequestId::String(text) if text.len() > MAX_ID_BYTES) {
            return Err(jsonrpc::Error::new(
                jsonrpc::Error::INVALID_REQUEST,
                format!("Invalid request: id too long (limit: {MAX_ID_BYTES} bytes)"),
            ));
        }
        if self.pending.len() >= self.limit {
            return Err(jsonrpc::Error::internal(format!(
                "too many concurrent requests: the limit is {}",
                self.limit
            )));
        }
        Ok(())
    }

    pub(super) fn add(&mut self, id: &RequestId, what: T) {
        self.pending.insert(id.clone(), what);
    }

    pub(super) fn get(&self, id: &RequestId) -> Option<&T> {
        self.pending.get(id)
    }

    pub(super) fn take(&mut self, id: &RequestId) -> Option<T> {
        self.pending.remove(id)
    }

    /// Removes and returns all pending requests, in the order of their ids.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (RequestId, T)> + use<T> {
        std::mem::take(&mut self.pending).into_iter()
    }
}

/// The maximum number of sessions in the table. There are always fewer busy sessions, because each has a pending
/// request, and [`Limits::requests`](crate::Limits::requests) limits those.
const MAX_SESSIONS: usize = 2048;

/// A session table of limited size. When it is full, it drops the least recently used idle session.
#[derive(Debug, Default)]
pub(super) struct BridgeSessions<T> {
    entries: HashMap<String, (u64, T)>,
    clock: u64,
}

/// A session that can be busy. Busy sessions are never removed from a full table.
pub(super) trait BusySession {
    fn is_busy(&self) -> bool;
}

impl<T: BusySession + Default> BridgeSessions<T> {
    pub(super) fn get(&mut self, id: &str) -> Option<&mut T> {
        self.clock += 1;
        let (heard, session) = self.entries.get_mut(&*to_key(id))?;
        *heard = self.clock;
        Some(session)
    }

    /// Returns the session with this id and marks it as used. Adds the session if it is new.
    pub(super) fn get_or_insert(&mut self, id: &str) -> &mut T {
        self.clock += 1;
        let id = to_key(id);
        if !self.entries.contains_key(&*id) && self.entries.len() >= MAX_SESSIONS {
            let oldest = self
                .entries
                .iter()
                .filter(|(_, (_, session))| !session.is_busy())
                .min_by_key(|(_, (heard, _))| *heard);
            if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                self.entries.remove(&oldest);
            }
        }
        let entry = self.entries.entry(id.into_owned()).or_default();
        entry.0 = self.clock;
        &mut entry.1
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.entries.remove(&*to_key(id));
    }

    /// Returns an iterator over all sessions, most recently used first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_by_key(|(_, (heard, _))| std::cmp::Reverse(*heard));
        all.into_iter()
            .map(|(id, (_, session))| (id.as_str(), session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct TestBridgeSession(bool);
    impl BusySession for TestBridgeSession {
        fn is_busy(&self) -> bool {
            self.0
        }
    }

    #[test]
    fn least_recently_used_idle_session_is_evicted() {
        let mut sessions = BridgeSessions::<TestBridgeSession>::default();
        sessions.get_or_insert("works").0 = true;
        for n in 0..MAX_SESSIONS - 1 {
            sessions.get_or_insert(&n.to_string());
        }
        sessions.get_or_insert("0");
        sessions.get_or_insert("one too many");
        assert!(sessions.get("works").is_some());
        assert!(sessions.get("0").is_some());
        assert!(sessions.get("1").is_none());
        assert_eq!(sessions.entries.len(), MAX_SESSIONS);
    }
}
