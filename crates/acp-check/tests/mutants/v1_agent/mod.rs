//! Agents of version 1 that are wrong: a file for each page, as the checks have it.

mod authentication;
mod extensibility;
mod initialization;
mod overview;
mod schema;
mod session_list;
mod session_load;
mod session_setup;
mod transports;

use crate::layer::Mutant;

/// What the right agent has not.
pub(crate) const SKIPPED: &[&str] = &[
    // It is no process.
    "v1/transports/19",
    "v1/transports/20",
    // It offers what these are about.
    "v1/session-setup/27",
    "v1/session-setup/32",
    "v1/session-setup/44",
    "v1/session-list/8",
    "v1/session-delete/4",
];

/// Checks of processes. Their mutants are processes as well, in `tests/processes.rs`.
pub(crate) const PROCESSES: &[&str] = &["v1/transports/19", "v1/transports/20"];

pub(crate) fn mutants() -> Vec<Mutant> {
    let pages = [
        overview::mutants(),
        transports::mutants(),
        initialization::mutants(),
        authentication::mutants(),
        session_setup::mutants(),
        session_load::mutants(),
        session_list::mutants(),
        extensibility::mutants(),
        schema::mutants(),
    ];
    pages.into_iter().flatten().collect()
}
