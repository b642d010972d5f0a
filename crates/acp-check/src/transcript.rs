//! The transcript of a check, which is the evidence for its verdict.

use std::time::{Duration, Instant};

use acp_rules::schema::Direction;

/// The maximum length of a line, in bytes. Longer lines are truncated.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// The capacity of a transcript, in bytes. Lines beyond that are only counted.
const MAX_TRANSCRIPT_BYTES: usize = 1024 * 1024;

/// A line sent or received, or another event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TranscriptEntry {
    /// A line that was either sent or received.
    Line {
        /// The time since the start of the check.
        at: Duration,
        /// Whether the line was sent or received.
        direction: Direction,
        /// The line without its line end. A long line is truncated.
        text: String,
        /// The original length of the line, in bytes.
        length: usize,
    },
    /// Something else that happened, such as the end of the output.
    Event {
        /// The time since the start of the check.
        at: Duration,
        /// A description of what happened.
        description: String,
    },
}

/// The messages and events of a check, up to a limit.
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
    /// Returns the recorded messages and events, in order.
    #[must_use]
    pub fn entries(&self) -> &[TranscriptEntry] {
        &self.entries
    }

    /// Returns the number of lines that were omitted at the end.
    #[must_use]
    pub fn omitted_count(&self) -> usize {
        self.left_out
    }

    pub(super) fn push_line(&mut self, direction: Direction, line: &[u8]) {
        let kept = line.get(..MAX_LINE_BYTES).unwrap_or(line);
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

    pub(super) fn push_event(&mut self, what: impl Into<String>) {
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
        if self.bytes + bytes > MAX_TRANSCRIPT_BYTES {
            self.left_out += 1;
        } else {
            self.bytes += bytes;
            self.entries.push(entry);
        }
    }
}
