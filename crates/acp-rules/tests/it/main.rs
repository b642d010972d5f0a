//! The tests of this crate, in a single program with one module for each subject.

// Clippy takes only what is in a test function for a test.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod official_shapes;
