//! A thousand sessions and a million updates on one connection, and peers that stall: what they take in memory
//! at most is printed, and must be within what `docs/memory.md` says.
//!
//! Agent and client are processes of their own, so that each has a peak of its own: this program starts itself
//! again. So it has no test harness, which would print to stdout.

// Clippy takes only what is in a test function for a test.
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
#[path = "soak/memory.rs"]
mod memory;
#[path = "soak/stalled.rs"]
mod stalled;

use acp::Limits;

const SESSIONS: usize = 1_000;
/// How many in each session.
const UPDATES: usize = 1_000;

/// What both sides keep: little, so that it is reached.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.message = 1024 * 1024;
    limits.message_memory = 8 * 1024 * 1024;
    limits.backlog = 4 * 1024 * 1024;
    limits.requests = 2 * SESSIONS;
    limits.request_memory = 8 * 1024 * 1024;
    limits.thread = 64 * 1024;
    limits
}

/// Itself, in another role.
fn again(role: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command
        .arg(role)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    command
}

fn main() {
    let role = std::env::args().nth(1).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        match role.as_str() {
            agent::ROLE => agent::run().await,
            stalled::CLIENT => stalled::client().await,
            // Arguments of a test harness, such as a filter that names another test.
            filter
                if !filter.is_empty() && !filter.starts_with('-') && !"soak".contains(filter) => {}
            "--list" => {}
            _ => {
                if memory::peak("self").is_none() {
                    println!("soak: skipped, this system has no /proc to read peaks from");
                    return;
                }
                client::soak().await;
                stalled::agent_of_a_client_that_does_not_read().await;
                stalled::client_of_an_agent_that_does_not_stop().await;
            }
        }
    });
}
