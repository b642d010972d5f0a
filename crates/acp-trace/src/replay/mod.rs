//! Playing one side of a trace again, for a live other side, and telling what that does differently.
//!
//! What the played side said is said again once the live side has said what it had said before; so it is as fast as
//! the live side. Requests keep the ids that they had in the trace; ids that the live side gives (of requests,
//! sessions, terminals and the like) are remembered and used in place of the recorded ones. What the live side sends
//! is matched to what was recorded by what it is (an answer to which request, a request or notification of which
//! method in which session), and then compared member by member.

mod compare;
mod live;

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead};
use std::time::Duration;

use acp::Transport;
use serde_json::{Value, json};

use super::format::What;
use super::read::{ReadError, Reader};
use acp_rules::Side;
pub use compare::{Change, Ignore};
use compare::{Ids, compare};
use live::Live;

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
    pub ignore: Vec<Ignore>,
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
    Read(#[from] ReadError),
    /// Its messages are too many to be kept.
    #[error("has more than {} MiB of messages", MESSAGES / 1024 / 1024)]
    TooLarge,
    /// There is no message in it.
    #[error("has no messages")]
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
        change: Change,
    },
}

/// What came of it.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// What was different, the first thousand of it.
    pub differences: Vec<Difference>,
    /// How many more there were.
    pub more: u64,
    /// How many messages of the live side's were as recorded, or differed only in what is not compared.
    pub matched: u64,
}

impl Report {
    fn add(&mut self, difference: Difference) {
        if self.differences.len() < DIFFERENCES {
            self.differences.push(difference);
        } else {
            self.more += 1;
        }
    }
}

/// A message of the trace.
#[derive(Debug)]
struct Step {
    line: u64,
    at: u64,
    from: Side,
    /// As it is sent, without its line end.
    bytes: Vec<u8>,
    /// Nothing of a line that is no message.
    message: Option<Value>,
}

/// What a message is, by which it is found again.
#[derive(Debug, Clone, PartialEq)]
enum Key {
    Request(String),
    /// The method, and which update of a session it is.
    Notification(String, String),
    /// To the request with this id.
    Answer(Value),
}

impl Key {
    fn of(message: &Value) -> Option<Self> {
        let id = message.get("id");
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return id.cloned().map(Self::Answer);
        };
        if id.is_some() {
            return Some(Self::Request(method.to_owned()));
        }
        let update = message.pointer("/params/update/sessionUpdate");
        let update = update.and_then(Value::as_str).unwrap_or_default();
        Some(Self::Notification(method.to_owned(), update.to_owned()))
    }
}

fn session(message: &Value) -> Option<&str> {
    message.pointer("/params/sessionId")?.as_str()
}

/// A trace that is to be played.
#[derive(Debug)]
pub struct Replay {
    steps: Vec<Step>,
}

impl Replay {
    /// Reads a trace to its end. Lines that are no records are passed over.
    ///
    /// # Errors
    /// It cannot be read, is empty, or too large to be kept.
    pub fn load<R: BufRead>(reader: Reader<R>) -> Result<Self, LoadError> {
        let mut steps = Vec::new();
        let mut kept = 0;
        for record in reader {
            let record = match record {
                Ok(record) => record,
                Err(e) if e.is_of_a_line() => continue,
                Err(e) => return Err(e.into()),
            };
            let (from, bytes) = match record.what {
                What::Message { from, message, .. } => (from, message.get().as_bytes().to_vec()),
                What::Noise { from, bytes, .. } => (from, bytes),
                _ => continue,
            };
            kept += bytes.len();
            if kept > MESSAGES {
                return Err(LoadError::TooLarge);
            }
            steps.push(Step {
                line: record.line,
                at: record.at,
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
    pub async fn run(&self, transport: Transport, settings: &ReplaySettings) -> io::Result<Report> {
        let mut player = Player {
            steps: &self.steps,
            settings,
            at: 0,
            live: Live::new(transport),
            unmatched: VecDeque::new(),
            ids: Ids::default(),
            requests: HashMap::new(),
            asked: HashMap::new(),
            report: Report::default(),
        };
        let mut before = 0;
        for (at, step) in self.steps.iter().enumerate() {
            player.at = at;
            if step.from == settings.side {
                if settings.pace {
                    let pause = Duration::from_micros(step.at.saturating_sub(before));
                    tokio::time::sleep(pause).await;
                }
                player.say(step).await?;
            } else if let Some(expected) = &step.message {
                player.expect(step, expected).await?;
            }
            before = step.at;
        }
        player.at = self.steps.len();
        player.end().await?;
        Ok(player.report)
    }
}

struct Player<'a> {
    steps: &'a [Step],
    settings: &'a ReplaySettings,
    /// The step that is played.
    at: usize,
    live: Live,
    /// What the live side has sent and was not looked for yet.
    unmatched: VecDeque<Value>,
    ids: Ids,
    /// The ids of the live side's requests, by those of the recorded ones as JSON.
    requests: HashMap<String, Value>,
    /// The methods of the played side's requests, by their ids as JSON.
    asked: HashMap<String, String>,
    report: Report,
}

impl Player<'_> {
    /// Says what was recorded of the played side.
    async fn say(&mut self, step: &Step) -> io::Result<()> {
        let mut line = step.bytes.clone();
        if let Some(message) = &step.message {
            let mut said = message.clone();
            let mut changed = self.ids.replace(&mut said);
            match Key::of(message) {
                Some(Key::Answer(id)) => {
                    // Nobody waits for the answer to what was not asked.
                    let Some(live) = self.requests.remove(&id.to_string()) else {
                        return Ok(());
                    };
                    changed |= live != id;
                    if let Some(place) = said.get_mut("id") {
                        *place = live;
                    }
                }
                Some(Key::Request(method)) => {
                    let id = message.get("id").map(Value::to_string);
                    self.asked.insert(id.unwrap_or_default(), method);
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
            self.arrived(message);
        }
        Ok(())
    }

    /// Waits for what was recorded of the live side, unless it is seen to be somewhere else already.
    async fn expect(&mut self, step: &Step, expected: &Value) -> io::Result<()> {
        let deadline = tokio::time::Instant::now() + self.settings.patience;
        loop {
            let found = self
                .unmatched
                .iter()
                .position(|live| self.is(expected, live));
            if let Some(live) = found.and_then(|at| self.unmatched.remove(at)) {
                self.matched(step, expected, &live);
                return Ok(());
            }
            let missing = self.is_beyond(expected)
                || match tokio::time::timeout_at(deadline, self.live.next()).await {
                    Ok(Some(message)) => {
                        self.take(message?).await?;
                        false
                    }
                    Ok(None) | Err(_) => true,
                };
            if missing {
                let what = self.what(expected);
                let line = step.line;
                self.report.add(Difference::Missing { line, what });
                return Ok(());
            }
        }
    }

    fn matched(&mut self, step: &Step, expected: &Value, live: &Value) {
        if let (Some(Key::Request(_)), Some(recorded), Some(id)) =
            (Key::of(expected), expected.get("id"), live.get("id"))
        {
            self.requests.insert(recorded.to_string(), id.clone());
        }
        let changes = compare(expected, live, &mut self.ids, &self.settings.ignore);
        self.report.matched += u64::from(changes.is_empty());
        let what = self.what(expected);
        for change in changes {
            let (line, what) = (step.line, what.clone());
            self.report.add(Difference::Changed { line, what, change });
        }
    }

    /// Whether a live message is the one that was recorded.
    fn is(&self, expected: &Value, live: &Value) -> bool {
        let sessions = match (session(expected), session(live)) {
            (Some(expected), Some(live)) => self.ids.may_be(expected, live),
            (expected, live) => expected == live,
        };
        sessions && Key::of(expected) == Key::of(live)
    }

    /// Whether the live side has gone on to what comes after this, in the same session.
    fn is_beyond(&self, expected: &Value) -> bool {
        let later = self.steps.get(self.at + 1..).unwrap_or_default();
        let mut later = later.iter().filter(|step| step.from != self.settings.side);
        self.unmatched.iter().any(|live| {
            let elsewhere = match (session(expected), session(live)) {
                (Some(expected), Some(live)) => !self.ids.may_be(expected, live),
                _ => false,
            };
            let waits = !matches!(Key::of(live), Some(Key::Notification(..)));
            waits
                && !elsewhere
                && later.any(|step| step.message.as_ref().is_some_and(|m| self.is(m, live)))
        })
    }

    /// Takes in what the live side has sent; what was never recorded is answered, or it would be waited for.
    async fn take(&mut self, message: Value) -> io::Result<()> {
        let later = self.steps.get(self.at..).unwrap_or_default();
        let mut later = later.iter().filter(|step| step.from != self.settings.side);
        let known = later.any(|step| step.message.as_ref().is_some_and(|m| self.is(m, &message)));
        if known {
            self.arrived(message);
            return Ok(());
        }
        let unanswered = match Key::of(&message) {
            Some(Key::Request(_)) => message.get("id").cloned(),
            _ => None,
        };
        self.extra(message);
        if let Some(id) = unanswered {
            let error =
                json!({"code": -32603, "message": "This is not in the trace that is replayed"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            self.send(answer.to_string().into_bytes()).await?;
        }
        Ok(())
    }

    fn arrived(&mut self, message: Value) {
        if self.unmatched.len() >= UNMATCHED
            && let Some(oldest) = self.unmatched.pop_front()
        {
            self.extra(oldest);
        }
        self.unmatched.push_back(message);
    }

    fn extra(&mut self, message: Value) {
        let what = self.what(&message);
        self.report.add(Difference::Extra { what, message });
    }

    fn what(&self, message: &Value) -> String {
        match Key::of(message) {
            Some(Key::Request(method)) => method,
            Some(Key::Notification(method, update)) if update.is_empty() => method,
            Some(Key::Notification(_, update)) => update,
            Some(Key::Answer(id)) => match self.asked.get(&id.to_string()) {
                Some(method) => format!("the answer to {method}"),
                None => format!("an answer to {id}"),
            },
            None => "no message".to_owned(),
        }
    }

    /// Says no more, and hears what the live side still has to say.
    async fn end(&mut self) -> io::Result<()> {
        if self.settings.side == Side::Client {
            self.live.close();
        }
        let deadline = tokio::time::Instant::now() + self.settings.patience;
        for message in std::mem::take(&mut self.unmatched) {
            self.take(message).await?;
        }
        while let Ok(Some(message)) = tokio::time::timeout_at(deadline, self.live.next()).await {
            self.take(message?).await?;
        }
        Ok(())
    }
}
