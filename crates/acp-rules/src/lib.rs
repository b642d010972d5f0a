//! Checks Agent Client Protocol conversations against the schema and the rules of the specification.
//!
//! - [`schema`] checks a single message against the schema of the specification.
//! - [`RuleChecker`] checks a conversation, message by message, against the protocol rules.
//!
//! The design and its reasons are in `docs/decisions/0013-who-is-wrong.md`.

mod level;
mod redaction;
mod rules;
pub mod schema;
mod side;

pub use level::RequirementLevel;
pub use redaction::REDACTED;
pub use rules::{Finding, MessagePosition, Rule, RuleChecker};
pub use side::Side;
