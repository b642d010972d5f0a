//! Lets messages be sent by hand between the lines of a relay, and keeps the responses to them from the side that did
//! not ask.
//!
//! A message never comes into the middle of a line. If the relay has passed on only part of a line, the message waits
//! for the rest of it. Until the first request by hand, bytes are passed on as they arrive. From then on, lines of the
//! side that responds are passed on as a whole, since only a whole line shows whether it is a response.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use acp_rules::Side;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::format::MAX_MESSAGE_BYTES;
use super::hand_message::HandMessage;
use super::log::{LogEntryKind, RecordLog};
use super::pipes::PipeOutput;

/// The maximum buffer size to keep for the next line, in bytes.
const MAX_IDLE_CAPACITY: usize = 1024 * 1024;

/// The error for a message that could not be sent by hand.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InjectError {
    /// Another message is still waiting for the end of a line.
    #[error("the previous message to the {} still waits for the end of a line", to.name())]
    Busy {
        /// The side that the message is for.
        to: Side,
    },
    /// The connection to the side has ended.
    #[error("the connection to the {} has ended", to.name())]
    Ended {
        /// The side that the message is for.
        to: Side,
    },
    /// The message could not be written.
    #[error("cannot send to the {}: {source}", to.name())]
    Failed {
        /// The side that the message is for.
        to: Side,
        /// The error from the operating system.
        source: io::Error,
    },
}

/// Sends messages by hand to one side, as if they came from the other side. It can be used from any thread.
#[derive(Debug, Clone)]
pub struct MessageInjector {
    to: Side,
    output: Arc<Mutex<Option<PipeOutput>>>,
    gate: Arc<Mutex<InjectionGate>>,
    /// The requests that are sent to this side.
    requests: Arc<HandRequests>,
    log: Arc<RecordLog>,
}

/// The requests that were sent by hand to one side.
#[derive(Debug)]
pub(super) struct HandRequests {
    /// The start of their ids, which is random, so that no other request has it.
    prefix: String,
    /// The number of requests so far, to both sides.
    count: Arc<AtomicU64>,
    /// Whether there may be responses.
    are_pending: AtomicBool,
}

/// What a relay and an injector share about an output. It is locked only while the output is locked.
#[derive(Debug)]
struct InjectionGate {
    is_at_line_start: bool,
    waiting: Option<WaitingLine>,
}

/// A line that waits for the end of another.
#[derive(Debug)]
struct WaitingLine {
    line: Vec<u8>,
    sent: SyncSender<io::Result<()>>,
}

/// The part of a relay that lets lines be sent between its own, and removes some of them.
#[derive(Debug)]
pub(super) struct LineRelay {
    from: Side,
    gate: Arc<Mutex<InjectionGate>>,
    filter: ResponseFilter,
    log: Arc<RecordLog>,
}

impl HandRequests {
    /// Creates the requests to a side. `nonce` is random text that makes ids unique. Both sides share `count`, so that an
    /// id occurs once in a trace.
    pub(super) fn new(nonce: &str, count: Arc<AtomicU64>) -> Self {
        Self {
            prefix: format!("hand-{nonce}-"),
            count,
            are_pending: AtomicBool::new(false),
        }
    }

    fn next_id(&self) -> String {
        // From here on, responses are looked for. The request is not sent yet, so none can be missed.
        self.are_pending.store(true, Ordering::SeqCst);
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        format!("{}{number}", self.prefix)
    }
}

impl MessageInjector {
    /// Sends a message, and returns the id that it has got if it is a request. Blocks until the message is sent: the
    /// relay may be in the middle of a line, and the side may be slow to read.
    ///
    /// # Errors
    /// Another message is waiting, the connection has ended, or writing failed.
    pub fn send(&self, message: &HandMessage) -> Result<Option<String>, InjectError> {
        let to = self.to;
        let id = message.needs_id().then(|| self.requests.next_id());
        let mut line = message.to_line(id.as_deref());
        line.push(b'\n');
        if let Some(waiting) = self.send_or_wait(line)? {
            match waiting.recv() {
                Ok(sent) => sent.map_err(|e| self.write_error(e))?,
                // The relay has ended.
                Err(_) => return Err(InjectError::Ended { to }),
            }
        }
        Ok(id)
    }

    /// Sends a line, or leaves it to the relay, which reports when it is sent.
    fn send_or_wait(&self, line: Vec<u8>) -> Result<Option<Receiver<io::Result<()>>>, InjectError> {
        let to = self.to;
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(output) = output.as_mut() else {
            return Err(InjectError::Ended { to });
        };
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        if gate.waiting.is_some() {
            return Err(InjectError::Busy { to });
        }
        if !gate.is_at_line_start {
            let (sent, receiver) = sync_channel(1);
            gate.waiting = Some(WaitingLine { line, sent });
            return Ok(Some(receiver));
        }
        write_by_hand(&self.log, to.other(), &line, output).map_err(|e| self.write_error(e))?;
        Ok(None)
    }

    fn write_error(&self, source: io::Error) -> InjectError {
        let to = self.to;
        match source.kind() {
            io::ErrorKind::BrokenPipe => InjectError::Ended { to },
            _ => InjectError::Failed { to, source },
        }
    }
}

/// Records a line that takes the place of one from `from`, and writes it.
fn write_by_hand(
    log: &RecordLog,
    from: Side,
    line: &[u8],
    output: &mut PipeOutput,
) -> io::Result<()> {
    let record = line.strip_suffix(b"\n").unwrap_or(line);
    log.push(LogEntryKind::ByHand(from), record);
    output.write_all(line)
}

impl LineRelay {
    /// Creates the line relay of the bytes that `from` sends to `output`, and the injector for the same output.
    /// `responses_to` are the requests that `from` may respond to, and `requests` those to the other side.
    pub(super) fn new(
        from: Side,
        output: Arc<Mutex<Option<PipeOutput>>>,
        responses_to: Arc<HandRequests>,
        requests: Arc<HandRequests>,
        log: Arc<RecordLog>,
    ) -> (Self, MessageInjector) {
        let gate = Arc::new(Mutex::new(InjectionGate {
            is_at_line_start: true,
            waiting: None,
        }));
        let injector = MessageInjector {
            to: from.other(),
            output,
            gate: Arc::clone(&gate),
            requests,
            log: Arc::clone(&log),
        };
        let relay = Self {
            from,
            gate,
            filter: ResponseFilter::new(responses_to),
            log,
        };
        (relay, injector)
    }

    /// Passes bytes on, without responses to requests by hand. Sends a waiting message as soon as a line ends.
    pub(super) fn pass(&mut self, bytes: &[u8], output: &mut PipeOutput) -> io::Result<()> {
        if let Some(bytes) = self.filter.pass_unfiltered(bytes) {
            return self.write(bytes, output);
        }
        let mut passed = Vec::with_capacity(bytes.len());
        self.filter.push(bytes, &mut passed);
        self.write(&passed, output)
    }

    /// Passes on what is left when the stream has ended, which is a line without its end.
    pub(super) fn pass_rest(&mut self, output: &mut PipeOutput) -> io::Result<()> {
        let rest = std::mem::take(&mut self.filter.held);
        self.write(&rest, output)
    }

    fn write(&self, bytes: &[u8], output: &mut PipeOutput) -> io::Result<()> {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = bytes.last() else {
            return Ok(());
        };
        let mut rest = bytes;
        if gate.waiting.is_some()
            && let Some(end) = memchr::memrchr(b'\n', bytes)
        {
            let (lines, after) = bytes.split_at(end + 1);
            output.write_all(lines)?;
            if let Some(waiting) = gate.waiting.take() {
                let sent = write_by_hand(&self.log, self.from, &waiting.line, output);
                let failed = sent.as_ref().err().map(io::Error::kind);
                // Nobody may be waiting for it any longer.
                let _ = waiting.sent.try_send(sent);
                if let Some(kind) = failed {
                    return Err(kind.into());
                }
            }
            rest = after;
        }
        gate.is_at_line_start = *last == b'\n';
        output.write_all(rest)
    }
}

impl Drop for LineRelay {
    fn drop(&mut self) {
        // Whoever waits learns that the connection has ended.
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        gate.waiting = None;
    }
}

/// A filter that removes the responses to requests that were sent by hand.
#[derive(Debug)]
struct ResponseFilter {
    requests: Arc<HandRequests>,
    /// The current line, if it is held back until it is complete.
    held: Vec<u8>,
    /// Whether the first part of the current line was passed on.
    is_passing: bool,
    /// Whether the first part of the current line was removed.
    is_removing: bool,
    /// The length at which a line is decided by its first part, in bytes.
    max_held: usize,
}

impl ResponseFilter {
    fn new(requests: Arc<HandRequests>) -> Self {
        Self {
            requests,
            held: Vec::new(),
            is_passing: false,
            is_removing: false,
            max_held: MAX_MESSAGE_BYTES,
        }
    }

    /// Returns the bytes as they are, if there cannot be any responses yet.
    fn pass_unfiltered<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if self.requests.are_pending.load(Ordering::SeqCst) {
            return None;
        }
        self.is_passing = bytes.last().is_some_and(|last| *last != b'\n');
        Some(bytes)
    }

    /// Adds to `passed` what can be passed on.
    fn push(&mut self, mut bytes: &[u8], passed: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let end = memchr::memchr(b'\n', bytes).map(|end| end + 1);
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            bytes = rest;
            let is_complete = end.is_some();
            if self.is_removing {
                self.is_removing = !is_complete;
            } else if self.is_passing {
                passed.extend_from_slice(part);
                self.is_passing = !is_complete;
            } else if is_complete && self.held.is_empty() {
                if !self.is_response(part) {
                    passed.extend_from_slice(part);
                }
            } else {
                self.held.extend_from_slice(part);
                self.decide_held(is_complete, passed);
            }
        }
    }

    /// Passes the held line on or removes it, if it is complete or too long to hold.
    fn decide_held(&mut self, is_complete: bool, passed: &mut Vec<u8>) {
        if !is_complete && self.held.len() <= self.max_held {
            return;
        }
        let is_removed = self.is_response(&self.held);
        if !is_removed {
            passed.extend_from_slice(&self.held);
        }
        self.is_removing = is_removed && !is_complete;
        self.is_passing = !is_removed && !is_complete;
        self.held.clear();
        self.held.shrink_to(MAX_IDLE_CAPACITY);
    }

    /// Returns `true` if a line is a response to a request by hand.
    fn is_response(&self, line: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct ResponseEnvelope {
            id: Option<serde_json::Value>,
            method: Option<IgnoredAny>,
        }
        let prefix = self.requests.prefix.as_str();
        match serde_json::from_slice::<ResponseEnvelope>(line) {
            Ok(ResponseEnvelope {
                id: Some(serde_json::Value::String(id)),
                method: None,
            }) => id.starts_with(prefix),
            Ok(_) => false,
            // Not a valid message, or only the first part of a long one. No peer can know the id otherwise.
            Err(_) => memchr::memmem::find(line, prefix.as_bytes()).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> ResponseFilter {
        ResponseFilter::new(Arc::new(HandRequests::new("7", Arc::default())))
    }

    /// Pushes text in pieces of this size, and returns what is passed on.
    fn pass(filter: &mut ResponseFilter, text: &str, size: usize) -> String {
        let mut passed = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            match filter.pass_unfiltered(piece) {
                Some(piece) => passed.extend_from_slice(piece),
                None => filter.push(piece, &mut passed),
            }
        }
        String::from_utf8(passed).unwrap()
    }

    #[test]
    fn only_responses_to_requests_by_hand_are_removed() {
        let others = [
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"text\":\"hand-7-1\"}}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":\"hand-7-1\",\"method\":\"x\"}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":\"hand-8-1\",\"result\":null}\n",
            "\n",
            "noise\n",
        ];
        let responses = [
            "{\"jsonrpc\":\"2.0\",\"id\":\"hand-7-1\",\"result\":{}}\n",
            "{\"error\":{\"code\":1,\"message\":\"\"},\"id\":\"h\\u0061nd-7-1\"}\n",
            "{\"id\":\"hand-7-1\",\"result\n",
        ];
        let text = format!("{}{}", responses.concat(), others.concat());
        let text = format!("{text}{}", responses.concat());
        for size in [1, 7, 64, 10_000] {
            let mut filter = filter();
            assert_eq!(pass(&mut filter, &text, size), text, "before a request");
            assert_eq!(filter.requests.next_id(), "hand-7-1");
            assert_eq!(pass(&mut filter, &text, size), others.concat(), "{size}");
            assert!(filter.held.is_empty());
        }
    }

    #[test]
    fn line_that_has_begun_before_the_request_is_passed_on() {
        let mut filter = filter();
        assert_eq!(pass(&mut filter, "{\"id\":\"ha", 100), "{\"id\":\"ha");
        filter.requests.next_id();
        assert_eq!(pass(&mut filter, "nd\"}\n{", 100), "nd\"}\n");
        assert_eq!(filter.held, b"{");
    }

    #[test]
    fn line_that_is_too_long_is_decided_by_its_beginning() {
        let mut filter = filter();
        filter.max_held = 40;
        let id = filter.requests.next_id();
        let response = format!("{{\"id\":\"{id}\",\"result\":\"{}\"}}\n", "x".repeat(100));
        let other = format!("{{\"id\":1,\"result\":\"{}\"}}\n", "x".repeat(100));
        let text = format!("{response}{other}{response}{other}");
        assert_eq!(pass(&mut filter, &text, 16), format!("{other}{other}"));
    }
}
