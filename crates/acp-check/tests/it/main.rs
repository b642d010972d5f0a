//! Combines the tests of this crate in one program, with one module per subject.

// Clippy recognizes test code only inside test functions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod mutants;
#[cfg(unix)]
mod processes;
#[cfg(unix)]
mod sharing;
