//! Buffers outgoing bytes until they have been sent and acknowledged.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::transport::{DroppedHalves, MessageSink};
use super::{LineFilter, OutOfWindow, Retention, SentLog};

/// A buffer of outgoing bytes that have yet to be sent or acknowledged.
#[derive(Debug)]
pub(crate) struct OutgoingPipe {
    state: Mutex<OutgoingState>,
    /// Wakes the link when there is something to send.
    work: Arc<Notify>,
    limit: usize,
    gone: Arc<DroppedHalves>,
    /// Whether shutdown waits for the link to end. Otherwise, it waits only until everything has been sent.
    waits_for_link: bool,
}

#[derive(Debug)]
struct OutgoingState {
    log: SentLog,
    /// The number of bytes that the library has written.
    written: u64,
    filter: LineFilter,
    /// Whether the writer has been shut down or dropped.
    is_finished: bool,
    /// Whether sending has stopped permanently.
    is_closed: bool,
    /// Why sending has stopped, if the connection failed and no write has returned it.
    failure: Option<io::Error>,
    writer: Option<Waker>,
}

/// The state of a stream after a link has sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutgoingProgress {
    /// Whether everything written so far has been sent.
    pub(crate) is_sent: bool,
    /// Whether nothing more will be written.
    pub(crate) is_finished: bool,
}

impl OutgoingPipe {
    /// Creates an empty stream that buffers up to `limit` bytes.
    pub(crate) fn new(
        limit: usize,
        drops_noise: bool,
        waits_for_link: bool,
        work: Arc<Notify>,
        gone: Arc<DroppedHalves>,
    ) -> Self {
        Self {
            state: Mutex::new(OutgoingState {
                log: SentLog::new(Retention::None),
                written: 0,
                filter: LineFilter::new(drops_noise),
                is_finished: false,
                is_closed: false,
                failure: None,
                writer: None,
            }),
            work,
            limit,
            gone,
            waits_for_link,
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutgoingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change to the log, then wakes the writer if it can continue.
    fn with_log<T>(&self, change: impl FnOnce(&mut SentLog) -> T) -> T {
        let mut state = self.lock();
        let changed = change(&mut state.log);
        let may_go_on = if state.is_finished {
            state.log.unsent_len() == 0
        } else {
            state.log.pending_len() < self.limit
        };
        let waker = if may_go_on { state.writer.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        changed
    }

    pub(crate) fn set_retention(&self, retention: Retention) {
        self.with_log(|log| log.set_retention(retention));
    }

    /// Passes the unsent bytes to `encode`, in two pieces. `encode` returns how many of them to mark as sent.
    pub(crate) fn send_with(&self, encode: impl FnOnce(&[u8], &[u8]) -> usize) -> OutgoingProgress {
        self.with_log(|log| {
            let (first, second) = log.unsent();
            if !first.is_empty() {
                let sent = encode(first, second);
                log.advance(sent);
            }
        });
        let state = self.lock();
        OutgoingProgress {
            is_sent: state.log.unsent_len() == 0,
            is_finished: state.is_finished,
        }
    }

    /// Returns `true` if the buffer is full or nothing more will be written. In both cases, a partly buffered message
    /// must be sent in pieces.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        state.is_finished || state.log.pending_len() >= self.limit
    }

    /// Returns the number of bytes that the library has written.
    pub(crate) fn written_position(&self) -> u64 {
        self.lock().written
    }

    /// Returns `true` if everything written so far has been sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().log.unsent_len() == 0
    }

    /// Drops bytes up to an acknowledged position. Returns `false` if the position has not been sent yet.
    pub(crate) fn acknowledge(&self, position: u64) -> bool {
        self.with_log(|log| log.acknowledge(position))
    }

    /// Rewinds to `position`, so that a peer that has reconnected gets everything after it.
    pub(crate) fn rewind(&self, position: u64) -> Result<(), OutOfWindow> {
        let rewound = self.with_log(|log| log.rewind(position));
        self.work.notify_one();
        rewound
    }

    /// Stops sending. Drops the buffered bytes, and makes all further writes fail.
    pub(crate) fn close(&self) {
        self.close_after(None);
    }

    /// Like [`close`](Self::close), after a failure. The next write returns the failure, because it may come before the
    /// failure is read.
    pub(crate) fn close_after(&self, failure: Option<io::Error>) {
        let mut state = self.lock();
        state.is_closed = true;
        state.failure = failure;
        state.log = SentLog::new(Retention::None);
        let waker = state.writer.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl MessageSink for OutgoingPipe {
    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        if state.is_closed || state.is_finished {
            let failure = state.failure.take();
            let failure = failure.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
            return Poll::Ready(Err(failure));
        }
        let room = self.limit.saturating_sub(state.log.pending_len());
        if room == 0 {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let taken = bytes.get(..room).unwrap_or(bytes);
        let had_nothing = state.log.unsent_len() == 0;
        let OutgoingState {
            log,
            filter,
            written,
            ..
        } = &mut *state;
        filter.filter(taken, |kept| {
            *written += kept.len() as u64;
            log.push(kept);
        });
        let is_new = had_nothing && state.log.unsent_len() > 0;
        let is_full = state.log.pending_len() >= self.limit;
        drop(state);
        // The sender takes everything, and looks again before it waits. A message without its end waits for its end, or
        // until the buffer is full.
        if is_new || is_full || taken.contains(&b'\n') {
            self.work.notify_one();
        }
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        state.is_finished = true;
        let is_done = state.is_closed || !self.waits_for_link && state.log.unsent_len() == 0;
        if !is_done {
            state.writer = Some(cx.waker().clone());
        }
        drop(state);
        self.work.notify_one();
        if is_done {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn close_writer(&self) {
        self.lock().is_finished = true;
        self.gone.drop_writer();
        self.work.notify_one();
    }
}
