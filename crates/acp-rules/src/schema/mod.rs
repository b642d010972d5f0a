//! The shapes of messages, and whether a message has its own.
//!
//! Strict, where `acp-wire` is tolerant: it says what differs from the schema, also where every reader would
//! overlook it. The shapes are in `v1.shapes` and `v2.shapes`, and `notation.rs` says how they are written.

mod checker;
mod fault;
pub(crate) mod message;
mod notation;
mod shapes;
pub(crate) mod version;

pub use fault::{SchemaFault, SchemaFaultKind};
pub use message::{Direction, Envelope};
pub use shapes::Schema;
pub use version::SchemaVersion;
