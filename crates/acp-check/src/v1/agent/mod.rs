//! Checks for the version 1 requirements for agents. There is one file for each page of the specification.

mod agent_plan;
mod authentication;
mod cancellation;
mod content;
mod elicitation;
mod extensibility;
mod file_system;
mod initialization;
mod overview;
mod permission;
mod prompt_turn;
mod session_close;
mod session_config_options;
mod session_delete;
mod session_info;
pub(crate) mod session_list;
mod session_load;
mod session_modes;
mod session_setup;
mod slash_commands;
mod terminals;
mod tool_calls;
mod transports;
mod usage;

use crate::check::Check;

/// Returns all checks for agents, page by page.
pub(crate) fn checks() -> Vec<Check> {
    [
        overview::CHECKS,
        transports::CHECKS,
        initialization::CHECKS,
        authentication::CHECKS,
        session_setup::CHECKS,
        session_load::CHECKS,
        session_close::CHECKS,
        session_list::CHECKS,
        session_delete::CHECKS,
        session_info::CHECKS,
        prompt_turn::CHECKS,
        cancellation::CHECKS,
        content::CHECKS,
        tool_calls::CHECKS,
        permission::CHECKS,
        agent_plan::CHECKS,
        session_modes::CHECKS,
        session_config_options::CHECKS,
        slash_commands::CHECKS,
        file_system::CHECKS,
        terminals::CHECKS,
        usage::CHECKS,
        elicitation::CHECKS,
        extensibility::CHECKS,
    ]
    .concat()
}
