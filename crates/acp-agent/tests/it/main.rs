//! Combines the tests of this crate in one program, with one module per subject.

// Clippy recognizes test code only inside test functions.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod archived_sessions;
mod calls_written;
#[cfg(unix)]
mod cancel;
mod commands;
mod commands_model;
mod common;
mod compaction;
mod context;
#[cfg(unix)]
mod display_terminal;
#[cfg(unix)]
mod escape;
mod fetch;
mod fork;
#[cfg(unix)]
mod full_task;
mod keys;
#[cfg(unix)]
mod mcp;
mod models_listed;
mod modes;
mod options;
mod permission;
mod provider;
mod provider_broken;
mod provider_broken_midway;
mod provider_turns;
mod reported;
mod rules;
mod scripted;
mod sessions;
mod steering;
mod store;
mod store_postgres;
mod system_prompt;
mod titles;
mod tools;
