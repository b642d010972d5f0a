//! What waits to be written to one side.
//!
//! Appending never waits, so that what one line brings about is written whole and in order on both
//! sides. Who reads the next line waits for room first: that is the bound, and the back-pressure.

use std::io;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncWriteExt;
use tokio::sync::Notify;

use crate::transport::TransportWriter;

#[derive(Debug, Default)]
pub(super) struct BridgeWriter {
    buffer: Mutex<WriteBuffer>,
    /// There is something to write, or nothing more will come.
    buffered: Notify,
    /// Something has been written.
    drained: Notify,
}

#[derive(Debug, Default)]
struct WriteBuffer {
    bytes: Vec<u8>,
    /// How much is being written just now.
    writing_len: usize,
    /// Nothing more will come.
    closed: bool,
}

impl BridgeWriter {
    fn lock(&self) -> std::sync::MutexGuard<'_, WriteBuffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends. After [`close`](Self::close), to no effect.
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

    /// Nothing more will come. What waits is still written.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.buffered.notify_one();
        self.drained.notify_waiters();
    }

    /// Waits until less than `limit` bytes wait.
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

    /// Writes what comes until it is closed, and then closes the writer.
    ///
    /// # Errors
    /// Writing fails; the outlet is closed then.
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
            // A large message is rare; its buffer is not kept.
            leaving.shrink_to(LARGE);
            self.lock().writing_len = 0;
            self.drained.notify_waiters();
        }
        // A peer that is gone has all it wants.
        let _ = writer.shutdown().await;
        Ok(())
    }
}

/// Buffers above this size are given back, in bytes.
const LARGE: usize = 256 * 1024;
