//! What a client and an agent must keep to when they speak the Agent Client Protocol, and whether they do.
//!
//! - [`schema`] judges a single message by the shapes of the specification.
//! - [`RuleChecker`] judges a conversation by what it must keep to, message by message.
//!
//! Where things are and why: `docs/decisions/0013-who-is-wrong.md`.

mod level;
mod redaction;
mod rules;
pub mod schema;
mod side;

pub use level::RequirementLevel;
pub use redaction::REDACTED;
pub use rules::{Finding, MessagePosition, Rule, RuleChecker};
pub use side::Side;
