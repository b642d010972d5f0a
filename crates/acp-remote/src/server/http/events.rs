//! Defines the response body of a stream. It sends the stream's events, or comments while there are none.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Sleep, sleep};

use super::HttpConnection;
use super::streams::StreamBatch;
use crate::sse;

/// A response body that sends the events of one stream.
pub(crate) struct EventStream {
    connection: Arc<HttpConnection>,
    name: String,
    generation: u64,
    heartbeat: Duration,
    silence: Pin<Box<Sleep>>,
    /// Whether everything has been sent.
    is_over: bool,
    /// Whether the first comment has yet to be sent. The comment shows clients behind buffering proxies that the stream
    /// is open.
    is_new: bool,
}

impl EventStream {
    pub(super) fn new(
        connection: Arc<HttpConnection>,
        name: String,
        generation: u64,
        heartbeat: Duration,
    ) -> Self {
        Self {
            connection,
            name,
            generation,
            heartbeat,
            silence: Box::pin(sleep(heartbeat)),
            is_over: false,
            is_new: true,
        }
    }

    /// Returns the next bytes, or `None` at the end.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if std::mem::take(&mut self.is_new) {
            return Poll::Ready(Some(Bytes::from_static(b": open\n\n")));
        }
        if self.is_over {
            return Poll::Ready(None);
        }
        let streams = &self.connection.streams;
        match streams.poll_batch(&self.name, self.generation, cx) {
            Poll::Ready(StreamBatch::Bytes(bytes)) => {
                let next = tokio::time::Instant::now() + self.heartbeat;
                self.silence.as_mut().reset(next);
                Poll::Ready(Some(bytes.into()))
            }
            Poll::Ready(StreamBatch::End) => Poll::Ready(None),
            Poll::Ready(StreamBatch::Closed(status)) => {
                self.is_over = true;
                Poll::Ready(Some(sse::encode_close(&status).into()))
            }
            Poll::Pending => {
                if self.silence.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                self.silence.set(sleep(self.heartbeat));
                // A comment within an event would break the event's line.
                if !streams.is_between_events(&self.name) {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(Some(Bytes::from_static(sse::HEARTBEAT_COMMENT)))
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.connection.streams.abandon(&self.name, self.generation);
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}
