//! This crate's integration tests, compiled into one binary with one module per subject.

// Clippy allows `unwrap` and the like only inside test functions.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod messages;
mod official;
mod protocol_table;
mod secrets;
mod tolerance;
