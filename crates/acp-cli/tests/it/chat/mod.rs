//! Tests of `acp chat` on a terminal. Each test types as a user would and checks what appears on the screen. There is
//! one file per topic.
//!
//! `UPDATE_GOLDEN=1` takes the golden screens as they are, and leaves a page of each with its colors in the directory
//! for what tests write, to be looked at before it is accepted.

mod answers;
mod colors;
mod forms;
mod images;
mod live;
mod login;
mod newcomers;
mod notifications;
mod open;
mod options;
mod player;
mod remote;
mod rewind;
mod rewind_by_agent;
mod rewind_npm_agent;
mod sessions;
mod shell;
mod stage;
mod steering;
mod tabs;
mod terminal;
mod themes;
mod tmux;
mod tools;
mod trouble;
mod turns;
mod vim;
mod writing;

use acp_config::themes::ThemeRole;

use crate::common::screen::ChatScreen;
use crate::common::{self, ACP, TestProject, itself, prepared_model};
use stage::*;
pub(crate) use stage::{start_chat_with_args, wait_until_question_accepts_keys};

const ENTER: &str = "\r";
const NEW_LINE: &str = "\n";
const TAB: &str = "\t";
const ALT_Q: &str = "\u{1b}q";
const ESCAPE: &str = "\u{1b}";
const SHIFT_TAB: &str = "\u{1b}[Z";
const UP: &str = "\u{1b}[A";
const DOWN: &str = "\u{1b}[B";
const BACKSPACE: &str = "\u{7f}";
/// Clears the line of the prompt.
const CLEAR_LINE: &str = "\u{15}";
const F5: &str = "\u{1b}[15~";
const F6: &str = "\u{1b}[17~";
const F7: &str = "\u{1b}[18~";
const F8: &str = "\u{1b}[19~";

/// The terminal sizes that have golden screens.
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

/// Not a real test: runs the agent for the other tests. They start this program again, with the agent's flags in its
/// environment.
#[test]
#[ignore = "it is the agent of the other tests"]
fn run_as_agent() {
    itself::run_if_agent(run_agent);
}
