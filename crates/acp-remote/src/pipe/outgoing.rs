//! What the transport above has written, as one stream.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::transport::{DroppedHalves, MessageSink};
use super::{LineFilter, OutOfWindow, Retention, SentLog};

/// The bytes that the transport above has written, and that were not sent or not acknowledged yet.
#[derive(Debug)]
pub(crate) struct OutgoingPipe {
    state: Mutex<OutgoingState>,
    /// Notifies the link that there is something to send.
    work: Arc<Notify>,
    limit: usize,
    gone: Arc<DroppedHalves>,
    /// Whether shutting down waits for the end of the link, or only until everything was sent.
    waits_for_link: bool,
}

#[derive(Debug)]
struct OutgoingState {
    log: SentLog,
    /// How many bytes were written.
    written: u64,
    filter: LineFilter,
    /// Whether the writer was shut down or dropped.
    is_finished: bool,
    /// Whether nothing is sent any more.
    is_closed: bool,
    writer: Option<Waker>,
}

/// What a link knows after it has sent something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutgoingProgress {
    /// Whether everything that was written was sent.
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

    /// Changes the log, and wakes the writer if there is room now.
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

    /// Passes what waits to be sent to `encode`, in two pieces, and marks as many bytes as sent as it returns.
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

    /// Returns `true` if as much is buffered as may be, or nothing more will be written: a message whose end is not
    /// buffered must then be sent in pieces.
    pub(crate) fn is_full(&self) -> bool {
        let state = self.lock();
        state.is_finished || state.log.pending_len() >= self.limit
    }

    /// Returns how many bytes were written.
    pub(crate) fn written_position(&self) -> u64 {
        self.lock().written
    }

    /// Returns `true` if nothing waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().log.unsent_len() == 0
    }

    /// Drops what the peer has acknowledged. Returns `false` if it was not sent yet.
    pub(crate) fn acknowledge(&self, position: u64) -> bool {
        self.with_log(|log| log.acknowledge(position))
    }

    /// Continues from a position, for a peer that came back.
    pub(crate) fn rewind(&self, position: u64) -> Result<(), OutOfWindow> {
        let rewound = self.with_log(|log| log.rewind(position));
        self.work.notify_one();
        rewound
    }

    /// Stops sending: what is buffered is dropped, and writing fails from now on.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
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
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
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
        // Who sends takes all there is, and looks again before it waits. A message without its end waits for its end,
        // or until the buffer is full.
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
