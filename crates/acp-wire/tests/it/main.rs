//! This crate's tests, compiled into one program with one module per subject.

// Clippy allows `unwrap` and the like only inside test functions.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod messages;
mod official;
mod protocol_table;
mod secrets;
mod tolerance;
