//! Tells the server how much of each stream was received, so that it may send more, and forget what it sent.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use http::Method;
use tokio::sync::Notify;

use super::HttpClient;
use crate::header;

/// What is to be acknowledged.
#[derive(Debug, Default)]
pub(super) struct Acknowledgements {
    due: Mutex<HashMap<String, u64>>,
    changed: Notify,
}

impl Acknowledgements {
    /// Notes how much of a stream was received. It is told to the server soon.
    pub(super) fn add(&self, name: &str, position: u64) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        due.insert(name.to_owned(), position);
        drop(due);
        self.changed.notify_one();
    }

    fn take(&self) -> HashMap<String, u64> {
        std::mem::take(&mut *self.due.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpClient {
    /// Acknowledges what is due. Never returns.
    pub(super) async fn acknowledge_all(&self) {
        loop {
            self.acknowledgements.changed.notified().await;
            for (name, position) in self.acknowledgements.take() {
                self.acknowledge(&name, position).await;
            }
        }
    }

    /// Tells the server how much of a stream was received. If that fails, the next one will tell.
    pub(super) async fn acknowledge(&self, name: &str, position: u64) {
        if let Some(mut headers) = self.headers(Some(name)) {
            headers.insert(header::LAST_EVENT_ID, position.into());
            if let Err(failed) = self
                .exchange
                .send(Method::POST, headers, Bytes::new())
                .await
            {
                tracing::debug!(error = %failed.error, "an acknowledgement was not sent");
            }
        }
    }
}
