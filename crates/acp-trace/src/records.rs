//! Records as they are written: lines of a trace, put together in memory.

use super::format::{self, Event, LONGEST_MESSAGE};
use super::lines::Look;
use super::recording::Recording;
use super::redact::Redactor;
use acp_rules::Side;

/// The longest line that is recorded whole though it is no JSON, in bytes; and how much is of a longer one, and of a
/// message that is too long.
pub(super) const LONGEST_NOISE: usize = 64 * 1024;

/// Where a line comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// When it was read, in microseconds since the start.
    pub(super) at: u64,
    pub(super) side: Side,
    /// The stream has ended before it did.
    pub(super) open: bool,
}

/// What makes records of lines.
pub(super) struct Records {
    redactor: Option<Redactor>,
    /// What is not written yet.
    pub(super) out: Vec<u8>,
    pub(super) recorded: Recording,
    /// How many lines of the streams were recorded.
    pub(super) lines: u64,
}

impl Records {
    /// With room for so many bytes.
    pub(super) fn new(redactor: Option<Redactor>, room: usize) -> Self {
        Self {
            redactor,
            out: Vec::with_capacity(room),
            recorded: Recording::default(),
            lines: 0,
        }
    }

    /// What secrets are found with, if they are looked for.
    pub(super) fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    fn begin(&mut self, from: Line, length: usize) {
        format::begin(&mut self.out, from.at, from.side, length);
        if from.open {
            self.out.extend_from_slice(b",\"open\":true");
        }
    }

    /// Ends a record with a text.
    fn end(&mut self, name: &[u8], text: &str) {
        self.out.extend_from_slice(name);
        format::text(&mut self.out, text);
        self.out.extend_from_slice(b"}\n");
    }

    /// A line of one of the streams.
    pub(super) fn line(&mut self, from: Line, line: &[u8], look: Look) {
        self.lines += 1;
        if look.json && !look.suspicious {
            self.begin(from, line.len());
            self.message(line);
            return;
        }
        match std::str::from_utf8(line) {
            Ok(text) if look.json => self.redacted(from, text),
            Ok(text) => self.noise(from, text, look.suspicious),
            Err(_) => self.no_text(from, line, look.suspicious),
        }
    }

    /// Ends a record with a message.
    fn message(&mut self, message: &[u8]) {
        self.out.extend_from_slice(b",\"msg\":");
        self.out.extend_from_slice(message);
        self.out.extend_from_slice(b"}\n");
        self.recorded.messages += 1;
    }

    /// A message that may have secrets in it.
    fn redacted(&mut self, from: Line, text: &str) {
        let redacted = self.redactor.as_ref().and_then(|r| r.message(text));
        let shown = redacted.as_ref().map_or(text, |(text, _)| text);
        if shown.len() > LONGEST_MESSAGE {
            // It has become longer.
            self.cut(from, shown.as_bytes(), text.len());
            return;
        }
        self.begin(from, text.len());
        if let Some((_, count)) = redacted {
            self.out.extend_from_slice(b",\"redacted\":");
            format::number(&mut self.out, count);
            self.recorded.redacted += count;
        }
        self.message(shown.as_bytes());
    }

    /// What is no JSON.
    fn noise(&mut self, from: Line, text: &str, suspicious: bool) {
        if text.len() > LONGEST_NOISE {
            self.cut(from, text.as_bytes(), text.len());
            return;
        }
        let redacted = match &self.redactor {
            Some(redactor) if suspicious => redactor.text(text),
            _ => None,
        };
        self.begin(from, text.len());
        self.end(b",\"noise\":", redacted.as_deref().unwrap_or(text));
    }

    /// What is not even text. Where a secret may be in it, what is text of it is recorded, without the secret.
    fn no_text(&mut self, from: Line, line: &[u8], suspicious: bool) {
        if line.len() > LONGEST_NOISE {
            self.cut(from, line, line.len());
            return;
        }
        let lossy = match &self.redactor {
            Some(redactor) if suspicious => redactor.text(&String::from_utf8_lossy(line)),
            _ => None,
        };
        self.begin(from, line.len());
        match lossy {
            Some(text) => self.end(b",\"noise\":", &text),
            None => {
                self.out.extend_from_slice(b",\"noise64\":");
                format::base64(&mut self.out, line);
                self.out.extend_from_slice(b"}\n");
            }
        }
    }

    /// The beginning of what is too long, which has this length.
    pub(super) fn cut(&mut self, from: Line, line: &[u8], length: usize) {
        let beginning = line.get(..LONGEST_NOISE).unwrap_or(line);
        let text = String::from_utf8_lossy(beginning);
        let redacted = self.redactor.as_ref().and_then(|r| r.text(&text));
        self.begin(from, length);
        self.end(b",\"cut\":", redacted.as_deref().unwrap_or(&text));
    }

    /// A line of standard error.
    pub(super) fn stderr(&mut self, at: u64, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let redacted = self.redactor.as_mut().and_then(|r| r.stderr(&text));
        self.out.extend_from_slice(b"{\"t\":");
        format::number(&mut self.out, at);
        self.end(b",\"stderr\":", redacted.as_deref().unwrap_or(&text));
    }

    /// Something that happened.
    pub(super) fn event(&mut self, at: u64, event: &Event) {
        format::event(&mut self.out, at, event);
    }
}
