//! All tests of this crate in a single program, with one module per topic.

// Clippy takes only what is in a test function for a test.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod agent;
mod agent_sessions;
#[cfg(unix)]
mod agents;
#[cfg(target_os = "linux")]
mod agents_install;
#[cfg(unix)]
mod answer_tool;
mod bridge;
#[cfg(unix)]
mod bridge_to_v1;
#[cfg(unix)]
mod cancel;
#[cfg(target_os = "linux")]
mod chat;
mod check;
mod check_client;
#[cfg(unix)]
mod check_remote;
#[cfg(unix)]
mod ci_guide;
mod common;
#[cfg(unix)]
mod compare;
mod conformance_pages;
#[cfg(unix)]
mod connect;
#[cfg(unix)]
mod continue_latest;
mod environment;
#[cfg(unix)]
mod escape;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(unix)]
mod first_use;
#[cfg(unix)]
mod fleet;
#[cfg(target_os = "linux")]
mod fleet_agent;
#[cfg(target_os = "linux")]
mod fleet_faults;
#[cfg(unix)]
mod full_task;
#[cfg(target_os = "linux")]
mod hostile;
mod import_circles;
#[cfg(unix)]
mod inspect;
#[cfg(unix)]
mod local_sessions;
mod login;
mod mcp_proxy;
mod method_files;
mod model;
#[cfg(unix)]
mod nginx;
#[cfg(target_os = "linux")]
mod npm_agents;
#[cfg(unix)]
#[path = "../../../acp-host/tests/it/common/ordinary_user.rs"]
mod ordinary_user;
#[cfg(unix)]
mod other_programs;
mod page;
mod path_mapping;
mod permissions;
mod promises;
mod registry;
mod run;
mod run_result;
mod run_trace;
#[cfg(unix)]
mod sandbox;
mod serve;
mod serve_live;
mod serve_users;
#[cfg(unix)]
mod session_names;
mod session_options;
#[cfg(unix)]
mod sessions;
#[cfg(target_os = "linux")]
mod shells;
#[cfg(target_os = "linux")]
mod slow_connections;
#[cfg(unix)]
mod start;
#[cfg(target_os = "linux")]
mod subagents;
#[cfg(target_os = "linux")]
mod terminal;
mod trace;
mod trace_html;
mod trace_lint;
#[cfg(unix)]
mod trace_live;
mod trace_replay;
#[cfg(unix)]
mod trace_serve;
mod trace_show;
mod type_names;
#[cfg(unix)]
mod watch_json;
