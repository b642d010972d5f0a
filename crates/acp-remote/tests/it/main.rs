//! Tests of the remote transports on real sockets.

// Clippy takes only what is in a test function for a test.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod back_pressure;
mod common;
mod cuts;
mod embedding;
mod endings;
mod hostile;
mod statuses;
mod turns;
mod users;
