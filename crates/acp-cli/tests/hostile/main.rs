//! Attacks: a hostile agent with every trick that we know, against `acp run` and `acp chat`. A file a subject.
//!
//! The tests ask what a victim would ask: was a file changed, read or run that was not shown and allowed?

#![cfg(target_os = "linux")]
// Clippy takes only what is in a test function for a test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

#[path = "../common/mod.rs"]
mod common;

#[path = "../../../acp-host/tests/common/ordinary_user.rs"]
mod ordinary_user;

mod agent;
mod answers;
mod bundled;
mod floods;
mod forbidden;
mod rules;
mod secrets;
mod shown;
mod type_ahead;

use common::screen::Screen;
use common::terminal::Terminal;
use common::{ACP, ELSEWHERE, Ended, Project};

/// Not a test, but the agent of the others: they start this program again, with the agent's steps in its environment.
#[test]
#[ignore = "it is the agent of the other tests"]
fn the_agent() {
    if let Ok(steps) = std::env::var(agent::STEPS) {
        agent::be(&steps);
    }
}
