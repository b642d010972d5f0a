//! Linting a trace: each message judged by its shape, and the conversation by its rules.

use std::collections::VecDeque;

use serde_json::Value;

use acp_rules::schema::{Direction, Fault, FaultKind, Schema, Version};
use acp_rules::{Finding, Moment, Rules};
use acp_rules::{Level, Side};

use super::format::{Event, Record, What};
use super::show::{Entry, Show};
use acp_rules::REDACTED;

/// How many messages are remembered, for what turns out to be wrong with them later.
const REMEMBERED: usize = 16 * 1024;

/// What is wrong with a message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Problem {
    /// The line of the trace.
    pub line: u64,
    /// The line of an earlier message that it is at odds with.
    pub earlier: Option<u64>,
    /// Who is wrong.
    pub side: Side,
    /// How binding the rule is.
    pub level: Level,
    /// The name of the rule; `schema` of a wrong shape, `no-message` of what is none.
    pub rule: &'static str,
    /// The page of the specification.
    pub section: &'static str,
    /// What is wrong, in a sentence that begins with who is.
    pub text: String,
    /// The message, as far as it is remembered.
    pub message: Option<About>,
}

/// A message, in short.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct About {
    line: u64,
    /// What it is called: the update, or the method.
    pub name: String,
    /// The method; of an answer, that of the request.
    pub method: String,
    /// Of a `session/update`, which it is.
    pub update: Option<String>,
    /// The session that it belongs to.
    pub session: Option<String>,
    /// What matters of it.
    pub summary: String,
}

/// How much of a summary is kept, in characters.
const SUMMARY: usize = 120;

impl About {
    fn of(entry: &Entry) -> Self {
        let mut summary: String = entry.summary.chars().take(SUMMARY).collect();
        if summary.len() < entry.summary.len() {
            summary.push('…');
        }
        Self {
            line: entry.line,
            name: entry.name().to_owned(),
            method: entry.method.clone(),
            update: entry.update.clone(),
            session: entry.session.clone(),
            summary,
        }
    }
}

/// Says what is wrong with the records of a trace, which are to come in their order.
#[derive(Debug, Default)]
pub struct Lint {
    rules: Rules,
    show: Show,
    last: Moment,
    messages: u64,
    remembered: VecDeque<About>,
}

impl Lint {
    /// One that has seen no records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many messages there were.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// What is wrong with a record, or with earlier ones because of it.
    pub fn record(&mut self, record: Record) -> Vec<Problem> {
        let moment = Moment {
            index: record.line,
            at: record.at,
        };
        self.last = moment;
        match &record.what {
            What::Message {
                from,
                redacted,
                message,
                ..
            } => {
                let (from, redacted) = (*from, *redacted > 0);
                let Ok(value) = serde_json::from_str::<Value>(message.get()) else {
                    return Vec::new();
                };
                self.messages += 1;
                self.remember(record);
                self.message(moment, from, &value, redacted)
            }
            What::Noise { from, .. } => {
                let (side, line) = (*from, record.line);
                self.remember(record);
                vec![Problem {
                    line,
                    earlier: None,
                    side,
                    level: Level::Must,
                    rule: "no-message",
                    section: "transports",
                    text: format!("the {} sends a line that is no message", side.name()),
                    message: self.about(line),
                }]
            }
            What::Cut { from, .. } => {
                self.rules.missed(direction(*from));
                Vec::new()
            }
            What::Event(event) => {
                let found = match event {
                    Event::ClientClosed | Event::ClientStoppedReading => {
                        self.rules.closed(moment, Direction::ToAgent)
                    }
                    Event::AgentClosed | Event::AgentStoppedReading => {
                        self.rules.closed(moment, Direction::ToClient)
                    }
                    Event::Failed { .. } | Event::Interrupted { .. } | Event::Killed => {
                        self.rules.broken_off();
                        Vec::new()
                    }
                    _ => Vec::new(),
                };
                self.problems(found)
            }
            _ => Vec::new(),
        }
    }

    /// A line of the trace could not be read: something may have been said that is not known.
    pub fn unreadable(&mut self) {
        self.rules.missed(Direction::ToAgent);
        self.rules.missed(Direction::ToClient);
    }

    /// What is wrong now that there are no more records.
    pub fn end(&mut self) -> Vec<Problem> {
        let found = self.rules.end(self.last);
        self.problems(found)
    }

    fn message(
        &mut self,
        moment: Moment,
        from: Side,
        value: &Value,
        redacted: bool,
    ) -> Vec<Problem> {
        let direction = direction(from);
        let asked = self.rules.asked(direction, value).map(str::to_owned);
        let found = self.rules.message(moment, direction, value);
        let faults = self.faults(direction, value, asked.as_deref());
        let shapes = faults
            .into_iter()
            .filter(|fault| !(redacted && is_of_redaction(fault)));
        let mut problems: Vec<Problem> = shapes
            .map(|fault| Problem {
                line: moment.index,
                earlier: None,
                side: from,
                level: Level::Must,
                rule: "schema",
                section: "schema",
                text: fault.to_string(),
                message: self.about(moment.index),
            })
            .collect();
        problems.extend(self.problems(found));
        problems
    }

    fn faults(&self, direction: Direction, value: &Value, asked: Option<&str>) -> Vec<Fault> {
        // Initialization is judged by the version that it is about.
        let version = match asked {
            Some("initialize") => value.pointer("/result/protocolVersion"),
            _ if value["method"] == "initialize" => value.pointer("/params/protocolVersion"),
            _ => return Schema::of(self.rules.version()).judge_message(direction, value, asked),
        };
        match version.and_then(Value::as_u64) {
            Some(2..) if asked.is_none() => {
                let faults = Schema::of(Version::V2).judge_message(direction, value, asked);
                // Who speaks both versions may say what is asked in either.
                let of_v1 = |fault: &Fault| {
                    fault.kind == FaultKind::UnknownField && fault.path.starts_with("params.client")
                };
                faults.into_iter().filter(|fault| !of_v1(fault)).collect()
            }
            Some(2) => Schema::of(Version::V2).judge_message(direction, value, asked),
            // What is in a version that is not known here is not known either.
            Some(3..) => Vec::new(),
            _ => Schema::of(Version::V1).judge_message(direction, value, asked),
        }
    }

    fn problems(&self, found: Vec<Finding>) -> Vec<Problem> {
        let problem = |finding: Finding| Problem {
            line: finding.message.index,
            earlier: finding.earlier.map(|earlier| earlier.index),
            side: finding.side,
            level: finding.rule.level,
            rule: finding.rule.name,
            section: finding.rule.section,
            text: format!("the {} {}", finding.side, finding.text),
            message: self.about(finding.message.index),
        };
        found.into_iter().map(problem).collect()
    }

    fn remember(&mut self, record: Record) {
        if let Some(entry) = self.show.record(record) {
            if self.remembered.len() >= REMEMBERED {
                self.remembered.pop_front();
            }
            self.remembered.push_back(About::of(&entry));
        }
    }

    fn about(&self, line: u64) -> Option<About> {
        let at = self
            .remembered
            .binary_search_by_key(&line, |about| about.line);
        self.remembered.get(at.ok()?).cloned()
    }
}

/// The direction in which a side sends.
fn direction(from: Side) -> Direction {
    match from {
        Side::Client => Direction::ToAgent,
        Side::Agent => Direction::ToClient,
    }
}

/// Whether a value has not its form because something was taken out of it.
fn is_of_redaction(fault: &Fault) -> bool {
    match &fault.kind {
        FaultKind::Type { found, .. }
        | FaultKind::Value { found, .. }
        | FaultKind::RelativePath { found }
        | FaultKind::Form { found, .. } => found.contains(REDACTED),
        _ => false,
    }
}
