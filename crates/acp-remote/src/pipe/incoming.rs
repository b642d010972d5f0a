//! A buffer for bytes that have arrived but have not been read by the library yet.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::ReadBuf;
use tokio::sync::Notify;

use super::transport::DroppedHalves;

/// The maximum capacity that an empty buffer keeps, in bytes.
const MAX_IDLE_CAPACITY: usize = 64 * 1024;

/// A buffer for bytes that have arrived but have not been read by the library yet.
#[derive(Debug)]
pub(crate) struct IncomingPipe {
    state: Mutex<IncomingState>,
    /// Wakes the receiving task when there is space in the buffer.
    room: Notify,
    /// Wakes the link when there is something to acknowledge, or when the reader has been dropped.
    work: Arc<Notify>,
    limit: usize,
    gone: Arc<DroppedHalves>,
}

#[derive(Debug, Default)]
struct IncomingState {
    bytes: VecDeque<u8>,
    /// The position after the last byte that has arrived.
    received: u64,
    /// The most recently acknowledged position.
    acknowledged: u64,
    /// The reason why nothing more will arrive, or `None` while more may arrive.
    end: Option<IncomingEnd>,
    is_reader_gone: bool,
    reader: Option<Waker>,
}

/// The reason why nothing more will arrive.
#[derive(Debug)]
enum IncomingEnd {
    /// The peer has closed its side.
    Finished,
    /// The connection failed. The error is reported once.
    Failed(Option<io::Error>),
}

impl IncomingPipe {
    /// Creates an empty buffer for `limit` bytes. The last piece that is added may exceed the limit.
    pub(crate) fn new(limit: usize, work: Arc<Notify>, gone: Arc<DroppedHalves>) -> Self {
        Self {
            state: Mutex::default(),
            room: Notify::new(),
            work,
            limit,
            gone,
        }
    }

    fn lock(&self) -> MutexGuard<'_, IncomingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends bytes of a message, regardless of the limit. If `is_end` is `true`, also appends a line feed.
    pub(crate) fn push_message(&self, bytes: &[u8], is_end: bool) {
        let mut state = self.lock();
        state.received += bytes.len() as u64 + u64::from(is_end);
        if state.end.is_some() || state.is_reader_gone {
            return;
        }
        state.bytes.extend(bytes);
        if is_end {
            state.bytes.push_back(b'\n');
        }
        let waker = state.reader.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns `true` if the buffer has space for more.
    pub(crate) fn has_room(&self) -> bool {
        let state = self.lock();
        state.bytes.len() < self.limit
    }

    /// Waits until the buffer has space. Only one caller may wait at a time.
    pub(crate) async fn wait_for_room(&self) {
        while !self.has_room() {
            self.room.notified().await;
        }
    }

    /// Ends the stream. Bytes that have already arrived can still be read. Further calls have no effect.
    pub(crate) fn finish(&self, failure: Option<io::Error>) {
        let mut state = self.lock();
        if state.end.is_none() {
            state.end = Some(match failure {
                None => IncomingEnd::Finished,
                some => IncomingEnd::Failed(some),
            });
        }
        let waker = state.reader.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the position after the last byte that has arrived.
    pub(crate) fn received(&self) -> u64 {
        self.lock().received
    }

    /// Returns the position to acknowledge if at least `step` bytes have been read since the last acknowledgement.
    pub(crate) fn take_acknowledgement(&self, step: u64) -> Option<u64> {
        let mut state = self.lock();
        let read = state.received - state.bytes.len() as u64;
        let is_due = read > state.acknowledged && read - state.acknowledged >= step;
        is_due.then(|| {
            state.acknowledged = read;
            read
        })
    }

    pub(super) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        if state.bytes.is_empty() {
            match &mut state.end {
                Some(IncomingEnd::Failed(error)) => {
                    return Poll::Ready(error.take().map_or(Ok(()), Err));
                }
                Some(IncomingEnd::Finished) => return Poll::Ready(Ok(())),
                None => {}
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let before = state.bytes.len();
        let (first, second) = state.bytes.as_slices();
        let most = buf.remaining();
        let first = first.get(..most).unwrap_or(first);
        buf.put_slice(first);
        let most = buf.remaining();
        let second = second.get(..most).unwrap_or(second);
        buf.put_slice(second);
        let read = first.len() + second.len();
        state.bytes.drain(..read);
        if state.bytes.is_empty() && state.bytes.capacity() > MAX_IDLE_CAPACITY {
            state.bytes = VecDeque::new();
        }
        let has_room_now = before >= self.limit && state.bytes.len() < self.limit;
        let unacknowledged = state.received - state.bytes.len() as u64 - state.acknowledged;
        drop(state);
        if has_room_now {
            self.room.notify_one();
        }
        if unacknowledged >= self.acknowledgement_step() {
            self.work.notify_one();
        }
        Poll::Ready(Ok(()))
    }

    /// Returns how many bytes to read before acknowledging them.
    pub(crate) fn acknowledgement_step(&self) -> u64 {
        self.limit as u64 / 4
    }

    /// Drops all bytes, including those yet to arrive, because nothing will read them.
    pub(super) fn close_reader(&self) {
        let mut state = self.lock();
        state.is_reader_gone = true;
        state.bytes = VecDeque::new();
        state.reader = None;
        drop(state);
        self.gone.drop_reader();
        self.room.notify_one();
        self.work.notify_one();
    }
}
