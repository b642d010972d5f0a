//! The tests of this crate in one program, with one module per subject.

// Clippy recognizes only test functions as tests.
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod corpus;
