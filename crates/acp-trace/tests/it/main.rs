//! Tests of this crate, built as a single binary with one module per subject.

// Clippy recognizes test code only inside test functions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod redaction;
