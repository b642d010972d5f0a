//! The file format of traces.
//!
//! The first line is the [`TraceHeader`]. Each other line has `t`, the microseconds since the start, and one of
//!
//! | fields | meaning |
//! |---|---|
//! | `from`, `len`, `msg` | a message as it was sent, which is JSON; `redacted` is the number of secrets replaced in
//! it |
//! | `from`, `len`, `noise` | a line that is not JSON, as text |
//! | `from`, `len`, `noise64` | a line that is not UTF-8, in base64 |
//! | `from`, `len`, `cut` | the start of a line that is too long to record |
//! | `stderr` | a line that the agent printed to its standard error |
//! | `event` | an event of the process or of a stream, see [`TraceEvent`] |
//!
//! `len` is the original length in bytes, without the line end. `open` is present, and true, if the stream ended
//! before the line did. `hand` is present, and true, if the user sent the message by hand, in place of the side that
//! `from` names. Readers skip fields and lines that they do not know.

use base64::Engine as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use acp_rules::Side;

/// The version of the format. Files of newer versions are rejected.
pub const FORMAT_VERSION: u32 = 1;

/// The maximum length of a message that is recorded in full, in bytes. The library's connections have the same limit.
/// Only the beginning of longer messages, and of other lines over 64 KiB, is recorded.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Whether secrets are redacted in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Secrets {
    /// Text that looks like a secret was replaced before it was written.
    Redacted,
    /// Secrets were written as they were sent.
    Kept,
}

/// The header of a trace, which is its first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceHeader {
    /// The version of the format: [`FORMAT_VERSION`].
    #[serde(rename = "acp_trace")]
    pub version: u32,
    /// When the trace was started, according to the system clock (RFC 3339, UTC). The `t` of all records is relative to
    /// this time.
    pub started: String,
    /// The agent's command line.
    pub command: Vec<String>,
    /// The program that recorded the trace, with its version.
    pub by: String,
    /// Whether secrets were redacted or recorded as they were sent.
    pub secrets: Secrets,
}

/// An event, such as the agent's exit or a closed stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum TraceEvent {
    /// The agent was started.
    Started {
        /// The process id of the agent.
        pid: u32,
    },
    /// The client closed the agent's input.
    ClientClosed,
    /// The client stopped reading the agent's output.
    ClientStoppedReading,
    /// The agent closed its output.
    AgentClosed,
    /// The agent stopped reading its input.
    AgentStoppedReading,
    /// Reading from or writing to a stream failed.
    Failed {
        /// The side whose stream failed.
        from: Side,
        /// The operating system's error message.
        message: String,
    },
    /// The recorder was interrupted and is terminating the agent.
    Interrupted {
        /// The reason, such as a signal.
        by: String,
    },
    /// The agent did not exit on its own and was killed.
    Killed,
    /// The agent exited, or was terminated.
    Exited {
        /// The exit code, if the agent exited normally.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
        /// The signal that terminated the agent, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signal: Option<String>,
    },
    /// The end of the recording. A trace without this event is incomplete.
    End,
    /// An event from a later version of the format.
    #[serde(other)]
    Unknown,
}

/// A record of a trace: any line except the header.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TraceRecord {
    /// The time in microseconds since the start of the trace.
    pub time_us: u64,
    /// The number of the record's line in the file. The header is line 1.
    pub line: u64,
    /// The recorded content: a message, another line, or an event.
    pub body: RecordBody,
}

/// The content of a trace record.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RecordBody {
    /// A line that is JSON, even if it is not a valid message.
    Message {
        /// The side that sent the message.
        from: Side,
        /// The original length of the line, in bytes.
        length: u64,
        /// The number of secrets that were replaced in the message.
        redacted: u64,
        /// Whether the user sent the message by hand, in place of this side.
        is_by_hand: bool,
        /// The message, unchanged except for redacted secrets.
        message: Box<RawValue>,
    },
    /// A line that is not JSON.
    Noise {
        /// The side that sent the line.
        from: Side,
        /// The original length of the line, in bytes.
        length: u64,
        /// The bytes of the line, without its line end.
        bytes: Vec<u8>,
    },
    /// A line that was too long to record in full.
    Oversized {
        /// The side that sent the line.
        from: Side,
        /// The original length of the line, in bytes.
        length: u64,
        /// The part of the line that was recorded.
        beginning: String,
    },
    /// A line that the agent printed to stderr.
    Stderr(String),
    /// An event, such as the agent's exit or a closed stream.
    Event(TraceEvent),
    /// A record from a later version of the format.
    Unknown,
}

/// Appends the first fields of a line's record: the time, the side and the length.
pub(super) fn push_start(out: &mut Vec<u8>, at: u64, from: Side, length: usize) {
    out.extend_from_slice(b"{\"t\":");
    push_number(out, at);
    out.extend_from_slice(match from {
        Side::Client => b",\"from\":\"client\",\"len\":",
        Side::Agent => b",\"from\":\"agent\",\"len\":",
    });
    push_number(out, length as u64);
}

/// Appends a decimal number to a record.
pub(super) fn push_number(out: &mut Vec<u8>, number: u64) {
    // Writing to memory cannot fail, and a number is always valid JSON.
    let _ = serde_json::to_writer(out, &number);
}

/// Appends text to a record as a JSON string.
pub(super) fn push_string(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(out, text);
}

/// Appends bytes in base64 as a JSON string.
pub(super) fn push_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    push_string(
        out,
        &base64::engine::general_purpose::STANDARD.encode(bytes),
    );
}

/// Appends a complete record for an event.
pub(super) fn push_event(out: &mut Vec<u8>, at: u64, event: &TraceEvent) {
    #[derive(Serialize)]
    struct EventLine<'a> {
        t: u64,
        #[serde(flatten)]
        event: &'a TraceEvent,
    }
    let _ = serde_json::to_writer(&mut *out, &EventLine { t: at, event });
    out.push(b'\n');
}

/// The JSON fields of an event's record.
#[derive(Deserialize)]
struct EventLine<'a> {
    t: u64,
    from: Option<Side>,
    len: Option<u64>,
    #[serde(default)]
    redacted: u64,
    #[serde(default)]
    hand: bool,
    #[serde(borrow)]
    msg: Option<&'a RawValue>,
    noise: Option<String>,
    noise64: Option<String>,
    cut: Option<String>,
    stderr: Option<String>,
    event: Option<&'a RawValue>,
}

impl TraceRecord {
    /// Parses a line of a trace. `number` is its line number in the file.
    ///
    /// # Errors
    /// The line is not JSON, or a known field has an invalid value.
    pub(super) fn parse(line: &str, number: u64) -> Result<Self, serde_json::Error> {
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
                is_by_hand: read.hand,
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
