//! The log: a bounded buffer between the threads that pass messages on and the thread that records them.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::format::TraceEvent;
use acp_rules::Side;

/// The capacity of the buffer, in bytes. Threads that push more wait until some of it is written.
const ROOM: usize = 4 * 1024 * 1024;

/// The limit of buffered pieces.
const PIECES: usize = 64 * 1024;

/// The maximum age of buffered pieces, in microseconds. Beyond it, threads that push more wait too. A client may kill
/// the recorder as soon as it has its last response; what is not written by then is missing from the trace.
const OLDEST: u64 = 10_000;

/// How long pushing one piece waits for a writer that has fallen behind. It is bounded because a disk may hang.
const PATIENCE: Duration = Duration::from_millis(100);

/// A buffered piece.
#[derive(Debug)]
pub(super) struct LogPiece {
    /// When it was read, in microseconds since the start.
    pub(super) time_us: u64,
    pub(super) kind: LogPieceKind,
    /// How many of the batch's bytes belong to this piece.
    pub(super) length: usize,
}

#[derive(Debug)]
pub(super) enum LogPieceKind {
    /// Bytes of a stream.
    Stream(Side),
    /// The tap in which all further bytes of a stream are.
    Tap(Side, File),
    /// A number of bytes of a stream, which are in its tap.
    TapBytes(Side, usize),
    /// A line of the agent's standard error.
    Stderr,
    Event(TraceEvent),
}

/// Pieces in order, and their bytes one after the other.
#[derive(Debug, Default)]
pub(super) struct LogBatch {
    pub(super) bytes: Vec<u8>,
    pub(super) pieces: Vec<LogPiece>,
}

impl LogBatch {
    fn has_room(&self, length: usize) -> bool {
        let fits = self.bytes.len() + length <= ROOM && self.pieces.len() < PIECES;
        // A piece that exceeds the capacity is accepted when the buffer is empty.
        fits || self.pieces.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }
}

#[derive(Debug, Default)]
struct LogState {
    pending: LogBatch,
    /// When the oldest unwritten piece was read, in microseconds since the start.
    oldest: Option<u64>,
    /// The writer is idle and must be woken.
    idle: bool,
    /// A thread waits for the writer.
    has_waiter: bool,
    /// Recording has ended, because everything is recorded or because it failed.
    closed: bool,
}

impl LogState {
    /// Sets the time of the oldest unwritten piece, and wakes the threads that wait for it.
    fn set_oldest(&mut self, oldest: Option<u64>, emptied: &Condvar) {
        self.oldest = oldest;
        if std::mem::take(&mut self.has_waiter) {
            emptied.notify_all();
        }
    }
}

#[derive(Debug)]
pub(super) struct RecordLog {
    start: Instant,
    state: Mutex<LogState>,
    buffered: Condvar,
    drained: Condvar,
    /// The number of lines recorded so far. It shows progress to those who wait for the rest.
    line_count: AtomicU64,
}

impl RecordLog {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            state: Mutex::default(),
            buffered: Condvar::new(),
            drained: Condvar::new(),
            line_count: AtomicU64::new(0),
        }
    }

    /// Sets the number of lines recorded so far.
    pub(super) fn set_lines(&self, lines: u64) {
        self.line_count.store(lines, Ordering::Relaxed);
    }

    pub(super) fn lines(&self) -> u64 {
        self.line_count.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        // No code leaves the state inconsistent while it holds the lock, so poisoning does not matter.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the microseconds since the start.
    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Adds a piece. Waits for capacity, and for a writer that has fallen behind.
    pub(super) fn push(&self, what: LogPieceKind, bytes: &[u8]) {
        let is_behind = |state: &mut LogState| {
            let oldest = state.oldest.filter(|_| !state.closed);
            let is_behind = oldest.is_some_and(|at| self.elapsed_us().saturating_sub(at) > OLDEST);
            state.has_waiter |= is_behind;
            is_behind
        };
        let (mut state, _) = self
            .drained
            .wait_timeout_while(self.lock(), PATIENCE, is_behind)
            .unwrap_or_else(PoisonError::into_inner);
        while !state.closed && !state.pending.has_room(bytes.len()) {
            state.has_waiter = true;
            state = self
                .drained
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return;
        }
        // Read the clock under the lock, so that times never go back.
        let at = self.elapsed_us();
        state.oldest.get_or_insert(at);
        let length = bytes.len();
        state.pending.bytes.extend_from_slice(bytes);
        state.pending.pieces.push(LogPiece {
            time_us: at,
            kind: what,
            length,
        });
        let wake = std::mem::take(&mut state.idle);
        drop(state);
        if wake {
            self.buffered.notify_one();
        }
    }

    /// Records that everything read before this time is written. The time is in microseconds since the start.
    pub(super) fn set_written(&self, before: u64) {
        self.lock().set_oldest(Some(before), &self.drained);
    }

    /// Waits for pieces and moves them into `batch`, whose allocation is reused. Its previous content must be
    /// written. Returns `false` at the end.
    pub(super) fn take(&self, batch: &mut LogBatch) -> bool {
        batch.clear();
        let mut state = self.lock();
        let oldest = state.pending.pieces.first().map(|piece| piece.time_us);
        state.set_oldest(oldest, &self.drained);
        while state.pending.pieces.is_empty() {
            if state.closed {
                return false;
            }
            state.idle = true;
            state = self
                .buffered
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.idle = false;
        std::mem::swap(&mut state.pending, batch);
        // There is capacity again.
        let oldest = state.oldest;
        state.set_oldest(oldest, &self.drained);
        true
    }

    /// Accepts nothing more, and drops what is buffered.
    pub(super) fn abandon(&self) {
        self.close();
        self.lock().pending = LogBatch::default();
    }

    /// Accepts nothing more. What is buffered can still be taken.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.buffered.notify_all();
        self.drained.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_more_waits_for_a_writer_that_has_fallen_behind() {
        let log = RecordLog {
            start: Instant::now()
                .checked_sub(Duration::from_secs(1))
                .expect("the machine has run for a second"),
            ..RecordLog::new()
        };
        log.lock().oldest = Some(0);
        std::thread::scope(|scope| {
            let pusher = scope.spawn(|| log.push(LogPieceKind::Stderr, b"more"));
            while !log.lock().has_waiter {
                assert!(!pusher.is_finished(), "it did not wait");
                std::thread::yield_now();
            }
            log.set_written(log.elapsed_us());
        });
        // Waiting lost nothing.
        let mut batch = LogBatch::default();
        assert!(log.take(&mut batch));
        assert_eq!(batch.bytes, b"more");
    }
}
