//! A bridge's output to one side: a buffer, and the loop that writes it to the transport.
//!
//! Appending never waits, so the output for one line is written completely and in order on both sides. Before the next
//! line is read, the reader waits for capacity. This limits the buffer and provides back-pressure.

use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use crate::transport::TransportWriter;

#[derive(Debug, Default)]
pub(super) struct BridgeWriter {
    buffer: Mutex<WriteBuffer>,
    /// Wakes the write loop when bytes have been buffered or the writer has been closed.
    buffered: Notify,
    /// Wakes waiting read loops when buffered bytes have been written.
    drained: Notify,
}

#[derive(Debug, Default)]
struct WriteBuffer {
    bytes: Vec<u8>,
    /// The number of bytes being written.
    writing_len: usize,
    /// Whether the writer has stopped accepting bytes.
    is_closed: bool,
}

impl BridgeWriter {
    fn lock(&self) -> std::sync::MutexGuard<'_, WriteBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends bytes. Does nothing after [`close`](Self::close).
    pub(super) fn push(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut waiting = self.lock();
        if !waiting.is_closed {
            waiting.bytes.extend_from_slice(bytes);
            drop(waiting);
            self.buffered.notify_one();
        }
    }

    /// Stops accepting bytes. Buffered bytes are still written.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.buffered.notify_one();
        self.drained.notify_waiters();
    }

    /// Waits until fewer than `limit` bytes are buffered.
    pub(super) async fn wait_for_capacity(&self, limit: usize) {
        loop {
            let mut drained = pin!(self.drained.notified());
            drained.as_mut().enable();
            {
                let waiting = self.lock();
                if waiting.is_closed || waiting.bytes.len() + waiting.writing_len < limit {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Writes buffered bytes to `writer` until [`close`](Self::close) is called, and then closes `writer`.
    ///
    /// # Errors
    /// Writing failed. The buffer is then closed.
    pub(super) async fn drain(&self, mut writer: TransportWriter) -> io::Result<()> {
        let mut leaving = Vec::new();
        loop {
            let filled = self.buffered.notified();
            {
                let mut waiting = self.lock();
                std::mem::swap(&mut waiting.bytes, &mut leaving);
                waiting.writing_len = leaving.len();
                if leaving.is_empty() && waiting.is_closed {
                    break;
                }
            }
            if leaving.is_empty() {
                filled.await;
                continue;
            }
            let written = async {
                writer.write_all(&leaving).await?;
                writer.flush().await
            };
            if let Err(error) = written.await {
                let mut waiting = self.lock();
                *waiting = WriteBuffer {
                    is_closed: true,
                    ..WriteBuffer::default()
                };
                drop(waiting);
                self.drained.notify_waiters();
                return Err(error);
            }
            leaving.clear();
            // Large messages are rare, so the buffer shrinks after one.
            leaving.shrink_to(MAX_IDLE_CAPACITY);
            self.lock().writing_len = 0;
            self.drained.notify_waiters();
        }
        // A failure does not matter, because a peer that has closed its side needs nothing more.
        let _ = writer.shutdown().await;
        Ok(())
    }
}

/// The capacity, in bytes, to which a larger buffer shrinks after a write.
const MAX_IDLE_CAPACITY: usize = 256 * 1024;
