//! The output buffer for one side.
//!
//! Appending never waits, so the output for one line is written completely and in order on both sides. Before the
//! next line is read, the reader waits for capacity: that bounds the buffer and provides the backpressure.

use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use crate::transport::TransportWriter;

#[derive(Debug, Default)]
pub(super) struct BridgeWriter {
    buffer: Mutex<WriteBuffer>,
    /// Notified when bytes have been buffered or the writer has been closed.
    buffered: Notify,
    /// Notified when buffered bytes have been written.
    drained: Notify,
}

#[derive(Debug, Default)]
struct WriteBuffer {
    bytes: Vec<u8>,
    /// The number of bytes being written.
    writing_len: usize,
    /// Whether the writer is closed and accepts no more bytes.
    closed: bool,
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
        if !waiting.closed {
            waiting.bytes.extend_from_slice(bytes);
            drop(waiting);
            self.buffered.notify_one();
        }
    }

    /// Stops accepting bytes. Buffered bytes are still written.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.buffered.notify_one();
        self.drained.notify_waiters();
    }

    /// Waits until fewer than `limit` bytes are buffered.
    pub(super) async fn wait_for_room(&self, limit: usize) {
        loop {
            let mut drained = pin!(self.drained.notified());
            drained.as_mut().enable();
            {
                let waiting = self.lock();
                if waiting.closed || waiting.bytes.len() + waiting.writing_len < limit {
                    return;
                }
            }
            drained.await;
        }
    }

    /// Writes pushed bytes to `writer` until the buffer is closed, and then closes `writer`.
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
                if leaving.is_empty() && waiting.closed {
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
                    closed: true,
                    ..WriteBuffer::default()
                };
                drop(waiting);
                self.drained.notify_waiters();
                return Err(error);
            }
            leaving.clear();
            // Large messages are rare, so the buffer shrinks after one.
            leaving.shrink_to(LARGE);
            self.lock().writing_len = 0;
            self.drained.notify_waiters();
        }
        // A failure does not matter: a peer that has closed needs nothing more.
        let _ = writer.shutdown().await;
        Ok(())
    }
}

/// The size in bytes to which a larger buffer is shrunk after a write.
const LARGE: usize = 256 * 1024;
