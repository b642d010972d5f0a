//! Mutants of version 2 agents, with one file for each page of the specification.

mod authentication;
mod cancellation;
mod config_options;
mod extensibility;
mod initialization;
mod prompt_lifecycle;
mod rules;
pub(crate) mod schema;
mod session_setup;
mod tool_calls;

use crate::mutants::both_agent;
use crate::mutants::layer::Mutant;

/// The checks that the correct agent skips.
pub(crate) const SKIPPED_CHECKS: &[&str] = &[];

pub(crate) fn mutants() -> Vec<Mutant> {
    let pages = [
        initialization::mutants(),
        authentication::mutants(),
        session_setup::mutants(),
        config_options::mutants(),
        prompt_lifecycle::mutants(),
        cancellation::mutants(),
        tool_calls::mutants(),
        extensibility::mutants(),
        rules::mutants(),
        schema::mutants(),
        both_agent::mutants("v2"),
    ];
    pages.into_iter().flatten().collect()
}
