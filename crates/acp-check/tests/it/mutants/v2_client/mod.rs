//! Mutants of version 2 clients, with one file for each page of the specification.

mod initialization;
mod prompt_lifecycle;
mod rules;
mod schema;
mod session_setup;
mod tool_calls;

use crate::mutants::both_client;
use crate::mutants::layer::Mutant;

/// The checks that the correct client skips.
pub(crate) const SKIPPED_CHECKS: &[&str] = &[];

pub(crate) fn mutants() -> Vec<Mutant> {
    let pages = [
        initialization::mutants(),
        session_setup::mutants(),
        prompt_lifecycle::mutants(),
        tool_calls::mutants(),
        rules::mutants(),
        schema::mutants(),
        both_client::mutants("v2"),
    ];
    pages.into_iter().flatten().collect()
}
