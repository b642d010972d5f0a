//! The rules of a conversation: what a client and an agent must keep to beyond the shapes of single messages.
//!
//! [`RuleChecker`] is told each message as it passes, of both directions and in their order, and says which rules it breaks
//! and who is wrong. It is for any conversation, however long: what it remembers is bounded, and where something had
//! to be forgotten, nothing is said of it.
//!
//! Messages cross each other on their ways: what an agent says may have been under way before the client's last message
//! came. A rule about such an order only speaks where the earlier message must have arrived.

mod capabilities;
mod checker;
mod config;
mod elicitation;
mod initialization;
mod messages;
mod permissions;
mod requests;
mod rule;
mod sessions;
mod states;
mod table;
mod terminals;
#[cfg(test)]
mod testing;
mod tool_calls;
mod turns;

pub use checker::RuleChecker;
pub use rule::{Finding, MessagePosition, Rule};
