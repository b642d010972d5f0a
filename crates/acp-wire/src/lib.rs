//! Defines the messages of the [Agent Client Protocol](https://agentclientprotocol.com) as Rust types.
//!
//! This crate does no I/O. It contains the JSON-RPC 2.0 envelope ([`jsonrpc`]) and the typed messages of protocol
//! version 1 ([`v1`]) and of the draft of version 2 ([`v2`]). Each version has one table of all its methods
//! ([`v1::METHODS`], [`v2::METHODS`]).
//!
//! Reading is **tolerant**: unknown fields are ignored, unknown enum values and types are preserved, malformed optional
//! fields are read as missing, one invalid item of a list does not affect the others, and a lone surrogate escape is
//! read as U+FFFD. However, an array is never read as an object: params and results that are arrays are errors. Writing
//! is **strict**: the output is valid according to the current schema.
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
    Capability, MessageHandler, Method, MethodKind, MethodOffer, Notification, ReadError, Request,
    Sender, TextResponse, read_params, read_result,
};
pub use methods::extensions;
pub use raw_object::RawObject;

/// The custom data in a `_meta` field. See the specification's page "Extensibility", "The `_meta` Field".
pub type Meta = serde_json::Map<String, serde_json::Value>;

/// Runs the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
