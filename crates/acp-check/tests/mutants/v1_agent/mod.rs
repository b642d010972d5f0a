//! Agents of version 1 that are wrong: a file for each page, as the checks have it.

mod initialization;
mod rules;
mod schema;

use crate::layer::Mutant;

/// What the right agent has not.
pub(crate) const SKIPPED: &[&str] = &[];

pub(crate) fn mutants() -> Vec<Mutant> {
    let pages = [
        initialization::mutants(),
        schema::mutants(),
        rules::mutants(),
    ];
    pages.into_iter().flatten().collect()
}
