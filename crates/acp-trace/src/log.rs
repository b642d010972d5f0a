//! Implements the log, a bounded queue between the threads that relay messages and the thread that records them.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::format::TraceEvent;
use acp_rules::Side;

/// The capacity of the queue, in bytes. While the queue is full, threads that add entries wait.
const MAX_BUFFERED_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of queued entries.
const MAX_ENTRIES: usize = 64 * 1024;

/// The maximum age of queued entries, in microseconds. While the oldest entry is older than this, threads that add
/// entries wait. A client may kill the recorder as soon as it has received the last response, and anything not written
/// by then is missing from the trace.
const MAX_AGE_US: u64 = 10_000;

/// How long a push waits for a writer that has fallen behind. There is a limit because disk writes can hang.
const PUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// An entry in the log's queue: a number of bytes, or an event.
#[derive(Debug)]
pub(super) struct LogEntry {
    /// The time at which the entry was read, in microseconds since the start.
    pub(super) time_us: u64,
    pub(super) kind: LogEntryKind,
    /// The number of bytes in the batch that belong to this entry.
    pub(super) length: usize,
}

#[derive(Debug)]
pub(super) enum LogEntryKind {
    /// Bytes that this side sent. The batch contains them.
    Stream(Side),
    /// A line that the user sent by hand, in place of this side. The batch contains it.
    ByHand(Side),
    /// The start of a tap. All further bytes of this side's stream are read from it.
    Tap(Side, File),
    /// The number of bytes to read from the tap of this side's stream.
    TapBytes(Side, usize),
    /// A line of the agent's stderr.
    Stderr,
    Event(TraceEvent),
}

/// Several entries in order, with their bytes concatenated.
#[derive(Debug, Default)]
pub(super) struct LogBatch {
    pub(super) bytes: Vec<u8>,
    pub(super) entries: Vec<LogEntry>,
}

impl LogBatch {
    fn has_capacity(&self, length: usize) -> bool {
        let fits =
            self.bytes.len() + length <= MAX_BUFFERED_BYTES && self.entries.len() < MAX_ENTRIES;
        // An entry that exceeds the capacity is accepted when the buffer is empty.
        fits || self.entries.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }
}

#[derive(Debug, Default)]
struct LogState {
    pending: LogBatch,
    /// The time at which the oldest unwritten entry was read, in microseconds since the start.
    oldest: Option<u64>,
    /// Whether the writer is idle and must be woken.
    is_writer_idle: bool,
    /// Whether a thread is waiting for the writer.
    has_waiter: bool,
    /// Whether recording has ended, either because it is complete or because it failed.
    is_closed: bool,
}

impl LogState {
    /// Sets the time of the oldest unwritten entry, and wakes waiting threads.
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
    /// The number of lines recorded so far. A growing number shows progress.
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
    pub(super) fn set_line_count(&self, lines: u64) {
        self.line_count.store(lines, Ordering::Relaxed);
    }

    pub(super) fn line_count(&self) -> u64 {
        self.line_count.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        // No code leaves the state inconsistent while it holds the lock, so poisoning does not matter.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time since the start of the recording, in microseconds.
    fn elapsed_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Adds an entry to the queue. Waits while the queue is full, and waits for a limited time if the writer has fallen
    /// behind.
    pub(super) fn push(&self, what: LogEntryKind, bytes: &[u8]) {
        let is_behind = |state: &mut LogState| {
            let oldest = state.oldest.filter(|_| !state.is_closed);
            let is_behind =
                oldest.is_some_and(|at| self.elapsed_us().saturating_sub(at) > MAX_AGE_US);
            state.has_waiter |= is_behind;
            is_behind
        };
        let (mut state, _) = self
            .drained
            .wait_timeout_while(self.lock(), PUSH_TIMEOUT, is_behind)
            .unwrap_or_else(PoisonError::into_inner);
        while !state.is_closed && !state.pending.has_capacity(bytes.len()) {
            state.has_waiter = true;
            state = self
                .drained
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_closed {
            return;
        }
        // Read the clock under the lock, so that times never go back.
        let at = self.elapsed_us();
        state.oldest.get_or_insert(at);
        let length = bytes.len();
        state.pending.bytes.extend_from_slice(bytes);
        state.pending.entries.push(LogEntry {
            time_us: at,
            kind: what,
            length,
        });
        let wake = std::mem::take(&mut state.is_writer_idle);
        drop(state);
        if wake {
            self.buffered.notify_one();
        }
    }

    /// Records that everything read before a given time has been written. `before` is in microseconds since the start.
    pub(super) fn set_written(&self, before: u64) {
        self.lock().set_oldest(Some(before), &self.drained);
    }

    /// Waits for entries and moves them all into `batch`, reusing its memory. The previous contents of `batch` must
    /// have been written already. Returns `false` at the end.
    pub(super) fn take(&self, batch: &mut LogBatch) -> bool {
        batch.clear();
        let mut state = self.lock();
        let oldest = state.pending.entries.first().map(|piece| piece.time_us);
        state.set_oldest(oldest, &self.drained);
        while state.pending.entries.is_empty() {
            if state.is_closed {
                return false;
            }
            state.is_writer_idle = true;
            state = self
                .buffered
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.is_writer_idle = false;
        std::mem::swap(&mut state.pending, batch);
        // There is capacity again.
        let oldest = state.oldest;
        state.set_oldest(oldest, &self.drained);
        true
    }

    /// Closes the queue and drops everything in it.
    pub(super) fn abandon(&self) {
        self.close();
        self.lock().pending = LogBatch::default();
    }

    /// Closes the queue to new entries. Queued entries can still be taken.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.buffered.notify_all();
        self.drained.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn push_waits_for_a_slow_writer() {
        let log = RecordLog {
            start: Instant::now()
                .checked_sub(Duration::from_secs(1))
                .expect("the machine has been running for at least a second"),
            ..RecordLog::new()
        };
        log.lock().oldest = Some(0);
        std::thread::scope(|scope| {
            let pusher = scope.spawn(|| log.push(LogEntryKind::Stderr, b"more"));
            while !log.lock().has_waiter {
                assert!(!pusher.is_finished(), "push did not wait for the writer");
                std::thread::yield_now();
            }
            log.set_written(log.elapsed_us());
        });
        // Nothing was lost while waiting.
        let mut batch = LogBatch::default();
        assert!(log.take(&mut batch));
        assert_eq!(batch.bytes, b"more");
    }
}
