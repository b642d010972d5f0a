//! Agents of version 1 that are wrong: a file for each page, as the checks have it.

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
mod rules;
mod schema;
mod session_config_options;
mod session_info;
mod session_list;
mod session_load;
mod session_modes;
mod session_setup;
mod slash_commands;
mod terminals;
mod tool_calls;
mod transports;
mod usage;

use crate::mutants::both_agent;
use crate::mutants::layer::Mutant;

/// What the right agent has not.
pub(crate) const SKIPPED_CHECKS: &[&str] = &[
    // It is no process.
    "v1/transports/19",
    "v1/transports/20",
    // It offers what these are about.
    "v1/session-setup/27",
    "v1/session-setup/32",
    "v1/session-setup/44",
    "v1/session-list/8",
    "v1/session-delete/4",
    // It offers every content type.
    "v1/content/8",
];

/// Checks of processes. Their mutants are processes as well, in `tests/processes.rs`.
pub(crate) const PROCESS_CHECKS: &[&str] = &["v1/transports/19", "v1/transports/20"];

pub(crate) fn mutants() -> Vec<Mutant> {
    let pages = [
        overview::mutants(),
        transports::mutants(),
        initialization::mutants(),
        authentication::mutants(),
        session_setup::mutants(),
        session_load::mutants(),
        session_list::mutants(),
        session_info::mutants(),
        prompt_turn::mutants(),
        cancellation::mutants(),
        content::mutants(),
        tool_calls::mutants(),
        permission::mutants(),
        agent_plan::mutants(),
        session_modes::mutants(),
        session_config_options::mutants(),
        slash_commands::mutants(),
        file_system::mutants(),
        terminals::mutants(),
        usage::mutants(),
        elicitation::mutants(),
        extensibility::mutants(),
        schema::mutants(),
        rules::mutants(),
        both_agent::mutants("v1"),
    ];
    pages.into_iter().flatten().collect()
}
