//! Tracks client requests that the agent is working on.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use acp::jsonrpc::RequestId;
use tokio::sync::Notify;

use crate::client_message::ClientRequest;
use crate::metrics::AgentCounters;

/// The maximum number of requests to track for a connection. Further requests are relayed but not tracked.
const MAX_TRACKED: usize = 4096;

/// A request that the agent has not responded to yet.
#[derive(Debug)]
pub(crate) struct RequestInFlight {
    pub(crate) method: String,
    /// The session that the request belongs to, if any.
    pub(crate) session: Option<String>,
    pub(crate) started: Instant,
}

/// The requests in flight on one connection.
///
/// They are tracked for logs, metrics and shutting down. What is relayed does not depend on them.
#[derive(Debug, Default)]
pub(crate) struct RequestsInFlight {
    requests: Mutex<HashMap<RequestId, RequestInFlight>>,
    changed: Notify,
    counters: Arc<AgentCounters>,
}

impl RequestsInFlight {
    /// Creates an empty set of requests for one connection. `counters` are the counters of its agent.
    pub(crate) fn new(counters: Arc<AgentCounters>) -> Self {
        Self {
            requests: Mutex::default(),
            changed: Notify::new(),
            counters,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, RequestInFlight>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request.
    pub(crate) fn add(&self, request: ClientRequest) {
        self.counters.requests.increment();
        let mut requests = self.lock();
        if requests.len() < MAX_TRACKED {
            let in_flight = RequestInFlight {
                method: request.method,
                session: request.session,
                started: Instant::now(),
            };
            if requests.insert(request.id, in_flight).is_none() {
                self.counters.requests_in_flight.increment();
            }
        }
    }

    /// Removes and returns the request that a response answers.
    pub(crate) fn remove(&self, id: &RequestId) -> Option<RequestInFlight> {
        let removed = self.lock().remove(id)?;
        self.counters.requests_in_flight.decrement();
        self.changed.notify_waiters();
        Some(removed)
    }

    /// Returns `true` if no request is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Waits until no request is in flight.
    pub(crate) async fn wait_until_empty(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on, no change is missed.
            changed.as_mut().enable();
            if self.is_empty() {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for RequestsInFlight {
    fn drop(&mut self) {
        for _ in 0..self.lock().len() {
            self.counters.requests_in_flight.decrement();
        }
    }
}
