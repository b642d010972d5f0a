//! What waits to be recorded: a bounded buffer between those who pass messages on and the one who writes them down.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::format::Event;
use acp_rules::Side;

/// How much may wait, in bytes. Beyond it, whoever has more waits until some of it is written.
const ROOM: usize = 4 * 1024 * 1024;

/// How many pieces may wait.
const PIECES: usize = 64 * 1024;

/// Something that waits.
#[derive(Debug)]
pub(super) struct Piece {
    /// When it was read, in microseconds since the start.
    pub(super) at: u64,
    pub(super) what: PieceOf,
    /// How many of the bytes are its own.
    pub(super) length: usize,
}

#[derive(Debug)]
pub(super) enum PieceOf {
    /// Of a stream, as it was read.
    Stream(Side),
    /// Where what a side says is from now on.
    Tap(Side, File),
    /// So many bytes of a stream, which are in its tap.
    Tapped(Side, usize),
    /// A line of standard error.
    Stderr,
    Event(Event),
}

/// Pieces in the order in which they came, and their bytes one after the other.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
}

impl Batch {
    fn has_room(&self, length: usize) -> bool {
        let fits = self.bytes.len() + length <= ROOM && self.pieces.len() < PIECES;
        // What is larger than all the room there is goes in alone.
        fits || self.pieces.is_empty()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: Batch,
    /// The writer has nothing to do, and is to be woken.
    idle: bool,
    /// Someone waits for room.
    full: bool,
    /// Nothing is recorded any more: all is, or it cannot be.
    closed: bool,
}

#[derive(Debug)]
pub(super) struct Log {
    start: Instant,
    state: Mutex<State>,
    filled: Condvar,
    emptied: Condvar,
    /// How many lines were recorded so far, for whoever waits for what is left.
    lines: AtomicU64,
}

impl Log {
    pub(super) fn new() -> Self {
        Self {
            start: Instant::now(),
            state: Mutex::default(),
            filled: Condvar::new(),
            emptied: Condvar::new(),
            lines: AtomicU64::new(0),
        }
    }

    /// So many lines were recorded so far.
    pub(super) fn set_lines(&self, lines: u64) {
        self.lines.store(lines, Ordering::Relaxed);
    }

    pub(super) fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has something recorded; waits for room.
    pub(super) fn push(&self, what: PieceOf, bytes: &[u8]) {
        let mut state = self.lock();
        while !state.closed && !state.waiting.has_room(bytes.len()) {
            state.full = true;
            state = self
                .emptied
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return;
        }
        // Under the lock, so that times never go back.
        let at = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let length = bytes.len();
        state.waiting.bytes.extend_from_slice(bytes);
        state.waiting.pieces.push(Piece { at, what, length });
        let wake = std::mem::take(&mut state.idle);
        drop(state);
        if wake {
            self.filled.notify_one();
        }
    }

    /// Waits for something, and puts it into `batch`, whose room is used again. `false` at the end.
    pub(super) fn take(&self, batch: &mut Batch) -> bool {
        batch.clear();
        let mut state = self.lock();
        while state.waiting.pieces.is_empty() {
            if state.closed {
                return false;
            }
            state.idle = true;
            state = self
                .filled
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.idle = false;
        std::mem::swap(&mut state.waiting, batch);
        let wake = std::mem::take(&mut state.full);
        drop(state);
        if wake {
            self.emptied.notify_all();
        }
        true
    }

    /// Nothing more is taken in, and what waits is dropped.
    pub(super) fn abandon(&self) {
        self.close();
        self.lock().waiting = Batch::default();
    }

    /// Nothing more is taken in; what waits can still be taken out.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }
}
