//! Acknowledges the data that has arrived on each stream, so that the server can discard its copy and send more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::sync::Notify;

use super::HttpClient;
use crate::header;

/// How long to wait before retrying a failed acknowledgement.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The position of each stream that has yet to be acknowledged.
#[derive(Debug, Default)]
pub(super) struct Acknowledgements {
    due: Mutex<HashMap<String, u64>>,
    changed: Notify,
}

impl Acknowledgements {
    /// Records how much of a stream has arrived, so that it is acknowledged soon.
    pub(super) fn add(&self, name: &str, position: u64) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.insert(name.to_owned(), position);
        drop(due);
        self.changed.notify_one();
    }

    /// Records a position whose acknowledgement failed, unless a newer one has been recorded.
    fn add_again(&self, name: String, position: u64) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.entry(name).or_insert(position);
        drop(due);
        self.changed.notify_one();
    }

    fn take(&self) -> HashMap<String, u64> {
        std::mem::take(&mut *self.due.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpClient {
    /// Sends acknowledgements as they become due. Never returns.
    pub(super) async fn acknowledge_all(&self) {
        loop {
            self.acknowledgements.changed.notified().await;
            let mut has_failed = false;
            for (name, position) in self.acknowledgements.take() {
                if !self.acknowledge(&name, position).await {
                    // The server may be waiting for this acknowledgement.
                    self.acknowledgements.add_again(name, position);
                    has_failed = true;
                }
            }
            if has_failed {
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }

    /// Acknowledges a position in a stream. Returns `false` if the server could not be reached.
    pub(super) async fn acknowledge(&self, name: &str, position: u64) -> bool {
        let Some(mut headers) = self.headers(Some(name)) else {
            return true;
        };
        headers.insert(header::LAST_EVENT_ID, position.into());
        match self
            .exchange
            .send(Method::POST, headers, Bytes::new())
            .await
        {
            // A server that rejects an acknowledgement has ended the connection. The streams will notice that.
            Ok(_) => true,
            Err(failed) => {
                tracing::debug!(error = %failed.error, "cannot send an acknowledgement");
                false
            }
        }
    }
}
