//! Relays the messages of a connection in both directions.
//!
//! ```text
//!             lines are checked (client_message.rs)
//!   client ───────────────────────────────────────────▶ agent's stdin
//!      ▲                 │ responses to rejected lines
//!      │                 ▼
//!      └──────────── between two lines ◀──────────────── agent's stdout
//! ```
//!
//! Bytes of the agent are passed on as they come, so a message of any length needs little memory here. A line of the
//! client is passed on when it is complete, because its directories must be checked first. If one side does not read,
//! nothing more is read from the other.

use std::io;
use std::sync::Arc;

use acp::Transport;
use acp::jsonrpc::RequestId;
use memchr::memchr;
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::client_message::{LineDecision, decide};
use crate::in_flight::RequestsInFlight;
use crate::metrics::AgentCounters;
use crate::roots::AllowedRoots;
use crate::served_agent::EXIT_TIMEOUT;

/// The size of the first read, in bytes. The size doubles each time a read fills the buffer.
const MIN_READ: usize = 8 * 1024;

/// The maximum size of a read, in bytes.
const MAX_READ: usize = 64 * 1024;

/// The length of the longest agent line to check for a response, in bytes.
const MAX_RESPONSE: usize = 1024 * 1024;

/// The maximum number of error responses that can wait for the agent to finish a line.
const MAX_REPLIES: usize = 16;

/// The data that a connection's relay needs.
pub(crate) struct RelayContext {
    pub(crate) roots: AllowedRoots,
    pub(crate) in_flight: Arc<RequestsInFlight>,
    pub(crate) counters: Arc<AgentCounters>,
    /// The maximum length of a client's message, in bytes.
    pub(crate) max_message: usize,
}

/// The reason why a relay ended.
#[derive(Debug)]
pub(crate) enum AgentRelayEnd {
    /// The client closed the connection, or did not reconnect in time.
    Client,
    /// The agent closed its stdout.
    Agent,
    /// The client sent a message that is too long.
    MessageTooLong,
    /// Reading or writing failed.
    Failed(io::Error),
}

/// Relays messages until one side ends the connection. When this returns, the agent's stdin is closed.
pub(crate) async fn relay(
    transport: Transport,
    (stdin, stdout): (ChildStdin, ChildStdout),
    context: &RelayContext,
) -> AgentRelayEnd {
    let (from_client, to_client) = transport.into_split();
    let (replies, waiting) = mpsc::channel(MAX_REPLIES);
    let agent = relay_agent(stdout, to_client, waiting, &context.in_flight);
    tokio::pin!(agent);
    let client_end = tokio::select! {
        biased;
        end = &mut agent => return end,
        end = relay_client(from_client, stdin, replies, context) => end,
    };
    match client_end {
        // The agent's last messages may still be of use: a client can close only its own direction.
        AgentRelayEnd::Client => {
            let _ = timeout(EXIT_TIMEOUT, agent).await;
            AgentRelayEnd::Client
        }
        // The agent does not read any more. It may still send messages, and usually exits.
        AgentRelayEnd::Agent => agent.await,
        end => end,
    }
}

/// Passes lines from the client on to the agent. Returns [`AgentRelayEnd::Agent`] if the agent has stopped reading.
async fn relay_client(
    mut from_client: impl AsyncRead + Unpin,
    mut to_agent: impl AsyncWrite + Unpin,
    replies: mpsc::Sender<Vec<u8>>,
    context: &RelayContext,
) -> AgentRelayEnd {
    let mut buffer = Vec::with_capacity(MIN_READ);
    loop {
        let unfinished = buffer.len();
        if unfinished > context.max_message {
            return AgentRelayEnd::MessageTooLong;
        }
        reserve(&mut buffer);
        match from_client.read_buf(&mut buffer).await {
            Ok(0) => return AgentRelayEnd::Client,
            Ok(_) => {}
            Err(e) => return AgentRelayEnd::Failed(e),
        }
        let Some(length) = memchr::memrchr(b'\n', &buffer[unfinished..]) else {
            continue;
        };
        let complete = unfinished + length + 1;
        // Lines that are passed on and follow each other are written together.
        let mut written = 0;
        let mut start = 0;
        let mut rejected = Vec::new();
        for line in buffer[..complete].split_inclusive(|byte| *byte == b'\n') {
            let end = start + line.len();
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            match decide(text, &context.roots) {
                LineDecision::Forward(request) => {
                    if let Some(request) = request {
                        context.in_flight.add(request);
                    }
                }
                decision => {
                    if to_agent.write_all(&buffer[written..start]).await.is_err() {
                        return AgentRelayEnd::Agent;
                    }
                    written = end;
                    if let LineDecision::Reject(reply) = decision {
                        context.counters.messages_rejected.increment();
                        rejected.push(reply);
                    }
                }
            }
            start = end;
        }
        let sent = async {
            to_agent.write_all(&buffer[written..complete]).await?;
            to_agent.flush().await
        };
        if sent.await.is_err() {
            return AgentRelayEnd::Agent;
        }
        for reply in rejected {
            // Fails only if the other direction has ended, which ends this one.
            let _ = replies.send(reply).await;
        }
        buffer.drain(..complete);
        if buffer.is_empty() && buffer.capacity() > MAX_READ {
            buffer = Vec::with_capacity(MIN_READ);
        }
    }
}

/// Reserves space for the next read. Enlarges the buffer if the last read filled it.
fn reserve(buffer: &mut Vec<u8>) {
    let free = buffer.capacity() - buffer.len();
    if free == 0 {
        buffer.reserve(buffer.capacity().clamp(MIN_READ, MAX_READ));
    }
}

/// Passes bytes from the agent on to the client, and inserts replies between the agent's lines.
async fn relay_agent(
    mut from_agent: impl AsyncRead + Unpin,
    mut to_client: impl AsyncWrite + Unpin,
    mut replies: mpsc::Receiver<Vec<u8>>,
    in_flight: &RequestsInFlight,
) -> AgentRelayEnd {
    let mut buffer = Vec::with_capacity(MIN_READ);
    let mut lines = ResponseFinder::default();
    loop {
        if buffer.capacity() < MAX_READ && buffer.len() == buffer.capacity() {
            buffer = Vec::with_capacity(buffer.capacity() * 2);
        }
        buffer.clear();
        let sent = tokio::select! {
            biased;
            Some(reply) = replies.recv(), if lines.is_at_line_start() => {
                to_client.write_all(&reply).await
            }
            read = from_agent.read_buf(&mut buffer) => match read {
                Ok(0) => return AgentRelayEnd::Agent,
                Ok(_) => {
                    lines.push(&buffer, in_flight);
                    to_client.write_all(&buffer).await
                }
                Err(e) => return AgentRelayEnd::Failed(e),
            },
        };
        if let Err(e) = sent {
            return match e.kind() {
                io::ErrorKind::BrokenPipe => AgentRelayEnd::Client,
                _ => AgentRelayEnd::Failed(e),
            };
        }
    }
}

/// Finds the responses in an agent's output.
#[derive(Debug, Default)]
struct ResponseFinder {
    /// The start of the current line, if its end has not been read yet.
    line: Vec<u8>,
    /// Whether the current line is too long to be checked.
    is_too_long: bool,
}

impl ResponseFinder {
    fn is_at_line_start(&self) -> bool {
        self.line.is_empty() && !self.is_too_long
    }

    fn push(&mut self, mut bytes: &[u8], in_flight: &RequestsInFlight) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if std::mem::take(&mut self.is_too_long) {
                self.line = Vec::new();
            } else if self.line.is_empty() {
                finish_request(line, in_flight);
            } else {
                self.line.extend_from_slice(line);
                finish_request(&self.line, in_flight);
                self.line.clear();
            }
        }
        if self.line.len() + bytes.len() > MAX_RESPONSE {
            self.is_too_long = true;
            self.line = Vec::new();
        }
        if !self.is_too_long {
            self.line.extend_from_slice(bytes);
        }
    }
}

/// The members of an agent's message that show whether it is a response.
#[derive(Deserialize)]
struct AgentMessage {
    #[serde(default)]
    id: Option<RequestId>,
    #[serde(default)]
    method: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// Removes the request that a line answers, if the line is a response.
fn finish_request(line: &[u8], in_flight: &RequestsInFlight) {
    // Most lines are notifications, which begin with their method. They need no parsing.
    let start = line.get(..48).unwrap_or(line);
    if in_flight.is_empty() || memchr::memmem::find(start, b"\"method\"").is_some() {
        return;
    }
    let Ok(message) = serde_json::from_slice::<AgentMessage>(line) else {
        return;
    };
    if message.method.is_some() {
        return;
    }
    if let Some(request) = message.id.and_then(|id| in_flight.remove(&id)) {
        tracing::info!(
            method = request.method,
            session = request.session,
            milliseconds = u64::try_from(request.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            is_error = message.error.is_some(),
            "request finished"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_message::ClientRequest;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    fn prompt(number: i64) -> ClientRequest {
        ClientRequest {
            id: id(number),
            method: "session/prompt".to_owned(),
            session: None,
        }
    }

    #[test]
    fn responses_are_found_however_the_output_is_cut() {
        let output = concat!(
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"id":1}}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"fs/read_text_file"}"#,
            "\nnot a message\n",
            r#"{"jsonrpc":"2.0","result":{},"id":1}"#,
            "\n",
        );
        for cut in 0..output.len() {
            let in_flight = RequestsInFlight::default();
            in_flight.add(prompt(1));
            in_flight.add(prompt(2));
            let mut finder = ResponseFinder::default();
            finder.push(&output.as_bytes()[..cut], &in_flight);
            finder.push(&output.as_bytes()[cut..], &in_flight);
            assert!(finder.is_at_line_start());
            assert!(
                in_flight.remove(&id(1)).is_none(),
                "output split at byte {cut}"
            );
            assert!(
                in_flight.remove(&id(2)).is_some(),
                "output split at byte {cut}"
            );
        }
    }

    #[test]
    fn a_long_line_is_not_stored() {
        let in_flight = RequestsInFlight::default();
        in_flight.add(prompt(1));
        let mut finder = ResponseFinder::default();
        for _ in 0..100 {
            finder.push(&[b'x'; MAX_READ], &in_flight);
            assert!(finder.line.capacity() <= 2 * MAX_RESPONSE);
            assert!(!finder.is_at_line_start());
        }
        finder.push(b"\n{\"id\":1,\"result\":{}}\n", &in_flight);
        assert!(finder.is_at_line_start());
        assert!(in_flight.is_empty());
    }
}
