//! The messages of the [Agent Client Protocol](https://agentclientprotocol.com), as data.
//!
//! This crate does no input or output. It has the JSON-RPC 2.0 envelope ([`jsonrpc`]) and the typed
//! messages of protocol version 1 ([`v1`]) and of the draft of version 2 ([`v2`]), each with one table of
//! all its methods ([`v1::METHODS`], [`v2::METHODS`]).
//!
//! The types are **tolerant in reading**: unknown fields pass, unknown enum values and union kinds
//! are kept as they came, malformed optional fields read as absent, one bad item of a list does not
//! lose the others, and half a character (the escape of a lone surrogate) reads as U+FFFD. An array is
//! never read as an object, though: params and results that are arrays are errors. They are
//! **strict in writing**: what is written is valid by today's schema.
//!
//! ```
//! use acp_wire::v1::{ContentBlock, PromptRequest};
//!
//! let prompt = PromptRequest::new("sess_1", vec![ContentBlock::text("Hello")]);
//! assert_eq!(
//!     serde_json::to_string(&prompt).unwrap(),
//!     r#"{"sessionId":"sess_1","prompt":[{"type":"text","text":"Hello"}]}"#,
//! );
//! ```

#[macro_use]
mod macros;

#[cfg(feature = "arbitrary")]
mod arbitrary;
pub mod jsonrpc;
mod lenient;
#[macro_use]
mod method;
mod methods;
mod object_only;
mod raw_object;
mod session_capabilities;
mod surrogate;
mod tagged;
pub mod text;
pub mod v1;
pub mod v2;

pub use method::{
    Capability, MessageHandler, Method, MethodKind, Notification, ReadError, Request, Sender,
    read_params, read_result,
};
pub use raw_object::RawObject;

/// The value of a `_meta` field: extensibility, "The `_meta` Field".
pub type Meta = serde_json::Map<String, serde_json::Value>;
