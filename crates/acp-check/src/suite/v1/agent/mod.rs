//! What version 1 requires of agents: a file for each page of the specification.

mod agent_plan;
mod cancellation;
mod content;
mod elicitation;
mod file_system;
mod initialization;
mod permission;
mod prompt_turn;
mod session_config_options;
mod session_info;
mod session_modes;
mod slash_commands;
mod terminals;
mod tool_calls;
mod usage;

use super::super::Check;

/// The checks, page by page.
pub(in crate::suite) fn checks() -> Vec<Check> {
    [
        initialization::CHECKS,
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
        session_info::CHECKS,
        elicitation::CHECKS,
    ]
    .concat()
}
