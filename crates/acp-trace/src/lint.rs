//! Checks each message of a trace against the schema, and the conversation against the protocol rules.

use std::collections::VecDeque;

use serde_json::Value;

use acp_rules::schema::{Direction, Schema, SchemaFault, SchemaFaultKind, SchemaVersion};
use acp_rules::{Finding, MessagePosition, RuleChecker};
use acp_rules::{RequirementLevel, Side};

use super::entry::{EntryBuilder, TraceEntry};
use super::format::{RecordBody, TraceEvent, TraceRecord};
use acp_rules::REDACTED;

/// The maximum number of messages to keep so that findings can refer to earlier ones.
const MAX_REMEMBERED_MESSAGES: usize = 16 * 1024;

/// A violation of the specification in a trace.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LintFinding {
    /// The number of the trace line that the finding is about.
    pub line: u64,
    /// The line number of an earlier message that this message contradicts.
    pub earlier: Option<u64>,
    /// The side that violates the specification.
    pub side: Side,
    /// Whether the rule is a MUST or a SHOULD.
    pub level: RequirementLevel,
    /// The name of the rule. It is `schema` if a message does not match its schema, and `no-message` if a line is not a
    /// message.
    pub rule: &'static str,
    /// The page of the specification that contains the requirement, as in its URL.
    pub section: &'static str,
    /// The problem, as a sentence that starts with the side.
    pub text: String,
    /// A summary of the message. `None` if the message is no longer remembered.
    pub message: Option<MessageSummary>,
}

/// A summary of a message that a finding is about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessageSummary {
    line: u64,
    /// The name to display: the type of update, or the method.
    pub name: String,
    /// The method of the message. For a response, the method of its request.
    pub method: String,
    /// The type of update, if the message is a `session/update`.
    pub update: Option<String>,
    /// The id of the session that the message belongs to.
    pub session: Option<String>,
    /// A short description of the message's content.
    pub summary: String,
}

/// The maximum length of a message's summary, in characters.
const MAX_SUMMARY_LEN: usize = 120;

impl MessageSummary {
    fn from_entry(entry: &TraceEntry) -> Self {
        let mut summary: String = entry.summary.chars().take(MAX_SUMMARY_LEN).collect();
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

/// A linter for the records of a trace. Records must be passed in order.
#[derive(Debug, Default)]
pub struct TraceLinter {
    rules: RuleChecker,
    entry_builder: EntryBuilder,
    last_position: MessagePosition,
    message_count: u64,
    recent_messages: VecDeque<MessageSummary>,
}

impl TraceLinter {
    /// Creates a linter for a trace that is read from its start.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of messages that have been checked so far.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.message_count
    }

    /// Checks a record. Returns findings about it, and about earlier records that it proves wrong.
    pub fn check_record(&mut self, record: TraceRecord) -> Vec<LintFinding> {
        let moment = MessagePosition {
            index: record.line,
            time_us: record.time_us,
        };
        self.last_position = moment;
        match &record.body {
            RecordBody::Message {
                from,
                redacted,
                message,
                ..
            } => {
                let (from, redacted) = (*from, *redacted > 0);
                let Ok(value) = serde_json::from_str::<Value>(message.get()) else {
                    return Vec::new();
                };
                self.message_count += 1;
                self.remember(record);
                self.check_message(moment, from, &value, redacted)
            }
            RecordBody::Noise { from, .. } => {
                let (side, line) = (*from, record.line);
                self.remember(record);
                vec![LintFinding {
                    line,
                    earlier: None,
                    side,
                    level: RequirementLevel::Must,
                    rule: "no-message",
                    section: "transports",
                    text: format!("the {} sent a line that is not a message", side.name()),
                    message: self.find_message(line),
                }]
            }
            RecordBody::Oversized { from, .. } => {
                self.rules.record_missed_message(message_direction(*from));
                Vec::new()
            }
            RecordBody::Event(event) => {
                let found = match event {
                    TraceEvent::ClientClosed | TraceEvent::ClientStoppedReading => {
                        self.rules.close_side(moment, Direction::ToAgent)
                    }
                    TraceEvent::AgentClosed | TraceEvent::AgentStoppedReading => {
                        self.rules.close_side(moment, Direction::ToClient)
                    }
                    TraceEvent::Failed { .. }
                    | TraceEvent::Interrupted { .. }
                    | TraceEvent::Killed => {
                        self.rules.interrupt();
                        Vec::new()
                    }
                    _ => Vec::new(),
                };
                self.to_lint_findings(found)
            }
            _ => Vec::new(),
        }
    }

    /// Records that a line of the trace could not be read. It may have been any message.
    pub fn skip_line(&mut self) {
        self.rules.record_missed_message(Direction::ToAgent);
        self.rules.record_missed_message(Direction::ToClient);
    }

    /// Ends the trace, and returns the findings that only its end reveals.
    pub fn end(&mut self) -> Vec<LintFinding> {
        let found = self.rules.end(self.last_position);
        self.to_lint_findings(found)
    }

    fn check_message(
        &mut self,
        moment: MessagePosition,
        from: Side,
        value: &Value,
        redacted: bool,
    ) -> Vec<LintFinding> {
        let direction = message_direction(from);
        let asked = self
            .rules
            .request_method(direction, value)
            .map(str::to_owned);
        let found = self.rules.check_message(moment, direction, value);
        let faults = self.check_schema(direction, value, asked.as_deref());
        let shapes = faults
            .into_iter()
            .filter(|fault| !(redacted && is_from_redaction(fault)));
        let mut problems: Vec<LintFinding> = shapes
            .map(|fault| LintFinding {
                line: moment.index,
                earlier: None,
                side: from,
                level: RequirementLevel::Must,
                rule: "schema",
                section: "schema",
                text: fault.to_string(),
                message: self.find_message(moment.index),
            })
            .collect();
        problems.extend(self.to_lint_findings(found));
        problems
    }

    fn check_schema(
        &self,
        direction: Direction,
        value: &Value,
        asked: Option<&str>,
    ) -> Vec<SchemaFault> {
        // `initialize` is checked against the version that it requests or selects.
        let version = match asked {
            Some("initialize") => value.pointer("/result/protocolVersion"),
            _ if value["method"] == "initialize" => value.pointer("/params/protocolVersion"),
            _ => {
                return Schema::for_version(self.rules.version())
                    .check_message(direction, value, asked);
            }
        };
        match version.and_then(Value::as_u64) {
            Some(2..) if asked.is_none() => {
                let faults =
                    Schema::for_version(SchemaVersion::V2).check_message(direction, value, asked);
                // A client that supports both versions may send the fields of both.
                let of_v1 = |fault: &SchemaFault| {
                    fault.kind == SchemaFaultKind::UnknownField
                        && fault.path.starts_with("params.client")
                };
                faults.into_iter().filter(|fault| !of_v1(fault)).collect()
            }
            Some(2) => {
                Schema::for_version(SchemaVersion::V2).check_message(direction, value, asked)
            }
            // Nothing is known about later versions.
            Some(3..) => Vec::new(),
            _ => Schema::for_version(SchemaVersion::V1).check_message(direction, value, asked),
        }
    }

    fn to_lint_findings(&self, found: Vec<Finding>) -> Vec<LintFinding> {
        let problem = |finding: Finding| LintFinding {
            line: finding.message.index,
            earlier: finding.earlier.map(|earlier| earlier.index),
            side: finding.side,
            level: finding.rule.level,
            rule: finding.rule.name,
            section: finding.rule.section,
            text: format!("the {} {}", finding.side, finding.text),
            message: self.find_message(finding.message.index),
        };
        found.into_iter().map(problem).collect()
    }

    fn remember(&mut self, record: TraceRecord) {
        if let Some(entry) = self.entry_builder.build_entry(record) {
            if self.recent_messages.len() >= MAX_REMEMBERED_MESSAGES {
                self.recent_messages.pop_front();
            }
            self.recent_messages
                .push_back(MessageSummary::from_entry(&entry));
        }
    }

    fn find_message(&self, line: u64) -> Option<MessageSummary> {
        let at = self
            .recent_messages
            .binary_search_by_key(&line, |about| about.line);
        self.recent_messages.get(at.ok()?).cloned()
    }
}

/// Returns the direction of the messages that a side sends.
fn message_direction(from: Side) -> Direction {
    match from {
        Side::Client => Direction::ToAgent,
        Side::Agent => Direction::ToClient,
    }
}

/// Returns `true` if a value has the wrong format only because part of it was redacted.
fn is_from_redaction(fault: &SchemaFault) -> bool {
    match &fault.kind {
        SchemaFaultKind::Type { found, .. }
        | SchemaFaultKind::Value { found, .. }
        | SchemaFaultKind::RelativePath { found }
        | SchemaFaultKind::Format { found, .. } => found.contains(REDACTED),
        _ => false,
    }
}
