//! Requests of ours that wait for their answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use acp_wire::jsonrpc;
use serde_json::value::RawValue;

use crate::error::Error;

/// What to do with an answer. Runs on the reader, in the order of the wire, so that whatever it
/// registers is there before the next message is looked at.
pub(crate) type OnAnswer = Box<dyn FnOnce(Result<&RawValue, Error>) + Send>;

/// A request that waits.
pub(crate) struct Waiting {
    pub(crate) on_answer: OnAnswer,
    /// Its answer must not be seen before the updates that arrived ahead of it.
    pub(crate) ordered: bool,
}

#[derive(Default)]
pub(crate) struct Pending(Mutex<Table>);

#[derive(Default)]
struct Table {
    waiting: HashMap<i64, Waiting>,
    next: i64,
    closed: Option<Error>,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request and gives it its id; after the end of the connection, the error instead.
    pub(crate) fn add(&self, waiting: Waiting) -> Result<i64, Error> {
        let mut table = self.lock();
        if let Some(error) = &table.closed {
            return Err(error.clone());
        }
        let id = table.next;
        table.next += 1;
        table.waiting.insert(id, waiting);
        Ok(id)
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
            jsonrpc::RequestId::Number(id) => self.lock().waiting.get(id).is_none_or(|w| !w.ordered),
            _ => true,
        }
    }

    /// Whether anyone waits for an answer that may overtake.
    pub(crate) fn any_overtaking(&self) -> bool {
        self.lock().waiting.values().any(|w| !w.ordered)
    }

    /// Fails the requests whose answers may overtake, or all of them.
    pub(crate) fn fail(&self, error: &Error, all: bool) {
        let failed: Vec<Waiting> = {
            let mut table = self.lock();
            if all {
                table.closed.get_or_insert_with(|| error.clone());
            }
            let ids: Vec<i64> =
                table.waiting.iter().filter(|(_, w)| all || !w.ordered).map(|(id, _)| *id).collect();
            ids.into_iter().filter_map(|id| table.waiting.remove(&id)).collect()
        };
        for waiting in failed {
            (waiting.on_answer)(Err(error.clone()));
        }
    }
}
