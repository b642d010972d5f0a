//! What a client and an agent must keep to when they speak the Agent Client Protocol, and whether they do.
//!
//! - [`schema`] judges a single message by the shapes of the specification.
//! - [`Rules`] judges a conversation by what it must keep to, message by message.
//!
//! Where things are and why: `docs/decisions/0013-who-is-wrong.md`.

mod level;
mod redacted;
mod rules;
pub mod schema;
mod side;

pub use level::Level;
pub use redacted::REDACTED;
pub use rules::{Finding, Moment, Rule, Rules};
pub use side::Side;
