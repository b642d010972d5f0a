//! Clients of version 1 that are wrong: a file for each page, as the checks have it.

mod initialization;
mod rules;

use crate::layer::Mutant;

/// What the right client has not.
pub(crate) const SKIPPED: &[&str] = &[];

pub(crate) fn mutants() -> Vec<Mutant> {
    let pages = [initialization::mutants(), rules::mutants()];
    pages.into_iter().flatten().collect()
}
