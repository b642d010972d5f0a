//! Playing one side of a trace again, for a live other side, and telling what that does differently.
//!
//! What the played side said is said again once the live side has said what it had said before; so it is as fast as
//! the live side. Requests keep the ids that they had in the trace; ids that the live side gives (of requests,
//! sessions, terminals and the like) are remembered and used in place of the recorded ones. What the live side sends
//! is matched to what was recorded by what it is (an answer to which request, a request or notification of which
//! method in which session), and then compared member by member.

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

/// How much is kept of a trace, in bytes of its messages.
const MESSAGES: usize = 256 * 1024 * 1024;

/// How many messages of the live side's may wait to be matched.
const UNMATCHED: usize = 16 * 1024;

/// How many differences are kept; the rest is counted.
const DIFFERENCES: usize = 1000;

/// How to play.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReplaySettings {
    /// Which side is played.
    pub side: Side,
    /// Whether to wait before each message as long as there was between it and the one before.
    pub pace: bool,
    /// How long the live side may take for a message.
    pub patience: Duration,
    /// What is not compared.
    pub ignore: Vec<IgnoredPath>,
}

impl ReplaySettings {
    /// Plays this side, as fast as the other one is, which may take ten seconds for each message.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self {
            side,
            pace: false,
            patience: Duration::from_secs(10),
            ignore: Vec::new(),
        }
    }
}

/// Why a trace cannot be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] TraceReadError),
    /// Its messages are too many to be kept.
    #[error("too large: more than {} MiB of messages", MESSAGES / 1024 / 1024)]
    TooLarge,
    /// There is no message in it.
    #[error("contains no messages")]
    Empty,
}

/// Something that the live side did differently.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Difference {
    /// It did not send what was recorded in this line of the trace.
    Missing {
        /// The line of the trace.
        line: u64,
        /// What it is.
        what: String,
    },
    /// It sent what is not in the trace.
    Extra {
        /// What it is.
        what: String,
        /// The message.
        message: Value,
    },
    /// It sent what was recorded in this line of the trace with other contents.
    Changed {
        /// The line of the trace.
        line: u64,
        /// What it is.
        what: String,
        /// What differs.
        change: ValueChange,
    },
}

/// What came of it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReplayReport {
    /// What was different, the first thousand of it.
    pub differences: Vec<Difference>,
    /// How many more there were.
    pub omitted: u64,
    /// How many messages of the live side's were as recorded, or differed only in what is not compared.
    pub match_count: u64,
}

impl ReplayReport {
    fn add(&mut self, difference: Difference) {
        if self.differences.len() < DIFFERENCES {
            self.differences.push(difference);
        } else {
            self.omitted += 1;
        }
    }
}

/// A message of the trace.
#[derive(Debug)]
struct ReplayStep {
    line: u64,
    time_us: u64,
    from: Side,
    /// As it is sent, without its line end.
    bytes: Vec<u8>,
    /// Nothing of a line that is no message.
    message: Option<Value>,
}

/// What a message is, by which it is found again.
#[derive(Debug, Clone, PartialEq)]
enum MessageKey {
    Request(String),
    /// The method, and which update of a session it is.
    Notification(String, String),
    /// To the request with this id.
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

/// A trace that is to be played.
#[derive(Debug)]
pub struct TraceReplay {
    steps: Vec<ReplayStep>,
}

impl TraceReplay {
    /// Reads a trace to its end. Lines that are no records are passed over.
    ///
    /// # Errors
    /// It cannot be read, is empty, or too large to be kept.
    pub fn load<R: BufRead>(reader: TraceReader<R>) -> Result<Self, LoadError> {
        let mut steps = Vec::new();
        let mut kept = 0;
        for record in reader {
            let record = match record {
                Ok(record) => record,
                Err(e) if e.is_line_error() => continue,
                Err(e) => return Err(e.into()),
            };
            let (from, bytes) = match record.body {
                RecordBody::Message { from, message, .. } => {
                    (from, message.get().as_bytes().to_vec())
                }
                RecordBody::Noise { from, bytes, .. } => (from, bytes),
                _ => continue,
            };
            kept += bytes.len();
            if kept > MESSAGES {
                return Err(LoadError::TooLarge);
            }
            steps.push(ReplayStep {
                line: record.line,
                time_us: record.time_us,
                from,
                message: serde_json::from_slice(&bytes).ok(),
                bytes,
            });
        }
        if steps.iter().all(|step| step.message.is_none()) {
            return Err(LoadError::Empty);
        }
        Ok(Self { steps })
    }

    /// Plays one side to what is at the other end of `transport`.
    ///
    /// # Errors
    /// It cannot be read from or written to. A side that has ended is no error: what it did not send is missing.
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
            } else if let Some(expected) = &step.message {
                player.expect_step(step, expected).await?;
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
    /// The step that is played.
    step_index: usize,
    live: LiveSide,
    /// What the live side has sent and was not looked for yet.
    unmatched: VecDeque<Value>,
    ids: LiveIds,
    /// The ids of the live side's requests, by those of the recorded ones as JSON.
    live_request_ids: HashMap<String, Value>,
    /// The methods of the played side's requests, by their ids as JSON.
    sent_methods: HashMap<String, String>,
    report: ReplayReport,
}

impl ReplayPlayer<'_> {
    /// Says what was recorded of the played side.
    async fn send_step(&mut self, step: &ReplayStep) -> io::Result<()> {
        let mut line = step.bytes.clone();
        if let Some(message) = &step.message {
            let mut said = message.clone();
            let mut changed = self.ids.replace(&mut said);
            match MessageKey::from_message(message) {
                Some(MessageKey::Response(id)) => {
                    // Nobody waits for the answer to what was not asked.
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

    /// Waits for what was recorded of the live side, unless it is seen to be somewhere else already.
    async fn expect_step(&mut self, step: &ReplayStep, expected: &Value) -> io::Result<()> {
        let deadline = tokio::time::Instant::now() + self.settings.patience;
        loop {
            let found = self
                .unmatched
                .iter()
                .position(|live| self.is_match(expected, live));
            if let Some(live) = found.and_then(|at| self.unmatched.remove(at)) {
                self.record_match(step, expected, &live);
                return Ok(());
            }
            let missing = self.is_beyond(expected)
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

    /// Whether a live message is the one that was recorded.
    fn is_match(&self, expected: &Value, live: &Value) -> bool {
        let sessions = match (session_id(expected), session_id(live)) {
            (Some(expected), Some(live)) => self.ids.may_match(expected, live),
            (expected, live) => expected == live,
        };
        sessions && MessageKey::from_message(expected) == MessageKey::from_message(live)
    }

    /// Whether the live side has gone on to what comes after this, in the same session.
    fn is_beyond(&self, expected: &Value) -> bool {
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

    /// Takes in what the live side has sent; what was never recorded is answered, or it would be waited for.
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
            let error = json!({"code": -32603, "message": "Not in the replayed trace"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            self.send(answer.to_string().into_bytes()).await?;
        }
        Ok(())
    }

    fn queue_message(&mut self, message: Value) {
        if self.unmatched.len() >= UNMATCHED
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

    /// Says no more, and hears what the live side still has to say.
    async fn finish(&mut self) -> io::Result<()> {
        if self.settings.side == Side::Client {
            self.live.close();
        }
        let deadline = tokio::time::Instant::now() + self.settings.patience;
        for message in std::mem::take(&mut self.unmatched) {
            self.handle_live_message(message).await?;
        }
        while let Ok(Some(message)) = tokio::time::timeout_at(deadline, self.live.next()).await {
            self.handle_live_message(message?).await?;
        }
        Ok(())
    }
}
