//! All tests of this crate in a single program, with one module per topic.

// Clippy recognizes test code only inside test functions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[cfg(unix)]
mod agent_process;
mod common;
#[cfg(unix)]
mod durable;
mod elicitation;
mod environment;
#[cfg(unix)]
mod escape;
#[cfg(unix)]
mod files;
mod host;
#[cfg(target_os = "linux")]
mod orphans;
#[cfg(unix)]
mod overlay;
mod permissions;
#[cfg(unix)]
mod reading;
mod remembered;
mod rules;
#[cfg(unix)]
mod sandbox;
#[cfg(unix)]
mod terminals;
#[cfg(target_os = "linux")]
mod undo;
