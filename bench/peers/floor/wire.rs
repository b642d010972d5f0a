//! Reads and writes lines, and the messages that occur.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::FloorError;
use super::websocket::{FloorSocketReader, FloorSocketWriter};

/// The size of the read and write buffers.
pub(super) const BUFFER_SIZE: usize = 64 * 1024;

/// stdin and stdout without the standard library's buffers.
pub(super) fn stdio() -> Result<(FloorInput, FloorOutput), FloorError> {
    let input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let input = FloorInput::Pipe(FloorLines::new(input));
    Ok((input, FloorOutput::Pipe(output)))
}

/// Where messages are read.
pub(super) enum FloorInput {
    Pipe(FloorLines),
    Socket(Box<FloorSocketReader>),
}

impl FloorInput {
    /// Returns the next message, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, FloorError> {
        match self {
            Self::Pipe(lines) => lines.next(),
            Self::Socket(socket) => socket.next(),
        }
    }

    /// Reads this number of lines.
    pub(super) fn skip_lines(&mut self, lines: u64) -> Result<(), FloorError> {
        match self {
            Self::Pipe(input) => input.skip_lines(lines),
            Self::Socket(_) => Err("lines can only be skipped on pipes".into()),
        }
    }
}

/// Where messages are written.
pub(super) enum FloorOutput {
    Pipe(File),
    Socket(Box<FloorSocketWriter>),
}

impl FloorOutput {
    /// Writes messages, each with its line feed, immediately.
    pub(super) fn write_all(&mut self, messages: &[u8]) -> Result<(), FloorError> {
        match self {
            Self::Pipe(output) => Ok(output.write_all(messages)?),
            Self::Socket(socket) => socket.write_all(messages),
        }
    }
}

/// A reader of lines.
pub(super) struct FloorLines {
    input: File,
    buffer: Vec<u8>,
    begin: usize,
}

impl FloorLines {
    fn new(input: File) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            begin: 0,
        }
    }

    /// Returns the next line, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, FloorError> {
        // What has been searched is that much of what is there, wherever it is moved to.
        let mut searched = 0;
        loop {
            let from = self.begin + searched;
            let unseen = self.buffer.get(from..).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', unseen) {
                let line = self.begin..from + at;
                self.begin = from + at + 1;
                return Ok(self.buffer.get(line));
            }
            searched = self.buffer.len() - self.begin;
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads until this number of line feeds has been counted.
    pub(super) fn skip_lines(&mut self, mut lines: u64) -> Result<(), FloorError> {
        while lines > 0 {
            let unseen = self.buffer.get(self.begin..).unwrap_or_default();
            for at in memchr::memchr_iter(b'\n', unseen) {
                lines -= 1;
                if lines == 0 {
                    self.begin += at + 1;
                    return Ok(());
                }
            }
            self.begin = self.buffer.len();
            if self.fill()? == 0 {
                return Err("the input ends".into());
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<usize, FloorError> {
        if self.buffer.capacity() - self.buffer.len() < BUFFER_SIZE {
            self.buffer.drain(..self.begin);
            self.begin = 0;
        }
        if self.begin == self.buffer.len() {
            self.buffer.clear();
            self.begin = 0;
        }
        self.buffer.reserve(BUFFER_SIZE);
        let room = rustix::buffer::spare_capacity(&mut self.buffer);
        Ok(rustix::io::read(&self.input, room)?)
    }
}

/// A message of either direction, with the fields that are used.
#[derive(Deserialize)]
pub(super) struct FloorMessage<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) params: Option<FloorParams<'a>>,
    #[serde(borrow)]
    pub(super) result: Option<FloorReadResult<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FloorParams<'a> {
    pub(super) session_id: Option<String>,
    pub(super) update: Option<FloorUpdate>,
    pub(super) path: Option<String>,
    #[serde(borrow)]
    pub(super) prompt: Option<Vec<FloorBlock<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct FloorBlock<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FloorUpdate {
    pub(super) session_update: FloorUpdateKind,
    pub(super) content: Option<FloorContent>,
    #[allow(dead_code, reason = "what a client is told, it reads")]
    pub(super) message_id: Option<String>,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum FloorUpdateKind {
    AgentMessageChunk,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct FloorContent {
    #[allow(dead_code, reason = "what a client is told, it reads")]
    pub(super) r#type: ContentKind,
    pub(super) text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ContentKind {
    Text,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FloorReadResult<'a> {
    pub(super) session_id: Option<String>,
    pub(super) stop_reason: Option<&'a str>,
    pub(super) content: Option<String>,
    #[serde(borrow)]
    pub(super) outcome: Option<FloorReadOutcome<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FloorReadOutcome<'a> {
    pub(super) option_id: Option<&'a str>,
}

/// A chunk to write.
#[derive(Serialize)]
pub(super) struct FloorChunk<'a> {
    pub(super) jsonrpc: &'static str,
    pub(super) method: &'static str,
    pub(super) params: ChunkParams<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChunkParams<'a> {
    pub(super) session_id: &'a str,
    pub(super) update: ChunkUpdate<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChunkUpdate<'a> {
    pub(super) session_update: &'static str,
    pub(super) content: ChunkText<'a>,
    pub(super) message_id: &'a str,
}

#[derive(Serialize)]
pub(super) struct ChunkText<'a> {
    pub(super) r#type: &'static str,
    pub(super) text: &'a str,
}

impl<'a> FloorChunk<'a> {
    pub(super) fn new(session_id: &'a str, message_id: &'a str, text: &'a str) -> Self {
        let content = ChunkText {
            r#type: "text",
            text,
        };
        let update = ChunkUpdate {
            session_update: "agent_message_chunk",
            content,
            message_id,
        };
        Self {
            jsonrpc: "2.0",
            method: "session/update",
            params: ChunkParams { session_id, update },
        }
    }
}

/// Writes a message as a line, immediately.
pub(super) fn send<T: Serialize>(output: &mut FloorOutput, message: &T) -> Result<(), FloorError> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    output.write_all(&line)
}
