//! What the handlers of the page share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::{Semaphore, watch};

use super::access::PageAccess;
use super::findings::SharedFindings;
use super::hand::HandSender;
use super::list::SharedList;

/// The maximum number of open pages.
const MAX_PAGES: usize = 16;

/// The maximum number of other requests that read the trace at the same time.
const MAX_READERS: usize = 4;

/// What the handlers need.
pub(super) struct TracePage {
    trace: PathBuf,
    access: Arc<PageAccess>,
    pub(super) sender: Option<Arc<HandSender>>,
    pub(super) findings: SharedFindings,
    /// Whether the trace is deleted when the command ends.
    pub(super) is_temporary: bool,
    lists: Mutex<OpenLists>,
    /// The number of open pages.
    pages: watch::Sender<usize>,
    readers: Semaphore,
}

/// The lists of the open pages, by their numbers.
#[derive(Debug, Default)]
struct OpenLists {
    last: u64,
    by_number: HashMap<u64, SharedList>,
}

/// An open page with its list, which is dropped when the page is closed.
pub(super) struct OpenPage {
    pub(super) page: Arc<TracePage>,
    pub(super) number: u64,
    pub(super) list: SharedList,
}

impl Drop for OpenPage {
    fn drop(&mut self) {
        let mut lists = self.page.lock_lists();
        lists.by_number.remove(&self.number);
        self.page.pages.send_replace(lists.by_number.len());
    }
}

impl TracePage {
    pub(super) fn new(
        trace: PathBuf,
        access: PageAccess,
        sender: Option<Arc<HandSender>>,
        is_temporary: bool,
    ) -> Self {
        Self {
            trace,
            access: Arc::new(access),
            sender,
            findings: SharedFindings::default(),
            is_temporary,
            lists: Mutex::default(),
            pages: watch::Sender::new(0),
            readers: Semaphore::new(MAX_READERS),
        }
    }

    pub(super) fn access(&self) -> &Arc<PageAccess> {
        &self.access
    }

    fn lock_lists(&self) -> MutexGuard<'_, OpenLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a page with an empty list, unless there are too many pages.
    pub(super) fn open(self: &Arc<Self>) -> Option<OpenPage> {
        let mut lists = self.lock_lists();
        if lists.by_number.len() >= MAX_PAGES {
            return None;
        }
        lists.last += 1;
        let number = lists.last;
        let list = SharedList::default();
        lists.by_number.insert(number, Arc::clone(&list));
        self.pages.send_replace(lists.by_number.len());
        Some(OpenPage {
            page: Arc::clone(self),
            number,
            list,
        })
    }

    /// Returns the list of an open page.
    pub(super) fn list(&self, number: u64) -> Option<SharedList> {
        self.lock_lists().by_number.get(&number).cloned()
    }

    /// Returns the number of open pages, and reports when it changes.
    pub(super) fn open_pages(&self) -> watch::Receiver<usize> {
        self.pages.subscribe()
    }

    pub(super) fn trace(&self) -> &Path {
        &self.trace
    }

    /// Reads the trace on another thread, and returns what was read as JSON.
    pub(super) async fn read<T: Serialize + Send + 'static>(
        &self,
        read: impl FnOnce(&Path) -> Result<T, String> + Send + 'static,
    ) -> Response {
        // The semaphore is never closed.
        let _permit = self.readers.acquire().await;
        let trace = self.trace.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let value = read(&trace)?;
            serde_json::to_string(&value).map_err(|e| e.to_string())
        });
        match reading.await.map_err(|e| e.to_string()).flatten() {
            Ok(json) => json_response(StatusCode::OK, json),
            Err(why) => (StatusCode::NOT_FOUND, why).into_response(),
        }
    }
}

/// Returns a response with JSON.
pub(super) fn json_response(status: StatusCode, json: String) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], json).into_response()
}
