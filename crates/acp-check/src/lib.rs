//! Who is wrong? A conformance suite for agents and for clients of the Agent Client Protocol, and traces of
//! what the two said to each other.
//!
//! - [`schema`] judges a single message by the shapes of the specification.
//! - [`rules`] judges a conversation by what it must keep to, message by message.
//! - [`trace`] records what goes between a client and an agent, and shows, judges and replays it.
//! - [`suite`] plays the other side, and says of each requirement whether it is met.
//!
//! Where things are and why: `docs/decisions/0013-who-is-wrong.md`.

mod level;
pub mod rules;
pub mod schema;
mod side;
pub mod suite;
pub mod trace;

pub use level::Level;
pub use side::Side;
