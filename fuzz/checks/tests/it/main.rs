//! The tests of this crate in one program, with one module per subject.

// Clippy takes only what is in a test function for a test.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod corpus;
