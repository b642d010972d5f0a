//! All tests of this crate in a single program, with one module per topic.

// Clippy takes only what is in a test function for a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
mod tool_server;
mod tools;
