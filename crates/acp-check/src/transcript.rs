//! What was said in a check, as the evidence for its verdict.

use std::time::{Duration, Instant};

use acp_rules::schema::Direction;

/// How much of one message is kept.
const LONGEST: usize = 64 * 1024;

/// How much of a check's messages is kept. What comes later is counted.
const MOST: usize = 1024 * 1024;

/// A line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TranscriptEntry {
    /// A line went over the wire.
    Line {
        /// When, from the beginning of the check on.
        at: Duration,
        /// Which way.
        direction: Direction,
        /// The line without its end, or the beginning of a long one.
        text: String,
        /// How long the line is, in bytes.
        length: usize,
    },
    /// Something else happened.
    Event {
        /// When, from the beginning of the check on.
        at: Duration,
        /// What, in words.
        description: String,
    },
}

/// What was said in a check, up to a limit.
#[derive(Debug, Clone)]
pub struct Transcript {
    began: Instant,
    entries: Vec<TranscriptEntry>,
    bytes: usize,
    left_out: usize,
}

impl Default for Transcript {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            entries: Vec::new(),
            bytes: 0,
            left_out: 0,
        }
    }
}

impl Transcript {
    /// What was said, in order.
    #[must_use]
    pub fn entries(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    /// How many lines came after there was no more room.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    pub(super) fn line(&mut self, direction: Direction, line: &[u8]) {
        let kept = line.get(..LONGEST).unwrap_or(line);
        let text = String::from_utf8_lossy(kept).into_owned();
        let at = self.began.elapsed();
        let length = line.len();
        self.push(
            text.len(),
            TranscriptEntry::Line {
                at,
                direction,
                text,
                length,
            },
        );
    }

    pub(super) fn event(&mut self, what: impl Into<String>) {
        let what = what.into();
        let at = self.began.elapsed();
        self.push(
            what.len(),
            TranscriptEntry::Event {
                at,
                description: what,
            },
        );
    }

    fn push(&mut self, bytes: usize, entry: TranscriptEntry) {
        if self.bytes + bytes > MOST {
            self.left_out += 1;
        } else {
            self.bytes += bytes;
            self.entries.push(entry);
        }
    }
}
