//! Tests of this crate, built as a single binary with one module per subject.

// Clippy takes only what is in a test function for a test.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod official_shapes;
