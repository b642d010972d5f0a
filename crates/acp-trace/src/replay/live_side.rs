//! Manages the connection to the live side. Keeps reading from it while writing to it.

use std::io;
use std::pin::Pin;

use acp::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::format::MAX_MESSAGE_BYTES;

/// The number of messages to read ahead. Messages are also received during writes, so that two sides that write to each
/// other do not deadlock.
const MAX_QUEUED_MESSAGES: usize = 64;

pub(super) struct LiveSide {
    incoming: mpsc::Receiver<io::Result<Value>>,
    writer: Option<Pin<Box<dyn AsyncWrite + Send>>>,
}

impl LiveSide {
    pub(super) fn new(transport: Transport) -> Self {
        let (reader, writer) = transport.into_split();
        let (sender, incoming) = mpsc::channel(MAX_QUEUED_MESSAGES);
        // The task ends with its input, or when the receiver is dropped.
        tokio::spawn(read_messages(reader, sender));
        Self {
            incoming,
            writer: Some(Box::pin(writer)),
        }
    }

    /// Returns the next message from the live side, or `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<io::Result<Value>> {
        self.incoming.recv().await
    }

    /// Writes bytes to the live side, and returns the messages that arrived during the write. If the live side has
    /// stopped reading, the remaining bytes are dropped.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<Vec<Value>> {
        let mut meanwhile = Vec::new();
        let Some(writer) = &mut self.writer else {
            return Ok(meanwhile);
        };
        let written = {
            let write = async {
                writer.write_all(bytes).await?;
                writer.flush().await
            };
            tokio::pin!(write);
            loop {
                tokio::select! {
                    written = &mut write => break written,
                    Some(message) = self.incoming.recv() => meanwhile.push(message?),
                }
            }
        };
        match written {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.writer = None,
            written => written?,
        }
        Ok(meanwhile)
    }

    /// Closes the input of the live side.
    pub(super) fn close(&mut self) {
        self.writer = None;
    }
}

/// Reads messages and sends them to the channel. A line that is not JSON, or is too long, becomes a JSON string that
/// describes the problem.
async fn read_messages(reader: impl AsyncRead + Unpin, messages: mpsc::Sender<io::Result<Value>>) {
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    loop {
        let message = match read_line(&mut reader).await {
            Ok(Some(line)) if line.is_empty() => continue,
            Ok(Some(line)) => Ok(serde_json::from_slice(&line)
                .unwrap_or_else(|_| String::from_utf8_lossy(&line).into_owned().into())),
            Ok(None) => return,
            Err(e) => Err(e),
        };
        let failed = message.is_err();
        if messages.send(message).await.is_err() || failed {
            return;
        }
    }
}

/// Reads a line without its line end. If it is too long, returns only its beginning.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    loop {
        let there = reader.fill_buf().await?;
        if there.is_empty() {
            return Ok((!line.is_empty()).then_some(line));
        }
        let end = memchr::memchr(b'\n', there);
        let part = there.get(..end.unwrap_or(there.len())).unwrap_or(there);
        let room = MAX_MESSAGE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(part.get(..room).unwrap_or(part));
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}
