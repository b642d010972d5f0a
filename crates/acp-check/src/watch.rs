//! Applies the protocol rules to the messages of a check.

use serde_json::Value;

use acp_rules::schema::{Direction, Schema, SchemaVersion};
use acp_rules::{Finding, MessagePosition, RuleChecker};
use acp_rules::{RequirementLevel, Side};

/// The maximum number of findings to store. A single one is enough to fail a check.
const MAX_FINDINGS: usize = 8;

/// The maximum length of a line from the suite, in bytes. After a longer line, no more findings are reported.
const MAX_LINE_BYTES: usize = 1024 * 1024;

/// Applies the protocol rules to the messages of both sides, until the suite itself breaks a rule.
///
/// A check may break rules on purpose, and then judges the other side's reaction itself. From then on, nothing is
/// reported. All messages have the same time, because a check reads whenever it needs to. Rules that depend on the time
/// of arrival therefore report nothing.
pub(super) struct RuleWatch {
    rules: RuleChecker,
    schema: &'static Schema,
    sends: Direction,
    /// The start of a line that the suite has not finished yet.
    line: Vec<u8>,
    /// Whether reporting has stopped, because a message was missed or the suite broke a rule.
    is_disabled: bool,
    messages: u64,
    broken_rules: RuleViolations,
}

/// The violations of mandatory rules found in checks.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleViolations {
    /// The number of messages checked against the rules.
    pub(super) message_count: usize,
    /// The findings, each with the message that violates the rule.
    pub(super) rules: Vec<(Finding, String)>,
}

impl RuleWatch {
    pub(super) fn new(version: SchemaVersion, sends: Direction) -> Self {
        Self {
            rules: RuleChecker::new(),
            schema: Schema::for_version(version),
            sends,
            line: Vec::new(),
            is_disabled: false,
            messages: 0,
            broken_rules: RuleViolations::default(),
        }
    }

    /// Records bytes sent by the suite. They may be part of a line.
    pub(super) fn record_sent(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_disabled || self.line.len() + part.len() > MAX_LINE_BYTES {
                self.record_dropped_message();
                return;
            }
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                match serde_json::from_slice::<Value>(&line) {
                    Ok(value) => self.observe_sent(&value),
                    Err(_) => self.record_dropped_message(),
                }
            }
        }
    }

    fn observe_sent(&mut self, value: &Value) {
        let asked = self
            .rules
            .request_method(self.sends, value)
            .map(str::to_owned);
        let faults = (self.schema).check_message(self.sends, value, asked.as_deref());
        self.is_disabled |= !faults.is_empty();
        self.observe_message(self.sends, value);
    }

    /// Records a message from the other side.
    pub(super) fn record_received(&mut self, value: &Value) {
        self.broken_rules.message_count += usize::from(!self.is_disabled);
        self.observe_message(self.sends.reversed(), value);
    }

    /// Records that a message was missed. No more findings are reported after that.
    pub(super) fn record_dropped_message(&mut self) {
        self.is_disabled = true;
        self.line = Vec::new();
    }

    /// Records that the side sending in this direction has closed its output.
    pub(super) fn record_closed(&mut self, direction: Direction) {
        if !self.is_disabled {
            let found = self.rules.close_side(self.position(), direction);
            self.record_findings(found, "end of connection");
        }
    }

    fn position(&self) -> MessagePosition {
        MessagePosition {
            index: self.messages,
            time_us: 0,
        }
    }

    fn observe_message(&mut self, direction: Direction, value: &Value) {
        if self.is_disabled {
            return;
        }
        self.messages += 1;
        let found = self.rules.check_message(self.position(), direction, value);
        if !found.is_empty() {
            self.record_findings(found, &value.to_string());
        }
    }

    fn record_findings(&mut self, found: Vec<Finding>, text: &str) {
        let own = match self.sends {
            Direction::ToAgent => Side::Client,
            Direction::ToClient => Side::Agent,
        };
        for finding in found {
            if finding.side == own {
                self.is_disabled = true;
            } else if finding.rule.level == RequirementLevel::Must
                && self.broken_rules.rules.len() < MAX_FINDINGS
            {
                self.broken_rules.rules.push((finding, text.to_owned()));
            }
        }
    }

    /// Tells the rules how the connection began, without judging it again.
    pub(super) fn replay(&mut self, sent: &[u8], received: &Value) {
        self.record_sent(sent);
        self.record_sent(b"\n");
        self.record_received(received);
        self.broken_rules = RuleViolations::default();
    }

    /// Returns the findings so far, and forgets them.
    pub(super) fn take_violations(&mut self) -> RuleViolations {
        std::mem::take(&mut self.broken_rules)
    }
}

impl RuleViolations {
    /// Adds the findings from another check, whose id is `of`.
    pub(super) fn merge(&mut self, of: &str, other: Self) {
        self.message_count += other.message_count;
        for (finding, text) in other.rules {
            if self.rules.len() < MAX_FINDINGS {
                self.rules.push((finding, format!("in {of}: {text}")));
            }
        }
    }
}
