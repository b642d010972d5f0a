//! A trace as a person reads it: what each record is, what it is an answer to, and what matters of it.

mod summary;

use std::collections::HashMap;

use acp_wire::jsonrpc::{self, Incoming, RequestId};
use serde_json::Value;
use serde_json::value::RawValue;

use super::format::{Event, Record, What};
use acp_rules::Side;
use summary::Summary;

/// How many requests are remembered that wait for their answers. The answer to one that is not is shown without its
/// method.
const PENDING: usize = 64 * 1024;

/// How much text of one entry is kept, in bytes.
const TEXT: usize = 16 * 1024;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A request.
    Request,
    /// A notification.
    Notification,
    /// The answer to a request.
    Answer,
    /// The answer to a request that is an error.
    Error,
    /// Something that a side said and that is no message.
    Noise,
    /// A line that the agent printed to its standard error.
    Stderr,
    /// Something that happened to the process or a stream.
    Event,
}

/// A record, or several chunks of the same text, for people.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Microseconds since the start of the trace; of the first chunk.
    pub at: u64,
    /// The line of the file; of the first chunk.
    pub line: u64,
    /// Who said it.
    pub from: Option<Side>,
    /// What it is.
    pub kind: Kind,
    /// The method; of an answer, that of the request. Empty where it is not known.
    pub method: String,
    /// Of a `session/update`, which it is.
    pub update: Option<String>,
    /// The id of a request, or of what is answered.
    pub id: Option<RequestId>,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// How long an answer took, in microseconds.
    pub took: Option<u64>,
    /// What matters of it. It may have several lines, and is as it came: what would command a terminal is in it.
    pub summary: String,
    /// Something is wrong.
    pub is_error: bool,
    /// How many records it is made of.
    pub records: u64,
    /// The message; of chunks, the first.
    pub message: Option<Box<RawValue>>,
    /// What the next entry must be a chunk of, to be one with this.
    run: Option<String>,
}

impl Entry {
    fn new(record: &Record, kind: Kind) -> Self {
        Self {
            at: record.at,
            line: record.line,
            from: None,
            kind,
            method: String::new(),
            update: None,
            id: None,
            session: None,
            took: None,
            summary: String::new(),
            is_error: false,
            records: 1,
            message: None,
            run: None,
        }
    }

    /// What it is called: the update, the method, or what it is instead.
    #[must_use]
    pub fn name(&self) -> &str {
        match (self.kind, &self.update) {
            (_, Some(update)) => update,
            (Kind::Stderr, _) => "stderr",
            (Kind::Noise, _) => "no message",
            (Kind::Answer | Kind::Error, _) if self.method.is_empty() => "to no request",
            _ => &self.method,
        }
    }

    /// Makes the next one part of this, if both are chunks of the same text; gives it back otherwise.
    ///
    /// # Errors
    /// It is no chunk of the same text.
    pub fn join(&mut self, next: Self) -> Result<(), Box<Self>> {
        if self.run.is_none() || self.run != next.run || self.from != next.from {
            return Err(Box::new(next));
        }
        self.records += next.records;
        self.summary.push_str(&next.summary);
        bound(&mut self.summary);
        Ok(())
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Pending {
    method: String,
    session: Option<String>,
    at: u64,
}

/// Makes entries of records, which are to come in their order.
#[derive(Debug, Default)]
pub struct Show {
    /// By who asked.
    pending: HashMap<(Side, RequestId), Pending>,
}

impl Show {
    /// One that has seen no records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A record for people; `None` of one that is not known here.
    pub fn record(&mut self, record: Record) -> Option<Entry> {
        let mut entry = match &record.what {
            What::Message { from, message, .. } => {
                let mut entry = self.message(&record, *from, message);
                entry.from = Some(*from);
                entry
            }
            What::Noise {
                from,
                length,
                bytes,
            } => {
                let text = String::from_utf8_lossy(bytes);
                noise(&record, *from, *length, &text)
            }
            What::Cut {
                from,
                length,
                beginning,
            } => {
                let mut entry = noise(&record, *from, *length, beginning);
                entry.summary = format!("too long to be recorded ({length} bytes): {beginning}");
                entry
            }
            What::Stderr(line) => Entry {
                from: Some(Side::Agent),
                summary: line.clone(),
                ..Entry::new(&record, Kind::Stderr)
            },
            What::Event(event) => happened(&record, event)?,
            What::Unknown => return None,
        };
        bound(&mut entry.summary);
        if let What::Message { message, .. } = record.what {
            entry.message = Some(message);
        }
        Some(entry)
    }

    /// The requests that were not answered, in no order: who asked, the id, the method, and when.
    pub fn unanswered(&self) -> impl Iterator<Item = (Side, &RequestId, &str, u64)> {
        self.pending
            .iter()
            .map(|((side, id), pending)| (*side, id, pending.method.as_str(), pending.at))
    }

    fn message(&mut self, record: &Record, from: Side, message: &RawValue) -> Entry {
        let value = |raw: Option<&RawValue>| -> Value {
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
                .unwrap_or_default()
        };
        match jsonrpc::parse(message.get().as_bytes()) {
            Ok(Incoming::Request { id, method, params }) => {
                let params = value(params);
                let session = session_of(&params);
                if self.pending.len() < PENDING {
                    let pending = Pending {
                        method: method.clone().into_owned(),
                        session: session.clone(),
                        at: record.at,
                    };
                    self.pending.insert((from, id.clone()), pending);
                }
                Entry {
                    summary: Summary::of_params(&method, &params),
                    method: method.into_owned(),
                    id: Some(id),
                    session,
                    ..Entry::new(record, Kind::Request)
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                let params = value(params);
                notification(record, method.into_owned(), &params)
            }
            Ok(Incoming::Response { id, result }) => {
                let pending = self.pending.remove(&(from.other(), id.clone()));
                let known = pending.is_some();
                let (method, mut session, took) = match pending {
                    Some(pending) => {
                        let took = record.at.saturating_sub(pending.at);
                        (pending.method, pending.session, Some(took))
                    }
                    None => (String::new(), None, None),
                };
                let (kind, summary) = match result {
                    Ok(result) => {
                        let result = value(Some(result));
                        session = session.or_else(|| session_of(&result));
                        (Kind::Answer, Summary::of_result(&method, &result))
                    }
                    Err(error) => (Kind::Error, Summary::of_error(&error)),
                };
                Entry {
                    is_error: kind == Kind::Error || !known,
                    method,
                    id: Some(id),
                    session,
                    took,
                    summary,
                    ..Entry::new(record, kind)
                }
            }
            Err(error) => Entry {
                is_error: true,
                summary: format!("{error}: {}", message.get()),
                ..Entry::new(record, Kind::Noise)
            },
        }
    }
}

fn session_of(value: &Value) -> Option<String> {
    value.get("sessionId")?.as_str().map(str::to_owned)
}

fn notification(record: &Record, method: String, params: &Value) -> Entry {
    let session = session_of(params);
    let mut entry = Entry {
        summary: Summary::of_params(&method, params),
        method,
        session,
        ..Entry::new(record, Kind::Notification)
    };
    if entry.method == "session/update" {
        let update = params.get("update").unwrap_or(&Value::Null);
        let text = |name: &str| update.get(name).and_then(Value::as_str);
        entry.update = text("sessionUpdate").map(str::to_owned);
        if let Some(name) = entry.update.as_deref().filter(|name| is_text(name)) {
            let session = entry.session.as_deref().unwrap_or_default();
            // Chunks of version 1 may have no id; those of another message have another.
            let of = text("messageId").unwrap_or_default();
            entry.run = Some(format!("{name}\n{session}\n{of}"));
        }
    }
    entry
}

/// Whether this update is a piece of a text.
fn is_text(update: &str) -> bool {
    update.ends_with("_chunk") && update != "terminal_output_chunk"
}

fn noise(record: &Record, from: Side, length: u64, text: &str) -> Entry {
    let blank = text.trim().is_empty();
    Entry {
        from: Some(from),
        is_error: true,
        summary: if blank {
            format!("an empty line ({length} bytes)")
        } else {
            text.to_owned()
        },
        ..Entry::new(record, Kind::Noise)
    }
}

fn happened(record: &Record, event: &Event) -> Option<Entry> {
    let (what, is_error) = match event {
        Event::Started { pid } => (format!("the agent was started (process {pid})"), false),
        Event::ClientClosed => ("the client closed the agent's input".to_owned(), false),
        Event::ClientStoppedReading => ("the client does not read any more".to_owned(), false),
        Event::AgentClosed => ("the agent closed its output".to_owned(), false),
        Event::AgentStoppedReading => ("the agent does not read any more".to_owned(), true),
        Event::Failed { from, message } => (format!("{}: {message}", from.name()), true),
        Event::Interrupted { by } => (format!("{by} ended it"), false),
        Event::Killed => ("the agent did not end by itself".to_owned(), true),
        Event::Exited { code, signal } => match (code, signal) {
            (Some(code), _) => (format!("the agent ended: exit code {code}"), *code != 0),
            (None, Some(signal)) => (format!("the agent ended: {signal}"), true),
            (None, None) => ("the agent ended".to_owned(), false),
        },
        Event::End => ("the end".to_owned(), false),
        Event::Unknown => return None,
    };
    Some(Entry {
        summary: what,
        is_error,
        ..Entry::new(record, Kind::Event)
    })
}

/// Cuts a text that is longer than what is kept.
fn bound(text: &mut String) {
    if text.len() > TEXT {
        let mut end = TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
}
