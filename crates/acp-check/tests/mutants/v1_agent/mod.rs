//! Agents of version 1 that are wrong: a file for each page, as the checks have it.

mod agent_plan;
mod cancellation;
mod content;
mod elicitation;
mod file_system;
mod initialization;
mod permission;
mod prompt_turn;
mod schema;
mod session_config_options;
mod session_info;
mod session_modes;
mod slash_commands;
mod terminals;
mod tool_calls;
mod usage;

use crate::layer::Mutant;

/// What the right agent has not.
pub(crate) const SKIPPED: &[&str] = &[
    // It offers every type of content.
    "v1/content/8",
    // It needs no login.
    "v1/schema/4",
    "v1/schema/5",
];

pub(crate) fn mutants() -> Vec<Mutant> {
    let pages = [
        initialization::mutants(),
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
        session_info::mutants(),
        elicitation::mutants(),
        schema::mutants(),
    ];
    pages.into_iter().flatten().collect()
}
