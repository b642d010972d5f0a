//! What a rule is, and what is found by one.

use std::fmt;

use crate::level::RequirementLevel;
use crate::schema::message::Direction;
use crate::schema::version::SchemaVersion;
use crate::side::Side;

/// Something that a conversation must keep to.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its name, which stays: `request-unanswered`.
    pub name: &'static str,
    /// How binding it is.
    pub level: RequirementLevel,
    /// The page of the specification, as its address has it, such as `prompt-turn`.
    pub section: &'static str,
    /// What is required, in a sentence.
    pub requirement: &'static str,
}

/// Rules, as statics, and a list of them.
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

/// A message in its conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MessagePosition {
    /// Which it is: whatever the caller counts, such as lines of a trace.
    pub index: u64,
    /// When it was seen, in microseconds since any moment before the first.
    pub time_us: u64,
}

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule.
    pub rule: &'static Rule,
    /// Who is wrong.
    pub side: Side,
    /// The message that is wrong: of a request without an answer, the request.
    pub message: MessagePosition,
    /// An earlier message that it is at odds with.
    pub earlier: Option<MessagePosition>,
    /// What is wrong, in a sentence.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { name, level, .. } = self.rule;
        write!(f, "{level} {name}: the {} {}", self.side, self.text)
    }
}

/// What is found, and by what message.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) position: MessagePosition,
    pub(super) version: SchemaVersion,
    pub(super) findings: Vec<Finding>,
}

impl Findings {
    /// The message at hand is wrong. `text` goes on after "the agent" or "the client".
    pub(super) fn add(&mut self, rule: &'static Rule, side: Side, text: impl Into<String>) {
        self.push(rule, side, self.position, None, text.into());
    }

    /// The message at hand is wrong because of an earlier one.
    pub(super) fn add_with_cause(
        &mut self,
        rule: &'static Rule,
        side: Side,
        earlier: MessagePosition,
        text: impl Into<String>,
    ) {
        self.push(rule, side, self.position, Some(earlier), text.into());
    }

    /// An earlier message was wrong, which is known only now.
    pub(super) fn add_at(
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

    /// Whether an earlier message has certainly arrived by now: two messages may cross each other on their ways.
    pub(super) fn has_arrived(&self, earlier: MessagePosition) -> bool {
        self.position.time_us.saturating_sub(earlier.time_us) >= CROSSING
    }
}

/// How long a message may be under way, in microseconds: who says something sooner after it may not have read it yet.
pub(super) const CROSSING: u64 = 1_000_000;

/// Who sends in a direction.
pub(super) fn sender(direction: Direction) -> Side {
    match direction {
        Direction::ToAgent => Side::Client,
        Direction::ToClient => Side::Agent,
    }
}
