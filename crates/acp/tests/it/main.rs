//! This crate's integration tests, compiled into one binary with one module per subject.

// Clippy allows `unwrap` and the like only inside test functions.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod ahead;
mod archived_sessions;
mod auth_status;
mod back_pressure;
mod bridge_any;
mod bridge_down;
mod bridge_peers;
mod bridge_pump;
mod bridge_up;
mod cancellation;
mod child_process;
mod client_gone;
mod client_state;
mod closing;
mod common;
mod config;
mod driver;
mod dyn_sides;
mod examples;
mod extension;
mod fork_at_message;
mod hostile;
mod large_text;
mod mcp_servers;
mod observer;
mod ordering;
mod permission;
mod prompt_order;
mod protocol;
mod providers;
mod recorder;
mod reopening;
mod session_state;
mod session_status;
mod steering;
mod subagents;
mod system_prompt;
mod testing;
mod thread;
mod turn;
mod turn_end;
mod unstable;
mod v2_agent;
mod v2_client;
mod v2_questions;
