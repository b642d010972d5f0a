//! The protocol rules: requirements that span several messages, beyond the schema of each message.
//!
//! Pass the messages of both directions to [`RuleChecker`], in order. It returns the rules that were broken, and the
//! side that broke them. Conversations can have any length: the checker's memory is limited, and it reports nothing
//! about messages for which it had to drop something.
//!
//! Messages can cross: the agent may have sent a message before the client's latest message arrived. A rule about the
//! order of messages applies only where the earlier message must have arrived.

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
