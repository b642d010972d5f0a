//! Checks for the version 1 requirements for clients. There is one file for each page of the specification.

mod agent_plan;
mod authentication;
mod cancellation;
mod content;
mod elicitation;
mod extensibility;
mod file_system;
mod initialization;
mod overview;
mod permissions;
mod prompt_turn;
mod session_config_options;
mod session_modes;
mod session_setup;
mod slash_commands;
mod steps;
mod terminal_commands;
mod terminals;
mod tool_calls;
mod transport;

use crate::check::Check;

pub use steps::{CANCEL_REQUEST_TEXT, WAIT_REQUEST_TEXT};

/// Returns all checks for clients, page by page.
pub(crate) fn checks() -> Vec<Check> {
    [
        overview::CHECKS,
        transport::CHECKS,
        initialization::CHECKS,
        authentication::CHECKS,
        session_setup::CHECKS,
        prompt_turn::CHECKS,
        content::CHECKS,
        tool_calls::CHECKS,
        permissions::CHECKS,
        agent_plan::CHECKS,
        session_modes::CHECKS,
        session_config_options::CHECKS,
        slash_commands::CHECKS,
        file_system::CHECKS,
        terminals::CHECKS,
        terminal_commands::CHECKS,
        elicitation::CHECKS,
        extensibility::CHECKS,
        cancellation::CHECKS,
    ]
    .concat()
}
