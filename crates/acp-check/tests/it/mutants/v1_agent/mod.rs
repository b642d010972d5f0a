//! Mutants of version 1 agents. There is one file for each page of the specification.

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

/// The checks that the correct agent skips.
pub(crate) const SKIPPED_CHECKS: &[&str] = &[
    // It is not a process.
    "v1/transports/19",
    "v1/transports/20",
    // It advertises what these checks are about.
    "v1/session-setup/27",
    "v1/session-setup/32",
    "v1/session-setup/44",
    "v1/session-list/8",
    "v1/session-delete/4",
    // It supports every content type.
    "v1/content/8",
];

/// The checks that only a separate process can fail. Their mutants are shell scripts in `tests/it/processes.rs`.
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
