//! The tests of this crate, in a single program with one module for each subject.

// Clippy recognizes test code only inside test functions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod redaction;
