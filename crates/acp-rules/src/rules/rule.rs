//! Defines protocol rules, and findings about messages that break them.

use std::fmt;

use crate::level::RequirementLevel;
use crate::schema::message::Direction;
use crate::schema::version::SchemaVersion;
use crate::side::Side;

/// A protocol rule: a requirement of the specification that spans several messages.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The rule's name, such as `request-unanswered`. It never changes.
    pub name: &'static str,
    /// Whether the rule is a MUST or a SHOULD.
    pub level: RequirementLevel,
    /// The page of the specification that contains the rule, written as in its URL, such as `prompt-turn`.
    pub section: &'static str,
    /// The requirement, as one sentence about the agent or the client.
    pub requirement: &'static str,
}

/// Defines rules as statics, and `RULES` as a list of them.
macro_rules! rules {
    ($( $name:ident = $text:literal $level:ident $section:literal $requirement:literal; )+) => {
        $(
            static $name: $crate::rules::rule::Rule = $crate::rules::rule::Rule {
                name: $text,
                level: $crate::level::RequirementLevel::$level,
                section: $section,
                requirement: $requirement,
            };
        )+
        pub(super) static RULES: &[&$crate::rules::rule::Rule] = &[$( &$name ),+];
    };
}
pub(super) use rules;

/// The position of a message in its conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessagePosition {
    /// The number of the message, as counted by the caller, such as its line in a trace.
    pub index: u64,
    /// The time when the message was seen, in microseconds since a fixed time before the first message.
    pub time_us: u64,
}

/// One violation of a protocol rule, with the messages that show it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that was broken.
    pub rule: &'static Rule,
    /// The side that broke the rule.
    pub side: Side,
    /// The offending message. If a response is missing, this is the request.
    pub message: MessagePosition,
    /// An earlier message that the offending message contradicts, if any.
    pub earlier: Option<MessagePosition>,
    /// The description of the violation: the rest of a sentence that starts with the side's name.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { name, level, .. } = self.rule;
        write!(f, "{level} {name}: the {} {}", self.side, self.text)
    }
}

/// Collects findings while one message is checked.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) position: MessagePosition,
    pub(super) version: SchemaVersion,
    pub(super) findings: Vec<Finding>,
}

impl Findings {
    /// Reports the current message as wrong. `text` is the rest of a sentence that starts with "the agent" or "the
    /// client".
    pub(super) fn report(&mut self, rule: &'static Rule, side: Side, text: impl Into<String>) {
        self.push(rule, side, self.position, None, text.into());
    }

    /// Reports that the current message contradicts an earlier one.
    pub(super) fn report_with_earlier(
        &mut self,
        rule: &'static Rule,
        side: Side,
        earlier: MessagePosition,
        text: impl Into<String>,
    ) {
        self.push(rule, side, self.position, Some(earlier), text.into());
    }

    /// Reports an earlier message that now turns out to be wrong.
    pub(super) fn report_earlier(
        &mut self,
        rule: &'static Rule,
        side: Side,
        message: MessagePosition,
        text: impl Into<String>,
    ) {
        self.push(rule, side, message, None, text.into());
    }

    fn push(
        &mut self,
        rule: &'static Rule,
        side: Side,
        message: MessagePosition,
        earlier: Option<MessagePosition>,
        text: String,
    ) {
        self.findings.push(Finding {
            rule,
            side,
            message,
            earlier,
            text,
        });
    }

    /// Returns `true` if an earlier message must have arrived by now. A more recent one may still be in transit.
    pub(super) fn must_have_arrived(&self, earlier: MessagePosition) -> bool {
        self.position.time_us.saturating_sub(earlier.time_us) >= MAX_TRANSIT_US
    }
}

/// The maximum transit time of a message, in microseconds. A sender may not have read messages that arrived within this
/// time.
pub(super) const MAX_TRANSIT_US: u64 = 1_000_000;

/// Returns the side that sends messages in `direction`.
pub(super) fn sender(direction: Direction) -> Side {
    match direction {
        Direction::ToAgent => Side::Client,
        Direction::ToClient => Side::Agent,
    }
}
