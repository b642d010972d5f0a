//! Tests a connection with a thousand sessions and a million updates, as well as peers that stall. Prints the peak
//! memory, which must be within the limits in `docs/memory.md`.
//!
//! The agent and the client are separate processes, so that each has its own peak: this program starts itself again.
//! It has no test harness, because that would print to stdout.

// Clippy allows `unwrap` and the like only inside test functions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

#[path = "soak/agent.rs"]
mod agent;
#[path = "soak/client.rs"]
mod client;
mod listing;
#[path = "soak/memory.rs"]
mod memory;
#[path = "soak/stalled.rs"]
mod stalled;

use acp::Limits;

const SESSION_COUNT: usize = 1_000;
/// The number of updates in each session.
const UPDATES_PER_SESSION: usize = 1_000;

/// Returns limits for both sides that are low enough to be reached.
fn soak_limits() -> Limits {
    let mut limits = Limits::default();
    limits.message = 1024 * 1024;
    limits.message_memory = 8 * 1024 * 1024;
    limits.backlog = 4 * 1024 * 1024;
    limits.requests = 2 * SESSION_COUNT;
    limits.request_memory = 8 * 1024 * 1024;
    limits.thread = 64 * 1024;
    limits
}

/// Returns a command that runs this program in another role.
fn rerun_as(role: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command
        .arg(role)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    command
}

fn main() {
    if listing::list_test("soak") {
        return;
    }
    let role = std::env::args().nth(1).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        match role.as_str() {
            agent::AGENT_ROLE => agent::run_agent().await,
            stalled::CLIENT_ROLE => stalled::run_client().await,
            // Arguments of a test harness, such as a filter for another test.
            filter
                if !filter.is_empty() && !filter.starts_with('-') && !"soak".contains(filter) => {}
            _ => {
                if memory::peak_memory("self").is_none() {
                    println!("soak: skipped, this system has no /proc to read peaks from");
                    return;
                }
                client::run_soak().await;
                stalled::check_agent_of_stalled_client().await;
                stalled::check_client_of_endless_agent().await;
            }
        }
    });
}
