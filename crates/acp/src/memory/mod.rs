//! Estimates of the memory that messages use. There are two kinds of estimates, for two purposes:
//!
//! - [`parsed_memory`] estimates from the text of a message, before it is parsed, so that a message that would take too
//!   much can be rejected. It must not allocate, and does not know which types the message will be read into, so it
//!   assumes the largest.
//! - [`weight`](mod@weight) estimates from a value that has been read, to limit how much is kept. It knows the types,
//!   so it adds up what each part takes. A thread counts its parts one by one, and most parts are not messages.
//!
//! Neither estimate is ever much too low. Small JSON can be large in memory: parsed, `[{"":0},{"":0}]` takes a hundred
//! times its size.

mod parsed;
mod weight;

pub(crate) use parsed::{excess_memory, parsed_memory};
pub(crate) use weight::weight;

// Both estimates count these in the same way.

/// The size of a `BTreeMap` node, in bytes. It is counted for an object whose fields are not known. A node has capacity
/// for eleven entries, so even an object with one entry uses a full node.
const MAP_BYTES: usize = 704;

/// A string's memory in addition to its text, in bytes: its pointer, and the allocator's rounding.
const STRING_BYTES: usize = 48;
