//! Requests of ours that wait for their answer.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_wire::jsonrpc;
use serde_json::value::RawValue;
use tokio::sync::Notify;

use crate::error::Error;

/// What to do with an answer. Runs on the reader, in the order of the wire, so that whatever it
/// registers is there before the next message is looked at.
pub(crate) type OnAnswer = Box<dyn FnOnce(Result<&RawValue, Error>) + Send>;

/// How many requests are kept whose answers nobody waits for: a peer that never answers must not make them
/// grow. Beyond it the earliest is taken for cancelled.
const ABANDONED: usize = 1024;

/// A request that waits.
pub(crate) struct Waiting {
    pub(crate) on_answer: OnAnswer,
    /// Its answer must not be seen before the updates that arrived ahead of it.
    pub(crate) ordered: bool,
    /// Where the answer's text goes if it is large.
    pub(crate) text: Option<LargeText>,
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
pub(crate) struct Pending {
    table: Mutex<Table>,
    added: Notify,
}

#[derive(Default)]
struct Table {
    waiting: HashMap<i64, Waiting>,
    /// Those whose answers nobody waits for, and some that have been answered since.
    abandoned: VecDeque<i64>,
    next: i64,
    closed: Option<Error>,
}

/// Which requests are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    All,
    /// Those whose answers may be seen before updates that came ahead of them.
    Overtaking,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request and gives it its id; when no answers arrive any more, it fails at once.
    pub(crate) fn add(&self, waiting: Waiting) -> Result<i64, Error> {
        let error = {
            let mut table = self.lock();
            match &table.closed {
                Some(error) => error.clone(),
                None => {
                    let id = table.next;
                    table.next += 1;
                    table.waiting.insert(id, waiting);
                    self.added.notify_one();
                    return Ok(id);
                }
            }
        };
        (waiting.on_answer)(Err(error.clone()));
        Err(error)
    }

    /// Nobody waits for the answer to this request any more; what is to be done with it is still done.
    pub(crate) fn abandon(&self, id: i64) {
        let mut given_up = Vec::new();
        {
            let mut table = self.lock();
            let Table {
                waiting, abandoned, ..
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
            (waiting.on_answer)(Err(Error::Cancelled));
        }
    }

    /// Waits until a request is added, or has been since this was last called.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// Takes out the request that an answer is for.
    pub(crate) fn take(&self, id: &jsonrpc::RequestId) -> Option<Waiting> {
        match id {
            jsonrpc::RequestId::Number(id) => self.lock().waiting.remove(id),
            _ => None,
        }
    }

    /// Whether the answer to this request may be seen before updates that came ahead of it.
    pub(crate) fn may_overtake(&self, id: &jsonrpc::RequestId) -> bool {
        match id {
            jsonrpc::RequestId::Number(id) => {
                self.lock().waiting.get(id).is_none_or(|w| !w.ordered)
            }
            _ => true,
        }
    }

    /// Whether a large text may be taken out of the answer to this request, which is then looked at at once.
    pub(crate) fn takes_text(&self, id: i64) -> bool {
        let table = self.lock();
        let waiting = table.waiting.get(&id);
        waiting.is_some_and(|waiting| waiting.text.is_some() && !waiting.ordered)
    }

    /// Whether anyone waits for an answer that may overtake.
    pub(crate) fn any_overtaking(&self) -> bool {
        self.lock().waiting.values().any(|w| !w.ordered)
    }

    /// No answers arrive any more: requests that are added from here on fail.
    pub(crate) fn close(&self, error: &Error) {
        self.lock().closed.get_or_insert_with(|| error.clone());
    }

    /// Fails requests that wait.
    pub(crate) fn fail(&self, error: &Error, which: Which) {
        let failed: Vec<Waiting> = {
            let mut table = self.lock();
            let meant = |_: &i64, w: &mut Waiting| which == Which::All || !w.ordered;
            table
                .waiting
                .extract_if(meant)
                .map(|(_, waiting)| waiting)
                .collect()
        };
        for waiting in failed {
            (waiting.on_answer)(Err(error.clone()));
        }
    }
}
