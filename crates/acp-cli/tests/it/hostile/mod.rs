//! Attacks on `acp run` and `acp chat` by a hostile agent that tries every known trick. There is one file per topic.
//!
//! The tests ask what a victim would ask: was a file changed, read or run that was not shown and allowed?

mod agent;
mod answers;
mod bundled;
mod floods;
mod forbidden;
mod rules;
mod secrets;
mod shown;
mod type_ahead;

use crate::common::screen::ChatScreen;
use crate::common::terminal::CommandTerminal;
use crate::common::{ACP, BINARY_VARIABLE, CommandResult, TestProject, itself};

/// Not a real test: runs the agent for the other tests. They start this program again, with the agent's steps in its
/// environment.
#[test]
#[ignore = "it is the agent of the other tests"]
fn run_as_agent() {
    itself::run_if_agent(|_| agent::run_hostile_agent());
}
