//! Properties that must hold whatever a peer sends, as functions of arbitrary bytes.
//!
//! They are called by the targets in `fuzz/`, with bytes that a fuzzer makes up, and by `tests/it/corpus.rs`, with the
//! bytes in `fuzz/corpus/` and `fuzz/regressions/`. Each returns if all is as it must be, and panics if it is not.

// What it is for.
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
