//! Requests of ours that wait for their answer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_wire::jsonrpc;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::error::Error;

/// What to do with an answer. Runs on the reader, in the order of the wire, so that whatever it
/// registers is there before the next message is looked at.
pub(crate) type ResponseHandler = Box<dyn FnOnce(Result<&RawValue, Error>) + Send>;

/// How many requests are kept whose answers nobody waits for: a peer that never answers must not make them
/// grow. Beyond it the earliest is taken for cancelled.
const ABANDONED: usize = 1024;

/// A request that waits.
pub(crate) struct PendingEntry {
    pub(crate) on_response: ResponseHandler,
    /// Its answer must not be seen before the updates that arrived ahead of it.
    pub(crate) is_ordered: bool,
    /// Where the answer's text goes if it is large.
    pub(crate) large_text: Option<LargeText>,
}

/// The text of a file, taken out of the answer that it arrived in while it arrived: the answer has an empty
/// one in its place.
#[derive(Debug, Clone, Default)]
pub(crate) struct LargeText(Arc<Mutex<Option<String>>>);

impl LargeText {
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, text: String) {
        *self.lock() = Some(text);
    }

    pub(crate) fn take(&self) -> Option<String> {
        self.lock().take()
    }
}

#[derive(Default)]
pub(crate) struct PendingTable {
    table: Mutex<PendingTableState>,
    request_added: Notify,
}

#[derive(Default)]
struct PendingTableState {
    requests: HashMap<i64, PendingEntry>,
    /// Those whose answers nobody waits for, and some that have been answered since.
    abandoned: VecDeque<i64>,
    next_id: i64,
    close_error: Option<Error>,
}

/// Which requests are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingFilter {
    All,
    /// Those whose answers may be seen before updates that came ahead of them.
    Overtaking,
}

impl PendingTable {
    fn lock(&self) -> MutexGuard<'_, PendingTableState> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request and gives it its id; when no answers arrive any more, it fails at once.
    pub(crate) fn add(&self, waiting: PendingEntry) -> Result<i64, Error> {
        let error = {
            let mut table = self.lock();
            match &table.close_error {
                Some(error) => error.clone(),
                None => {
                    let id = table.next_id;
                    table.next_id += 1;
                    table.requests.insert(id, waiting);
                    self.request_added.notify_one();
                    return Ok(id);
                }
            }
        };
        (waiting.on_response)(Err(error.clone()));
        Err(error)
    }

    /// Marks a request as abandoned: nobody waits for its response, but its handler still runs.
    pub(crate) fn abandon(&self, id: i64) {
        let mut given_up = Vec::new();
        {
            let mut table = self.lock();
            let PendingTableState {
                requests: waiting,
                abandoned,
                ..
            } = &mut *table;
            if !waiting.contains_key(&id) {
                return;
            }
            abandoned.push_back(id);
            // Not with each: those that have been answered stay until then.
            if abandoned.len() > 2 * ABANDONED {
                abandoned.retain(|id| waiting.contains_key(id));
                let more = abandoned.len().saturating_sub(ABANDONED);
                given_up.extend(abandoned.drain(..more).filter_map(|id| waiting.remove(&id)));
            }
        }
        for waiting in given_up {
            (waiting.on_response)(Err(Error::Cancelled));
        }
    }

    /// Waits until a request is added, or has been since this was last called.
    pub(crate) async fn wait_for_request(&self) {
        self.request_added.notified().await;
    }

    /// Takes out the request that an answer is for.
    pub(crate) fn take(&self, id: &jsonrpc::RequestId) -> Option<PendingEntry> {
        match id {
            jsonrpc::RequestId::Number(id) => self.lock().requests.remove(id),
            _ => None,
        }
    }

    /// Whether the answer to this request may be seen before updates that came ahead of it.
    pub(crate) fn may_overtake(&self, id: &jsonrpc::RequestId) -> bool {
        match id {
            jsonrpc::RequestId::Number(id) => {
                self.lock().requests.get(id).is_none_or(|w| !w.is_ordered)
            }
            _ => true,
        }
    }

    /// Whether a large text may be taken out of the answer to this request, which is then looked at at once.
    pub(crate) fn allows_large_text(&self, id: i64) -> bool {
        let table = self.lock();
        let waiting = table.requests.get(&id);
        waiting.is_some_and(|waiting| waiting.large_text.is_some() && !waiting.is_ordered)
    }

    /// Whether anyone waits for an answer that may overtake.
    pub(crate) fn has_overtaking(&self) -> bool {
        self.lock().requests.values().any(|w| !w.is_ordered)
    }

    /// No answers arrive any more: requests that are added from here on fail.
    pub(crate) fn close(&self, error: &Error) {
        self.lock().close_error.get_or_insert_with(|| error.clone());
    }

    /// Fails requests that wait.
    pub(crate) fn fail(&self, error: &Error, which: PendingFilter) {
        let failed: Vec<PendingEntry> = {
            let mut table = self.lock();
            let meant =
                |_: &i64, w: &mut PendingEntry| which == PendingFilter::All || !w.is_ordered;
            table
                .requests
                .extract_if(meant)
                .map(|(_, waiting)| waiting)
                .collect()
        };
        for waiting in failed {
            (waiting.on_response)(Err(error.clone()));
        }
    }
}
