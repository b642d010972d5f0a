//! Defines the message schema, and checks messages against it.
//!
//! The checker is strict where `acp-wire` is tolerant: it also reports differences that every reader would ignore. The
//! shapes are in `v1.shapes` and `v2.shapes`, and `notation.rs` describes their notation.

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
