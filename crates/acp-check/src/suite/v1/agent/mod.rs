//! What version 1 requires of agents: a file for each page of the specification.

mod authentication;
mod extensibility;
mod initialization;
mod overview;
mod session_close;
mod session_delete;
mod session_list;
mod session_load;
mod session_setup;
mod transports;

use super::super::Check;

/// The checks, page by page.
pub(in crate::suite) fn checks() -> Vec<Check> {
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
        extensibility::CHECKS,
    ]
    .concat()
}
