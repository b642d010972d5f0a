//! A line of a trace.
//!
//! The first line is the [`TraceHeader`]. Each other line has `t`, the microseconds since the start, and one of
//!
//! | members | what it is |
//! |---|---|
//! | `from`, `len`, `msg` | a message as it came, which is JSON; `redacted` counts what was taken out of it |
//! | `from`, `len`, `noise` | a line that is no JSON, as text |
//! | `from`, `len`, `noise64` | a line that is no UTF-8, in base64 |
//! | `from`, `len`, `cut` | the beginning of what is too long to be recorded |
//! | `stderr` | a line that the agent printed to its standard error |
//! | `event` | what happened to the process or a stream, see [`TraceEvent`] |
//!
//! `len` is in bytes as it came, without the line end. `open` is there, and true, where the stream ended before the
//! line did. Readers pass over members and lines that they do not know.

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use acp_rules::Side;

/// The version of the format. A newer one is not read.
pub const VERSION: u32 = 1;

/// The longest message that is recorded whole, in bytes: what this project's own connections take at most. Of a
/// longer one, and of a line over 64 KiB that is no message, the beginning is recorded.
pub const LONGEST_MESSAGE: usize = 64 * 1024 * 1024;

/// What was done with secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Secrets {
    /// What looks like one was replaced before it was written.
    Redacted,
    /// They were written as they came.
    Kept,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceHeader {
    /// The version of the format: [`VERSION`].
    #[serde(rename = "acp_trace")]
    pub version: u32,
    /// When it was started, by the clock on the wall (RFC 3339, UTC); the `t` of all records count from there.
    pub started: String,
    /// The agent's command line.
    pub command: Vec<String>,
    /// The program that recorded it, and its version.
    pub by: String,
    /// What was done with secrets.
    pub secrets: Secrets,
}

/// What happened to the agent's process or to a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TraceEvent {
    /// The agent runs.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// The client has closed the agent's input.
    ClientClosed,
    /// The client does not read the agent's output any more.
    ClientStoppedReading,
    /// The agent has closed its output.
    AgentClosed,
    /// The agent does not read its input any more.
    AgentStoppedReading,
    /// What was between the two failed.
    Failed {
        /// The stream of this side.
        from: Side,
        /// What the system says.
        message: String,
    },
    /// We were asked to end, and end the agent.
    Interrupted {
        /// What asked us.
        by: String,
    },
    /// The agent did not end by itself, and was ended.
    Killed,
    /// The agent has ended.
    Exited {
        /// Its exit code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
    /// All is recorded. A trace without this was cut off.
    End,
    /// Something that a later version records.
    #[serde(other)]
    Unknown,
}

/// A line after the first.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TraceRecord {
    /// Microseconds since the start of the trace.
    pub time_us: u64,
    /// The line of the file, counting from 1, which is the header.
    pub line: u64,
    /// What it is.
    pub body: RecordBody,
}

/// What a record is of.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RecordBody {
    /// A message: a line that is JSON, whatever else is wrong with it.
    Message {
        /// Who sent it.
        from: Side,
        /// How long it was as it came, in bytes.
        length: u64,
        /// How many parts of it were replaced for being secret.
        redacted: u64,
        /// The message, byte for byte but for what was replaced.
        message: Box<RawValue>,
    },
    /// A line that is no JSON.
    Noise {
        /// Who sent it.
        from: Side,
        /// How long it was, in bytes.
        length: u64,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// A line that was too long to be recorded.
    Oversized {
        /// Who sent it.
        from: Side,
        /// How long it was, in bytes.
        length: u64,
        /// How it begins.
        beginning: String,
    },
    /// A line that the agent printed to its standard error.
    Stderr(String),
    /// Something that happened.
    Event(TraceEvent),
    /// A record of a later version.
    Unknown,
}

/// Appends the beginning of a record of what a side said, up to its contents.
pub(super) fn begin(out: &mut Vec<u8>, at: u64, from: Side, length: usize) {
    out.extend_from_slice(b"{\"t\":");
    number(out, at);
    out.extend_from_slice(match from {
        Side::Client => b",\"from\":\"client\",\"len\":",
        Side::Agent => b",\"from\":\"agent\",\"len\":",
    });
    number(out, length as u64);
}

/// Appends a number.
pub(super) fn number(out: &mut Vec<u8>, number: u64) {
    // It writes to memory, and a number is always JSON.
    let _ = serde_json::to_writer(out, &number);
}

/// Appends a text as JSON.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(out, text);
}

/// Appends bytes as JSON, in base64.
pub(super) fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    text(
        out,
        &base64::engine::general_purpose::STANDARD.encode(bytes),
    );
}

/// Appends the record of an event.
pub(super) fn event(out: &mut Vec<u8>, at: u64, event: &TraceEvent) {
    #[derive(Serialize)]
    struct EventLine<'a> {
        t: u64,
        #[serde(flatten)]
        event: &'a TraceEvent,
    }
    let _ = serde_json::to_writer(&mut *out, &EventLine { t: at, event });
    out.push(b'\n');
}

/// A record as it is read.
#[derive(Deserialize)]
struct EventLine<'a> {
    t: u64,
    from: Option<Side>,
    len: Option<u64>,
    #[serde(default)]
    redacted: u64,
    #[serde(borrow)]
    msg: Option<&'a RawValue>,
    noise: Option<String>,
    noise64: Option<String>,
    cut: Option<String>,
    stderr: Option<String>,
    event: Option<&'a RawValue>,
}

impl TraceRecord {
    /// Reads a line, which is the one with this number.
    ///
    /// # Errors
    /// It is no JSON, or a member that is known has a value that it cannot have.
    pub(super) fn read(line: &str, number: u64) -> Result<Self, serde_json::Error> {
        let read: EventLine<'_> = serde_json::from_str(line)?;
        let at = read.t;
        if read.event.is_some() {
            let event = serde_json::from_str(line)?;
            let what = RecordBody::Event(event);
            return Ok(Self {
                time_us: at,
                line: number,
                body: what,
            });
        }
        if let Some(text) = read.stderr {
            let what = RecordBody::Stderr(text);
            return Ok(Self {
                time_us: at,
                line: number,
                body: what,
            });
        }
        let Some(from) = read.from else {
            let what = RecordBody::Unknown;
            return Ok(Self {
                time_us: at,
                line: number,
                body: what,
            });
        };
        let length = read.len.unwrap_or_default();
        let what = if let Some(message) = read.msg {
            RecordBody::Message {
                from,
                length,
                redacted: read.redacted,
                message: message.to_owned(),
            }
        } else if let Some(text) = read.noise {
            let bytes = text.into_bytes();
            RecordBody::Noise {
                from,
                length,
                bytes,
            }
        } else if let Some(text) = read.noise64 {
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            let bytes = decoded.map_err(serde::de::Error::custom)?;
            RecordBody::Noise {
                from,
                length,
                bytes,
            }
        } else if let Some(beginning) = read.cut {
            RecordBody::Oversized {
                from,
                length,
                beginning,
            }
        } else {
            RecordBody::Unknown
        };
        Ok(Self {
            time_us: at,
            line: number,
            body: what,
        })
    }
}
