//! Replays one side of a trace to a live peer, and reports how the peer's messages differ from the recorded ones.
//!
//! Each message of the played side is sent once the live side has sent everything that it sent before that message in
//! the trace. So the replay is as fast as the live side. Requests keep the ids of the trace. Ids that the live side
//! chooses (of requests, sessions, terminals and so on) are remembered and replace the recorded ones. A live message
//! matches a recorded one if both are responses to the same request, or requests or notifications with the same method
//! and session. The two are then compared field by field.

mod compare;
mod live_side;

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead};
use std::time::Duration;

use acp::Transport;
use serde_json::{Value, json};

use super::format::RecordBody;
use super::read::{TraceReadError, TraceReader};
use acp_rules::Side;
pub use compare::{IgnoredPath, ValueChange};
use compare::{LiveIds, compare};
use live_side::LiveSide;

/// The maximum total size of a trace's messages, in bytes.
const MAX_MESSAGE_BYTES: usize = 256 * 1024 * 1024;

/// The maximum number of live messages that wait for a matching recorded message.
const MAX_UNMATCHED_MESSAGES: usize = 16 * 1024;

/// The maximum number of differences to report in detail. Further differences are only counted.
const MAX_DIFFERENCES: usize = 1000;

/// The settings for replaying a trace.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReplaySettings {
    /// The side that the replay acts as.
    pub side: Side,
    /// Whether to pause between messages, as in the trace.
    pub pace: bool,
    /// How long to wait for each message from the live side.
    pub timeout: Duration,
    /// The paths in messages that are not compared.
    pub ignore: Vec<IgnoredPath>,
}

impl ReplaySettings {
    /// Creates settings that replay this side without pauses and wait up to ten seconds for each message.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self {
            side,
            pace: false,
            timeout: Duration::from_secs(10),
            ignore: Vec::new(),
        }
    }
}

/// An error that occurred while loading a trace for replay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] TraceReadError),
    /// The trace's messages are too large to keep in memory.
    #[error("too large: more than {} MiB of messages", MAX_MESSAGE_BYTES / 1024 / 1024)]
    TooLarge,
    /// The trace has no messages.
    #[error("contains no messages")]
    Empty,
}

/// A difference between the trace and the live side.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// The live side did not send a recorded message.
    Missing {
        /// The line number of the recorded message in the trace.
        line: u64,
        /// A description of the missing message.
        what: String,
    },
    /// The live side sent a message that is not in the trace.
    Extra {
        /// A description of the unexpected message.
        what: String,
        /// The unexpected message as the live side sent it.
        message: Value,
    },
    /// The live side sent a recorded message with different content.
    Changed {
        /// The line number of the recorded message in the trace.
        line: u64,
        /// A description of the recorded message.
        what: String,
        /// The value that differs, with both versions.
        change: ValueChange,
    },
}

/// The result of replaying a trace.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReplayReport {
    /// The differences, up to the first thousand.
    pub differences: Vec<Difference>,
    /// The number of further differences, which are not listed.
    pub omitted: u64,
    /// The number of live messages that equal the recorded ones, disregarding ids and ignored values.
    pub match_count: u64,
}

impl ReplayReport {
    fn add(&mut self, difference: Difference) {
        if self.differences.len() < MAX_DIFFERENCES {
            self.differences.push(difference);
        } else {
            self.omitted += 1;
        }
    }
}

/// A message from the trace, as a step in the replay.
#[derive(Debug)]
struct ReplayStep {
    line: u64,
    time_us: u64,
    from: Side,
    /// Whether the user sent the message by hand. The peer is not expected to send it.
    is_by_hand: bool,
    /// The line to send, without its line end.
    bytes: Vec<u8>,
    /// The message, or `None` if the line is not a message.
    message: Option<Value>,
}

/// The key by which recorded and live messages are matched.
#[derive(Debug, Clone, PartialEq)]
enum MessageKey {
    Request(String),
    /// A notification: its method, and for a `session/update` the type of update.
    Notification(String, String),
    /// A response: the id of its request.
    Response(Value),
}

impl MessageKey {
    fn from_message(message: &Value) -> Option<Self> {
        let id = message.get("id");
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return id.cloned().map(Self::Response);
        };
        if id.is_some() {
            return Some(Self::Request(method.to_owned()));
        }
        let update = message.pointer("/params/update/sessionUpdate");
        let update = update.and_then(Value::as_str).unwrap_or_default();
        Some(Self::Notification(method.to_owned(), update.to_owned()))
    }
}

fn session_id(message: &Value) -> Option<&str> {
    message.pointer("/params/sessionId")?.as_str()
}

/// A trace that has been loaded for replay.
#[derive(Debug)]
pub struct TraceReplay {
    steps: Vec<ReplayStep>,
}

impl TraceReplay {
    /// Loads all messages of a trace. Lines that are not records are skipped.
    ///
    /// # Errors
    /// The trace could not be read, is empty, or is too large.
    pub fn load<R: BufRead>(reader: TraceReader<R>) -> Result<Self, LoadError> {
        let mut steps = Vec::new();
        let mut kept = 0;
        for record in reader {
            let record = match record {
                Ok(record) => record,
                Err(e) if e.is_line_error() => continue,
                Err(e) => return Err(e.into()),
            };
            let (from, bytes, is_by_hand) = match record.body {
                RecordBody::Message {
                    from,
                    message,
                    is_by_hand,
                    ..
                } => (from, message.get().as_bytes().to_vec(), is_by_hand),
                RecordBody::Noise { from, bytes, .. } => (from, bytes, false),
                _ => continue,
            };
            kept += bytes.len();
            if kept > MAX_MESSAGE_BYTES {
                return Err(LoadError::TooLarge);
            }
            steps.push(ReplayStep {
                line: record.line,
                time_us: record.time_us,
                from,
                is_by_hand,
                message: serde_json::from_slice(&bytes).ok(),
                bytes,
            });
        }
        if steps.iter().all(|step| step.message.is_none()) {
            return Err(LoadError::Empty);
        }
        Ok(Self { steps })
    }

    /// Plays one side of the trace to the peer at the other end of `transport`.
    ///
    /// # Errors
    /// Reading or writing failed. It is not an error if the peer closes the connection. Messages that it did not send
    /// are reported as missing.
    pub async fn run(
        &self,
        transport: Transport,
        settings: &ReplaySettings,
    ) -> io::Result<ReplayReport> {
        let mut player = ReplayPlayer {
            steps: &self.steps,
            settings,
            step_index: 0,
            live: LiveSide::new(transport),
            unmatched: VecDeque::new(),
            ids: LiveIds::default(),
            live_request_ids: HashMap::new(),
            sent_methods: HashMap::new(),
            report: ReplayReport::default(),
        };
        let mut before = 0;
        for (at, step) in self.steps.iter().enumerate() {
            player.step_index = at;
            if step.from == settings.side {
                if settings.pace {
                    let pause = Duration::from_micros(step.time_us.saturating_sub(before));
                    tokio::time::sleep(pause).await;
                }
                player.send_step(step).await?;
            } else if let Some(expected) = step.message.as_ref().filter(|_| !step.is_by_hand) {
                player.wait_for_step(step, expected).await?;
            }
            before = step.time_us;
        }
        player.step_index = self.steps.len();
        player.finish().await?;
        Ok(player.report)
    }
}

struct ReplayPlayer<'a> {
    steps: &'a [ReplayStep],
    settings: &'a ReplaySettings,
    /// The index of the step that is being played.
    step_index: usize,
    live: LiveSide,
    /// Live messages that have not been matched yet.
    unmatched: VecDeque<Value>,
    ids: LiveIds,
    /// The live id of each request from the live side, keyed by the request's recorded id as JSON.
    live_request_ids: HashMap<String, Value>,
    /// The method of each request from the played side, keyed by the request's id as JSON.
    sent_methods: HashMap<String, String>,
    report: ReplayReport,
}

impl ReplayPlayer<'_> {
    /// Sends a recorded message from the played side.
    async fn send_step(&mut self, step: &ReplayStep) -> io::Result<()> {
        let mut line = step.bytes.clone();
        if let Some(message) = &step.message {
            let mut said = message.clone();
            let mut changed = self.ids.replace(&mut said);
            match MessageKey::from_message(message) {
                Some(MessageKey::Response(id)) => {
                    // Skip the response to a request that the live side did not send.
                    let Some(live) = self.live_request_ids.remove(&id.to_string()) else {
                        return Ok(());
                    };
                    changed |= live != id;
                    if let Some(place) = said.get_mut("id") {
                        *place = live;
                    }
                }
                Some(MessageKey::Request(method)) => {
                    let id = message.get("id").map(Value::to_string);
                    self.sent_methods.insert(id.unwrap_or_default(), method);
                }
                _ => {}
            }
            if changed {
                line = said.to_string().into_bytes();
            }
        }
        self.send(line).await
    }

    async fn send(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        line.push(b'\n');
        for message in self.live.send(&line).await? {
            self.queue_message(message);
        }
        Ok(())
    }

    /// Waits for a recorded message from the live side, unless the live side has clearly skipped it.
    async fn wait_for_step(&mut self, step: &ReplayStep, expected: &Value) -> io::Result<()> {
        let deadline = tokio::time::Instant::now() + self.settings.timeout;
        loop {
            let found = self
                .unmatched
                .iter()
                .position(|live| self.is_match(expected, live));
            if let Some(live) = found.and_then(|at| self.unmatched.remove(at)) {
                self.record_match(step, expected, &live);
                return Ok(());
            }
            let missing = self.was_skipped(expected)
                || match tokio::time::timeout_at(deadline, self.live.next()).await {
                    Ok(Some(message)) => {
                        self.handle_live_message(message?).await?;
                        false
                    }
                    Ok(None) | Err(_) => true,
                };
            if missing {
                let what = self.describe(expected);
                let line = step.line;
                self.report.add(Difference::Missing { line, what });
                return Ok(());
            }
        }
    }

    fn record_match(&mut self, step: &ReplayStep, expected: &Value, live: &Value) {
        if let (Some(MessageKey::Request(_)), Some(recorded), Some(id)) = (
            MessageKey::from_message(expected),
            expected.get("id"),
            live.get("id"),
        ) {
            self.live_request_ids
                .insert(recorded.to_string(), id.clone());
        }
        let changes = compare(expected, live, &mut self.ids, &self.settings.ignore);
        self.report.match_count += u64::from(changes.is_empty());
        let what = self.describe(expected);
        for change in changes {
            let (line, what) = (step.line, what.clone());
            self.report.add(Difference::Changed { line, what, change });
        }
    }

    /// Returns `true` if a live message matches a recorded message.
    fn is_match(&self, expected: &Value, live: &Value) -> bool {
        let sessions = match (session_id(expected), session_id(live)) {
            (Some(expected), Some(live)) => self.ids.may_match(expected, live),
            (expected, live) => expected == live,
        };
        sessions && MessageKey::from_message(expected) == MessageKey::from_message(live)
    }

    /// Returns `true` if a later message in the same session shows that the live side has skipped a recorded message.
    fn was_skipped(&self, expected: &Value) -> bool {
        let later = self.steps.get(self.step_index + 1..).unwrap_or_default();
        let mut later = later.iter().filter(|step| step.from != self.settings.side);
        self.unmatched.iter().any(|live| {
            let elsewhere = match (session_id(expected), session_id(live)) {
                (Some(expected), Some(live)) => !self.ids.may_match(expected, live),
                _ => false,
            };
            let waits = !matches!(
                MessageKey::from_message(live),
                Some(MessageKey::Notification(..))
            );
            waits
                && !elsewhere
                && later.any(|step| {
                    step.message
                        .as_ref()
                        .is_some_and(|m| self.is_match(m, live))
                })
        })
    }

    /// Handles a message from the live side. A request that is not in the trace gets a response so that the live side
    /// does not wait for one.
    async fn handle_live_message(&mut self, message: Value) -> io::Result<()> {
        let later = self.steps.get(self.step_index..).unwrap_or_default();
        let mut later = later.iter().filter(|step| step.from != self.settings.side);
        let known = later.any(|step| {
            step.message
                .as_ref()
                .is_some_and(|m| self.is_match(m, &message))
        });
        if known {
            self.queue_message(message);
            return Ok(());
        }
        let unanswered = match MessageKey::from_message(&message) {
            Some(MessageKey::Request(_)) => message.get("id").cloned(),
            _ => None,
        };
        self.report_extra(message);
        if let Some(id) = unanswered {
            let error =
                json!({"code": -32603, "message": "This request is not in the replayed trace"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            self.send(answer.to_string().into_bytes()).await?;
        }
        Ok(())
    }

    fn queue_message(&mut self, message: Value) {
        if self.unmatched.len() >= MAX_UNMATCHED_MESSAGES
            && let Some(oldest) = self.unmatched.pop_front()
        {
            self.report_extra(oldest);
        }
        self.unmatched.push_back(message);
    }

    fn report_extra(&mut self, message: Value) {
        let what = self.describe(&message);
        self.report.add(Difference::Extra { what, message });
    }

    fn describe(&self, message: &Value) -> String {
        match MessageKey::from_message(message) {
            Some(MessageKey::Request(method)) => method,
            Some(MessageKey::Notification(method, update)) if update.is_empty() => method,
            Some(MessageKey::Notification(_, update)) => update,
            Some(MessageKey::Response(id)) => match self.sent_methods.get(&id.to_string()) {
                Some(method) => format!("response to {method}"),
                None => format!("response to {id}"),
            },
            None => "not a message".to_owned(),
        }
    }

    /// Closes the output of the played side, and reads the remaining messages of the live side.
    async fn finish(&mut self) -> io::Result<()> {
        if self.settings.side == Side::Client {
            self.live.close();
        }
        let deadline = tokio::time::Instant::now() + self.settings.timeout;
        for message in std::mem::take(&mut self.unmatched) {
            self.handle_live_message(message).await?;
        }
        while let Ok(Some(message)) = tokio::time::timeout_at(deadline, self.live.next()).await {
            self.handle_live_message(message?).await?;
        }
        Ok(())
    }
}
