//! Checks properties that must hold whatever a peer sends. Each check is a function of arbitrary bytes.
//!
//! The targets in `fuzz/` call them with bytes that a fuzzer generates, and `tests/it/corpus.rs` with the bytes in
//! `fuzz/corpus/` and `fuzz/regressions/`. Each check returns if the properties hold, and panics otherwise.

// Panics are the purpose of this crate.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    missing_docs,
    reason = "a finding is a panic"
)]

mod connection;
mod framer;
mod messages;
mod remote_client;
mod remote_server;
mod sides;

pub use connection::check_connection;
pub use framer::check_framer;
pub use messages::{check_messages_v1, check_messages_v2};
pub use remote_client::check_remote_client;
pub use remote_server::check_remote_server;
