//! Watching a conversation for broken rules, while a check plays it.

use serde_json::Value;

use acp_rules::schema::{Direction, Schema, SchemaVersion};
use acp_rules::{Finding, MessagePosition, RuleChecker};
use acp_rules::{RequirementLevel, Side};

/// How many broken rules are kept. One is enough to fail a check.
const KEPT: usize = 8;

/// How long a line of the suite's own may be that is judged.
const LONGEST: usize = 1024 * 1024;

/// Tells the rules what either side says, as long as the suite itself keeps to them.
///
/// A check may be wrong on purpose, and what the other side does about it is its check's to judge: from there on nothing
/// is said. All is told as if it were said at the same moment, since a check reads when it wants to: rules that need to
/// know what has arrived when say nothing.
pub(super) struct RuleWatch {
    rules: RuleChecker,
    schema: &'static Schema,
    sends: Direction,
    /// The beginning of a line that the suite has not ended yet.
    line: Vec<u8>,
    /// Not everything that was said is known and right.
    spoilt: bool,
    messages: u64,
    broken_rules: BrokenRules,
}

/// What was broken of the rules that are binding.
#[derive(Debug, Clone, Default)]
pub(super) struct BrokenRules {
    /// How many messages were judged.
    pub(super) finding_count: usize,
    /// The rules, with the message by which it was seen.
    pub(super) rules: Vec<(Finding, String)>,
}

impl RuleWatch {
    pub(super) fn new(version: SchemaVersion, sends: Direction) -> Self {
        Self {
            rules: RuleChecker::new(),
            schema: Schema::of(version),
            sends,
            line: Vec::new(),
            spoilt: false,
            messages: 0,
            broken_rules: BrokenRules::default(),
        }
    }

    /// The suite sends bytes, which need not be a whole line.
    pub(super) fn sent(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.spoilt || self.line.len() + part.len() > LONGEST {
                self.lost();
                return;
            }
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                match serde_json::from_slice::<Value>(&line) {
                    Ok(value) => self.observe_sent(&value),
                    Err(_) => self.lost(),
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
        self.spoilt |= !faults.is_empty();
        self.observe_message(self.sends, value);
    }

    /// The other side has sent a message.
    pub(super) fn came(&mut self, value: &Value) {
        self.broken_rules.finding_count += usize::from(!self.spoilt);
        self.observe_message(self.sends.reversed(), value);
    }

    /// Something was said that is not known.
    pub(super) fn lost(&mut self) {
        self.spoilt = true;
        self.line = Vec::new();
    }

    /// Who sends in `direction` has closed its output.
    pub(super) fn closed(&mut self, direction: Direction) {
        if !self.spoilt {
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
        if self.spoilt {
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
                self.spoilt = true;
            } else if finding.rule.level == RequirementLevel::Must
                && self.broken_rules.rules.len() < KEPT
            {
                self.broken_rules.rules.push((finding, text.to_owned()));
            }
        }
    }

    pub(super) fn into_broken(self) -> BrokenRules {
        self.broken_rules
    }
}

impl BrokenRules {
    /// Adds what was seen in another check, named `of`.
    pub(super) fn add(&mut self, of: &str, other: Self) {
        self.finding_count += other.finding_count;
        for (finding, text) in other.rules {
            if self.rules.len() < KEPT {
                self.rules.push((finding, format!("in {of}: {text}")));
            }
        }
    }
}
