//! The registry of an endpoint's connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handler::ConnectionInfo;
use super::http::HttpConnection;
use super::stats::ServerStats;
use super::user::TokenUser;
use super::websocket::WebSocketConnection;

/// The response to a request that refers to a connection that does not exist, or is another user's.
pub(super) const UNKNOWN_CONNECTION: &str =
    "unknown connection: it has ended, or the server has restarted";

/// A connection that later requests can refer to by its id.
#[derive(Clone)]
pub(super) enum ServedConnection {
    WebSocket(Arc<WebSocketConnection>),
    Http(Arc<HttpConnection>),
}

impl ServedConnection {
    /// Returns the number of message bytes received, and the number sent.
    fn transferred(&self) -> (u64, u64) {
        match self {
            Self::WebSocket(connection) => connection.transferred(),
            Self::Http(connection) => {
                (connection.incoming.received(), connection.streams.written())
            }
        }
    }
}

/// The connections of an endpoint, and its counters.
pub(super) struct Registry {
    connections: Mutex<HashMap<String, (ConnectionInfo, ServedConnection)>>,
    /// The tasks that run all connections.
    pub(super) tasks: TaskTracker,
    /// Cancelled when the endpoint shuts down.
    pub(super) draining: CancellationToken,
    /// Cancelled to stop handlers that are still running.
    pub(super) killed: CancellationToken,
    pub(super) counters: ServerCounters,
}

/// The counters that [`ServerStats`] reports.
#[derive(Debug, Default)]
pub(super) struct ServerCounters {
    pub(super) connections: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) limited: AtomicU64,
    pub(super) resumed: AtomicU64,
    pub(super) abandoned: AtomicU64,
    pub(super) received_bytes: AtomicU64,
    pub(super) sent_bytes: AtomicU64,
}

/// Adds one to a counter.
pub(super) fn increment(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Registry {
    pub(super) fn new() -> Self {
        Self {
            connections: Mutex::default(),
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            killed: CancellationToken::new(),
            counters: ServerCounters::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (ConnectionInfo, ServedConnection)>> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. Returns `false` if there are already `most` connections.
    pub(super) fn add(
        &self,
        info: ConnectionInfo,
        connection: ServedConnection,
        most: usize,
    ) -> bool {
        let mut all = self.lock();
        if all.len() >= most {
            drop(all);
            increment(&self.counters.limited);
            return false;
        }
        all.insert(info.id.clone(), (info, connection));
        drop(all);
        increment(&self.counters.connections);
        true
    }

    pub(super) fn get(&self, id: &str) -> Option<ServedConnection> {
        self.lock()
            .get(id)
            .map(|(_, connection)| connection.clone())
    }

    /// Returns `true` if a user may use a connection: it is theirs, or does not exist.
    pub(super) fn may_use(&self, id: &HeaderValue, user: &TokenUser) -> bool {
        let all = self.lock();
        let connection = id.to_str().ok().and_then(|id| all.get(id));
        connection.is_none_or(|(info, _)| info.user == *user)
    }

    pub(super) fn remove(&self, id: &str) {
        let removed = self.lock().remove(id);
        if let Some((_, connection)) = removed {
            let (received, sent) = connection.transferred();
            self.counters
                .received_bytes
                .fetch_add(received, Ordering::Relaxed);
            self.counters.sent_bytes.fetch_add(sent, Ordering::Relaxed);
        }
    }

    pub(super) fn infos(&self) -> Vec<ConnectionInfo> {
        self.lock().values().map(|(info, _)| info.clone()).collect()
    }

    pub(super) fn stats(&self) -> ServerStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        let open: Vec<ServedConnection> = {
            let all = self.lock();
            all.values()
                .map(|(_, connection)| connection.clone())
                .collect()
        };
        let transferred = open.iter().map(ServedConnection::transferred);
        let (received, sent) = transferred.fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
        ServerStats {
            open_connections: open.len() as u64,
            connections: read(&counters.connections),
            refused: read(&counters.refused),
            limited: read(&counters.limited),
            resumed: read(&counters.resumed),
            abandoned: read(&counters.abandoned),
            received_bytes: received + read(&counters.received_bytes),
            sent_bytes: sent + read(&counters.sent_bytes),
        }
    }
}
