//! Builds the records of a trace in memory.

use super::format::{self, MAX_MESSAGE_BYTES, TraceEvent};
use super::inspect::LineResult;
use super::recording::RecordingSummary;
use super::redact::Redactor;
use acp_rules::Side;

/// The maximum length of a non-JSON line to record in full, in bytes. Longer lines, and messages that are too long, are
/// truncated to this length.
pub(super) const MAX_NOISE_BYTES: usize = 64 * 1024;

/// The origin of a line: when it was read, and from which side.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineSource {
    /// The time at which the line was read, in microseconds since the start.
    pub(super) time_us: u64,
    pub(super) side: Side,
    /// Whether the stream ended without a line end.
    pub(super) is_unterminated: bool,
    /// Whether the user sent the line by hand, in place of the side.
    pub(super) is_by_hand: bool,
}

/// A writer that turns lines and events into records in a buffer.
pub(super) struct RecordWriter {
    redactor: Option<Redactor>,
    /// The records that have not been written yet.
    pub(super) out: Vec<u8>,
    pub(super) summary: RecordingSummary,
    /// The number of lines recorded, from both sides.
    pub(super) line_count: u64,
}

impl RecordWriter {
    /// Creates a writer whose buffer has this capacity, in bytes.
    pub(super) fn new(redactor: Option<Redactor>, room: usize) -> Self {
        Self {
            redactor,
            out: Vec::with_capacity(room),
            summary: RecordingSummary::default(),
            line_count: 0,
        }
    }

    /// Returns the redactor, or `None` if secrets are recorded as they were sent.
    pub(super) fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    fn begin_record(&mut self, from: LineSource, length: usize) {
        format::push_start(&mut self.out, from.time_us, from.side, length);
        if from.is_unterminated {
            self.out.extend_from_slice(b",\"open\":true");
        }
        if from.is_by_hand {
            self.out.extend_from_slice(b",\"hand\":true");
        }
    }

    /// Completes a record by adding a text field.
    fn end_with_text(&mut self, name: &[u8], text: &str) {
        self.out.extend_from_slice(name);
        format::push_string(&mut self.out, text);
        self.out.extend_from_slice(b"}\n");
    }

    /// Adds a record for a line that one side sent.
    pub(super) fn add_line(&mut self, from: LineSource, line: &[u8], look: LineResult) {
        self.line_count += 1;
        if look.is_json && !look.is_suspicious {
            self.begin_record(from, line.len());
            self.end_with_message(line);
            return;
        }
        match std::str::from_utf8(line) {
            Ok(text) if look.is_json => self.add_redacted(from, text),
            Ok(text) => self.add_noise(from, text, look.is_suspicious),
            Err(_) => self.add_binary(from, line, look.is_suspicious),
        }
    }

    /// Completes a record by adding a message field.
    fn end_with_message(&mut self, message: &[u8]) {
        self.out.extend_from_slice(b",\"msg\":");
        self.out.extend_from_slice(message);
        self.out.extend_from_slice(b"}\n");
        self.summary.messages += 1;
    }

    /// Adds a message that may contain secrets, after redacting it.
    fn add_redacted(&mut self, from: LineSource, text: &str) {
        let redacted = self.redactor.as_ref().and_then(|r| r.redact_message(text));
        let shown = redacted.as_ref().map_or(text, |(text, _)| text);
        if shown.len() > MAX_MESSAGE_BYTES {
            // The redacted message is longer than the original, and now too long.
            self.add_oversized(from, shown.as_bytes(), text.len());
            return;
        }
        self.begin_record(from, text.len());
        if let Some((_, count)) = redacted {
            self.out.extend_from_slice(b",\"redacted\":");
            format::push_number(&mut self.out, count);
            self.summary.redacted += count;
        }
        self.end_with_message(shown.as_bytes());
    }

    /// Adds a line that is not JSON.
    fn add_noise(&mut self, from: LineSource, text: &str, suspicious: bool) {
        if text.len() > MAX_NOISE_BYTES {
            self.add_oversized(from, text.as_bytes(), text.len());
            return;
        }
        let redacted = match &self.redactor {
            Some(redactor) if suspicious => redactor.redact_text(text),
            _ => None,
        };
        self.begin_record(from, text.len());
        self.end_with_text(b",\"noise\":", redacted.as_deref().unwrap_or(text));
    }

    /// Adds a line that is not UTF-8. If it may contain a secret, only its redacted text is recorded.
    fn add_binary(&mut self, from: LineSource, line: &[u8], suspicious: bool) {
        if line.len() > MAX_NOISE_BYTES {
            self.add_oversized(from, line, line.len());
            return;
        }
        let lossy = match &self.redactor {
            Some(redactor) if suspicious => redactor.redact_text(&String::from_utf8_lossy(line)),
            _ => None,
        };
        self.begin_record(from, line.len());
        match lossy {
            Some(text) => self.end_with_text(b",\"noise\":", &text),
            None => {
                self.out.extend_from_slice(b",\"noise64\":");
                format::push_base64(&mut self.out, line);
                self.out.extend_from_slice(b"}\n");
            }
        }
    }

    /// Adds a record for a line that is too long, with its beginning and its length.
    pub(super) fn add_oversized(&mut self, from: LineSource, line: &[u8], length: usize) {
        let beginning = line.get(..MAX_NOISE_BYTES).unwrap_or(line);
        let text = String::from_utf8_lossy(beginning);
        let redacted = self.redactor.as_ref().and_then(|r| r.redact_text(&text));
        self.begin_record(from, length);
        self.end_with_text(b",\"cut\":", redacted.as_deref().unwrap_or(&text));
    }

    /// Adds a record for a line of stderr.
    pub(super) fn add_stderr(&mut self, at: u64, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let redacted = self.redactor.as_mut().and_then(|r| r.redact_stderr(&text));
        self.out.extend_from_slice(b"{\"t\":");
        format::push_number(&mut self.out, at);
        self.end_with_text(b",\"stderr\":", redacted.as_deref().unwrap_or(&text));
    }

    /// Adds a record for an event, such as the agent's exit or a closed stream.
    pub(super) fn add_event(&mut self, at: u64, event: &TraceEvent) {
        format::push_event(&mut self.out, at, event);
    }
}
