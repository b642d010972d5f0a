//! Converts trace records to readable entries. An entry shows the kind of message, the request that a response belongs
//! to, and a summary.

mod summary;

use std::collections::HashMap;

use acp_wire::jsonrpc::{self, Incoming, RequestId};
use serde_json::Value;
use serde_json::value::RawValue;

use super::format::{RecordBody, TraceEvent, TraceRecord};
use acp_rules::Side;
use summary::EntrySummary;

/// The maximum number of pending requests to remember. Responses to further requests are shown without their method.
const MAX_PENDING_REQUESTS: usize = 64 * 1024;

/// The maximum length of an entry's summary, in bytes.
const MAX_SUMMARY_BYTES: usize = 16 * 1024;

/// The kind of message or other line in a trace entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceEntryKind {
    /// A message with a method and an id.
    Request,
    /// A message with a method and no id.
    Notification,
    /// A response with a result.
    Response,
    /// A response with an error.
    Error,
    /// A line of output that is not a message.
    Noise,
    /// A line that the agent printed to stderr.
    Stderr,
    /// An event, such as the agent's exit or a closed stream.
    Event,
}

/// One record of a trace in readable form, or several merged chunks of the same text.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TraceEntry {
    /// The time in microseconds since the start of the trace. For merged chunks, the time of the first chunk.
    pub time_us: u64,
    /// The line number in the trace file. For merged chunks, the line of the first chunk.
    pub line: u64,
    /// The side that sent the message or line. `None` for events.
    pub from: Option<Side>,
    /// The kind of message or line in the entry.
    pub kind: TraceEntryKind,
    /// The method of the message. For a response, the method of its request. Empty if unknown.
    pub method: String,
    /// The type of update, if the message is a `session/update`.
    pub update: Option<String>,
    /// The id of the request. For a response, the id of the request that it answers.
    pub id: Option<RequestId>,
    /// The id of the session that the message belongs to.
    pub session: Option<String>,
    /// The time between the request and this response, in microseconds.
    pub duration_us: Option<u64>,
    /// A summary of the content. It may have several lines and, because it is not sanitized, may contain terminal
    /// control sequences.
    pub summary: String,
    /// Whether the user sent the message by hand, or it responds to such a request.
    pub is_by_hand: bool,
    /// Whether the entry is or contains an error.
    pub is_error: bool,
    /// The number of records merged into the entry.
    pub records: u64,
    /// The message as recorded. For merged chunks, the first message.
    pub message: Option<Box<RawValue>>,
    /// Identifies the text that a chunk belongs to. Consecutive entries with the same key are merged.
    merge_key: Option<String>,
}

impl TraceEntry {
    fn new(record: &TraceRecord, kind: TraceEntryKind) -> Self {
        Self {
            time_us: record.time_us,
            line: record.line,
            from: None,
            kind,
            method: String::new(),
            update: None,
            id: None,
            session: None,
            duration_us: None,
            summary: String::new(),
            is_by_hand: false,
            is_error: false,
            records: 1,
            message: None,
            merge_key: None,
        }
    }

    /// Returns the name to display: the type of update, the method, or the kind of entry.
    #[must_use]
    pub fn name(&self) -> &str {
        match (self.kind, &self.update) {
            (_, Some(update)) => update,
            (TraceEntryKind::Stderr, _) => "stderr",
            (TraceEntryKind::Noise, _) => "not a message",
            (TraceEntryKind::Response | TraceEntryKind::Error, _) if self.method.is_empty() => {
                "to an unknown request"
            }
            _ => &self.method,
        }
    }

    /// Merges the next entry into this entry if both are chunks of the same text.
    ///
    /// # Errors
    /// Returns `next` if it is not a chunk of the same text.
    pub fn merge(&mut self, next: Self) -> Result<(), Box<Self>> {
        let is_same = self.merge_key == next.merge_key
            && (self.from, self.is_by_hand) == (next.from, next.is_by_hand);
        if self.merge_key.is_none() || !is_same {
            return Err(Box::new(next));
        }
        self.records += next.records;
        self.summary.push_str(&next.summary);
        truncate(&mut self.summary);
        Ok(())
    }
}

/// A request that has no response yet.
#[derive(Debug)]
struct UnansweredRequest {
    method: String,
    session: Option<String>,
    time_us: u64,
    is_by_hand: bool,
}

/// A converter from records to entries. Records must be passed in order.
#[derive(Debug, Default)]
pub struct EntryBuilder {
    /// Pending requests, by sender and id.
    pending: HashMap<(Side, RequestId), UnansweredRequest>,
}

impl EntryBuilder {
    /// Creates a builder for a trace that is read from its start.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns a record into an entry. Returns `None` if the kind of the record is unknown.
    pub fn build_entry(&mut self, record: TraceRecord) -> Option<TraceEntry> {
        let mut entry = match &record.body {
            RecordBody::Message {
                from,
                message,
                is_by_hand,
                ..
            } => {
                let mut entry = self.message_entry(&record, *from, message, *is_by_hand);
                entry.from = Some(*from);
                entry
            }
            RecordBody::Noise {
                from,
                length,
                bytes,
            } => {
                let text = String::from_utf8_lossy(bytes);
                noise_entry(&record, *from, *length, &text)
            }
            RecordBody::Oversized {
                from,
                length,
                beginning,
            } => {
                let mut entry = noise_entry(&record, *from, *length, beginning);
                entry.summary = format!("too long to record ({length} bytes): {beginning}");
                entry
            }
            RecordBody::Stderr(line) => TraceEntry {
                from: Some(Side::Agent),
                summary: line.clone(),
                ..TraceEntry::new(&record, TraceEntryKind::Stderr)
            },
            RecordBody::Event(event) => event_entry(&record, event)?,
            RecordBody::Unknown => return None,
        };
        truncate(&mut entry.summary);
        if let RecordBody::Message { message, .. } = record.body {
            entry.message = Some(message);
        }
        Some(entry)
    }

    /// Returns the sender, id, method and time of each request without a response, in no particular order.
    pub fn unanswered_requests(&self) -> impl Iterator<Item = (Side, &RequestId, &str, u64)> {
        self.pending
            .iter()
            .map(|((side, id), pending)| (*side, id, pending.method.as_str(), pending.time_us))
    }

    fn message_entry(
        &mut self,
        record: &TraceRecord,
        from: Side,
        message: &RawValue,
        is_by_hand: bool,
    ) -> TraceEntry {
        let value = |raw: Option<&RawValue>| -> Value {
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
                .unwrap_or_default()
        };
        match jsonrpc::parse(message.get().as_bytes()) {
            Ok(Incoming::Request { id, method, params }) => {
                let params = value(params);
                let session = session_id_of(&params);
                if self.pending.len() < MAX_PENDING_REQUESTS {
                    let pending = UnansweredRequest {
                        method: method.clone().into_owned(),
                        session: session.clone(),
                        time_us: record.time_us,
                        is_by_hand,
                    };
                    self.pending.insert((from, id.clone()), pending);
                }
                TraceEntry {
                    summary: EntrySummary::summarize_params(&method, &params),
                    method: method.into_owned(),
                    id: Some(id),
                    session,
                    is_by_hand,
                    ..TraceEntry::new(record, TraceEntryKind::Request)
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                let params = value(params);
                TraceEntry {
                    is_by_hand,
                    ..notification_entry(record, method.into_owned(), &params)
                }
            }
            Ok(Incoming::Response { id, result }) => {
                let pending = self.pending.remove(&(from.other(), id.clone()));
                let known = pending.is_some();
                let answers_by_hand = pending.as_ref().is_some_and(|pending| pending.is_by_hand);
                let (method, mut session, took) = match pending {
                    Some(pending) => {
                        let took = record.time_us.saturating_sub(pending.time_us);
                        (pending.method, pending.session, Some(took))
                    }
                    None => (String::new(), None, None),
                };
                let (kind, summary) = match result {
                    Ok(result) => {
                        let result = value(Some(result));
                        session = session.or_else(|| session_id_of(&result));
                        (
                            TraceEntryKind::Response,
                            EntrySummary::summarize_result(&method, &result),
                        )
                    }
                    Err(error) => (TraceEntryKind::Error, EntrySummary::summarize_error(&error)),
                };
                TraceEntry {
                    is_error: kind == TraceEntryKind::Error || !known,
                    method,
                    id: Some(id),
                    session,
                    duration_us: took,
                    summary,
                    is_by_hand: is_by_hand || answers_by_hand,
                    ..TraceEntry::new(record, kind)
                }
            }
            Err(error) => TraceEntry {
                is_error: true,
                summary: format!("{error}: {}", message.get()),
                ..TraceEntry::new(record, TraceEntryKind::Noise)
            },
        }
    }
}

fn session_id_of(value: &Value) -> Option<String> {
    value.get("sessionId")?.as_str().map(str::to_owned)
}

fn notification_entry(record: &TraceRecord, method: String, params: &Value) -> TraceEntry {
    let session = session_id_of(params);
    let mut entry = TraceEntry {
        summary: EntrySummary::summarize_params(&method, params),
        method,
        session,
        ..TraceEntry::new(record, TraceEntryKind::Notification)
    };
    if entry.method == "session/update" {
        let update = params.get("update").unwrap_or(&Value::Null);
        let text = |name: &str| update.get(name).and_then(Value::as_str);
        entry.update = text("sessionUpdate").map(str::to_owned);
        if let Some(name) = entry.update.as_deref().filter(|name| is_text_chunk(name)) {
            let session = entry.session.as_deref().unwrap_or_default();
            // In version 1, a chunk need not have a message id. If it has one, a different id means a different
            // message.
            let of = text("messageId").unwrap_or_default();
            entry.merge_key = Some(format!("{name}\n{session}\n{of}"));
        }
    }
    entry
}

/// Returns `true` if a `session/update` of this type is a chunk of text.
fn is_text_chunk(update: &str) -> bool {
    update.ends_with("_chunk") && update != "terminal_output_chunk"
}

fn noise_entry(record: &TraceRecord, from: Side, length: u64, text: &str) -> TraceEntry {
    let blank = text.trim().is_empty();
    TraceEntry {
        from: Some(from),
        is_error: true,
        summary: if blank {
            format!("an empty line ({length} bytes)")
        } else {
            text.to_owned()
        },
        ..TraceEntry::new(record, TraceEntryKind::Noise)
    }
}

fn event_entry(record: &TraceRecord, event: &TraceEvent) -> Option<TraceEntry> {
    let (what, is_error) = match event {
        TraceEvent::Started { pid } => (format!("the agent was started (process {pid})"), false),
        TraceEvent::ClientClosed => ("the client closed the agent's input".to_owned(), false),
        TraceEvent::ClientStoppedReading => ("the client stopped reading".to_owned(), false),
        TraceEvent::AgentClosed => ("the agent closed its output".to_owned(), false),
        TraceEvent::AgentStoppedReading => ("the agent stopped reading".to_owned(), true),
        TraceEvent::Failed { from, message } => (format!("{}: {message}", from.name()), true),
        TraceEvent::Interrupted { by } => (format!("terminated by {by}"), false),
        TraceEvent::Killed => ("the agent did not exit on its own".to_owned(), true),
        TraceEvent::Exited { code, signal } => match (code, signal) {
            (Some(code), _) => (format!("the agent exited with code {code}"), *code != 0),
            (None, Some(signal)) => (format!("the agent was terminated by {signal}"), true),
            (None, None) => ("the agent exited".to_owned(), false),
        },
        TraceEvent::End => ("end of recording".to_owned(), false),
        TraceEvent::Unknown => return None,
    };
    Some(TraceEntry {
        summary: what,
        is_error,
        ..TraceEntry::new(record, TraceEntryKind::Event)
    })
}

/// Truncates text to the maximum summary length.
fn truncate(text: &mut String) {
    if text.len() > MAX_SUMMARY_BYTES {
        let mut end = MAX_SUMMARY_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
}
