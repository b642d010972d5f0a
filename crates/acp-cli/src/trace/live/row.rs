//! A message in the table, and in full.

use std::path::Path;

use acp_html::text;
use acp_trace::{RecordBody, TraceEntry, TraceEntryKind, read_record_at};
use serde::Serialize;

use crate::trace::words::{format_duration, pretty_print, to_seconds};

/// The maximum length of a summary, and of a name, in characters.
const MAX_SUMMARY_CHARS: usize = 300;
const MAX_NAME_CHARS: usize = 80;

/// The maximum length of a message in full, in characters.
const MAX_MESSAGE_CHARS: usize = 1_000_000;

/// A row of the table. All texts are sanitized, and the script only ever shows them as text.
#[derive(Debug, Serialize)]
pub(super) struct TraceRow {
    /// The line number in the trace.
    pub(super) line: u64,
    /// The position of the record in the file.
    at: u64,
    time: String,
    /// The kind, in a word.
    kind: &'static str,
    /// `client` or `agent`.
    from: Option<&'static str>,
    name: String,
    id: Option<String>,
    session: Option<String>,
    /// How long the response took.
    took: Option<String>,
    summary: String,
    is_error: bool,
    is_by_hand: bool,
}

impl TraceRow {
    pub(super) fn new(entry: &TraceEntry, at: u64) -> Self {
        let name = |text: &str| clip(&text::sanitize_line(text), MAX_NAME_CHARS);
        Self {
            line: entry.line,
            at,
            time: format!("{:.3}", to_seconds(entry.time_us)),
            kind: kind_word(entry.kind),
            from: entry.from.map(acp_trace::Side::name),
            name: name(entry.name()),
            id: entry.id.as_ref().map(|id| name(&id.to_string())),
            session: entry.session.as_deref().map(name),
            took: entry.duration_us.map(format_duration),
            // Only the beginning is shown, so only the beginning is sanitized.
            summary: clip(
                &text::sanitize_line(&clip(&entry.summary, 2 * MAX_SUMMARY_CHARS)),
                MAX_SUMMARY_CHARS,
            ),
            is_error: entry.is_error,
            is_by_hand: entry.is_by_hand,
        }
    }
}

fn kind_word(kind: TraceEntryKind) -> &'static str {
    match kind {
        TraceEntryKind::Request => "request",
        TraceEntryKind::Notification => "notification",
        TraceEntryKind::Response => "response",
        TraceEntryKind::Error => "error",
        TraceEntryKind::Noise => "noise",
        TraceEntryKind::Stderr => "stderr",
        _ => "event",
    }
}

fn clip(text: &str, length: usize) -> String {
    text::truncate_text(text, length)
}

/// A message in full.
#[derive(Debug, Serialize)]
pub(super) struct FullMessage {
    text: String,
    /// Whether the text is JSON, and complete.
    is_json: bool,
    /// What else there is to say, such as how much is left out.
    notes: Vec<String>,
    /// The time since the start of the trace, in microseconds.
    #[serde(skip)]
    pub(super) time_us: u64,
}

impl FullMessage {
    /// Reads the message at this position of the trace.
    ///
    /// # Errors
    /// There is no record at this position, or the file could not be read. The error is a text for the user.
    pub(super) fn read(trace: &Path, at: u64) -> Result<Self, String> {
        let record = read_record_at(trace, at).map_err(|e| e.to_string())?;
        let mut notes = Vec::new();
        let (text, is_json) = match record.body {
            RecordBody::Message {
                length,
                redacted,
                message,
                is_by_hand,
                ..
            } => {
                notes.push(format!("{length} bytes"));
                if redacted > 0 {
                    notes.push(format!("{redacted} redacted"));
                }
                if is_by_hand {
                    notes.push("sent by hand".to_owned());
                }
                (pretty_print(message.get(), 0), true)
            }
            RecordBody::Noise { length, bytes, .. } => {
                notes.push(format!("{length} bytes"));
                (String::from_utf8_lossy(&bytes).into_owned(), false)
            }
            RecordBody::Oversized {
                length, beginning, ..
            } => {
                notes.push(format!(
                    "{length} bytes, too long to record: this is the beginning"
                ));
                (beginning, false)
            }
            RecordBody::Stderr(line) => (line, false),
            _ => return Err("there is no message here".to_owned()),
        };
        let total = text.chars().count();
        let left_out = total.saturating_sub(MAX_MESSAGE_CHARS);
        if left_out > 0 {
            notes.push(format!(
                "the last {left_out} of {total} characters are left out: see `acp trace show --raw`"
            ));
        }
        Ok(Self {
            time_us: record.time_us,
            text: clip(&text, MAX_MESSAGE_CHARS),
            is_json: is_json && left_out == 0,
            notes,
        })
    }
}
