//! Pending requests: sent by this side, but without a response yet.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_wire::{Request, TextResponse, jsonrpc};
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::error::Error;

/// A callback for a response. It runs in the reader, in order of arrival, so it can set up what the next message needs.
pub(crate) type ResponseHandler = Box<dyn FnOnce(Result<&RawValue, Error>) + Send>;

/// The maximum number of abandoned requests. Beyond this limit, the oldest ones are cancelled, so that the table cannot
/// grow if a peer never responds.
const MAX_ABANDONED_REQUESTS: usize = 1024;

/// A pending request, and how to handle its response.
pub(crate) struct PendingEntry {
    pub(crate) on_response: ResponseHandler,
    /// Whether the response must wait until all earlier updates have been handled.
    pub(crate) is_ordered: bool,
    /// Receives the response's text if it is large.
    pub(crate) large_text: Option<LargeText>,
}

/// The text of a response, extracted as it arrived. The response itself contains an empty text instead.
#[derive(Debug, Clone)]
pub(crate) struct LargeText {
    /// The method of the request.
    pub(crate) method: &'static str,
    /// The name of the field that contains the text.
    field: &'static str,
    text: Arc<Mutex<Option<String>>>,
}

impl LargeText {
    /// Creates an empty value that receives the text in the response to an `R`.
    pub(crate) fn for_request<R: Request<Response: TextResponse>>() -> Self {
        Self {
            method: R::METHOD,
            field: R::Response::TEXT_FIELD,
            text: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, text: String) {
        *self.lock() = Some(text);
    }

    pub(crate) fn take(&self) -> Option<String> {
        self.lock().take()
    }
}

/// A connection's pending requests.
#[derive(Default)]
pub(crate) struct PendingTable {
    table: Mutex<PendingTableState>,
    request_added: Notify,
}

#[derive(Default)]
struct PendingTableState {
    requests: HashMap<i64, PendingEntry>,
    /// The ids of requests whose responses are no longer awaited. Some may since have received a response.
    abandoned: VecDeque<i64>,
    next_id: i64,
    close_error: Option<Error>,
}

/// A selection of pending requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingFilter {
    /// All requests.
    All,
    /// Requests whose responses can be handled before earlier updates.
    Overtaking,
}

impl PendingTable {
    fn lock(&self) -> MutexGuard<'_, PendingTableState> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request and returns its id. If the connection no longer receives responses, passes an error to the
    /// handler and returns it.
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

    /// Marks a request as abandoned, because nothing waits for its response any longer. Its handler is still called.
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
            // Clean up only now and then. Some of these requests may have got their responses.
            if abandoned.len() > 2 * MAX_ABANDONED_REQUESTS {
                abandoned.retain(|id| waiting.contains_key(id));
                let more = abandoned.len().saturating_sub(MAX_ABANDONED_REQUESTS);
                given_up.extend(abandoned.drain(..more).filter_map(|id| waiting.remove(&id)));
            }
        }
        for waiting in given_up {
            (waiting.on_response)(Err(Error::Cancelled));
        }
    }

    /// Waits until a request is added, or returns at once if one was added since the last call.
    pub(crate) async fn wait_for_request(&self) {
        self.request_added.notified().await;
    }

    /// Removes and returns a request.
    pub(crate) fn take(&self, id: &jsonrpc::RequestId) -> Option<PendingEntry> {
        match id {
            jsonrpc::RequestId::Number(id) => self.lock().requests.remove(id),
            _ => None,
        }
    }

    /// Returns `true` if a request's response can be handled before earlier updates.
    pub(crate) fn may_overtake(&self, id: &jsonrpc::RequestId) -> bool {
        match id {
            jsonrpc::RequestId::Number(id) => {
                self.lock().requests.get(id).is_none_or(|w| !w.is_ordered)
            }
            _ => true,
        }
    }

    /// Returns the name of the response field that can contain a large text, or `None` if the text must not be
    /// extracted.
    pub(crate) fn large_text_field(&self, id: i64) -> Option<&'static str> {
        let table = self.lock();
        let waiting = table.requests.get(&id).filter(|w| !w.is_ordered)?;
        Some(waiting.large_text.as_ref()?.field)
    }

    /// Returns `true` if any pending request's response can be handled before earlier updates.
    pub(crate) fn has_overtaking_request(&self) -> bool {
        self.lock().requests.values().any(|w| !w.is_ordered)
    }

    /// Closes the table. Requests added from now on fail with `error`.
    pub(crate) fn close(&self, error: &Error) {
        self.lock().close_error.get_or_insert_with(|| error.clone());
    }

    /// Fails the selected requests with `error`.
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
