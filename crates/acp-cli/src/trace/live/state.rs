//! What the handlers of the page share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::PageAccess;
use super::findings::SharedFindings;
use super::hand::HandSender;

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
    pages: Arc<Semaphore>,
    readers: Semaphore,
}

impl TracePage {
    pub(super) fn new(trace: PathBuf, access: PageAccess, sender: Option<Arc<HandSender>>) -> Self {
        Self {
            trace,
            access: Arc::new(access),
            sender,
            findings: SharedFindings::default(),
            pages: Arc::new(Semaphore::new(MAX_PAGES)),
            readers: Semaphore::new(MAX_READERS),
        }
    }

    pub(super) fn access(&self) -> &Arc<PageAccess> {
        &self.access
    }

    /// Returns a permit for an open page, unless there are too many.
    pub(super) fn open(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.pages).try_acquire_owned().ok()
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
