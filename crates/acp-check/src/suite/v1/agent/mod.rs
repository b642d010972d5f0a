//! What version 1 requires of agents: a file for each page of the specification.

mod initialization;

use super::super::Check;

/// The checks, page by page.
pub(in crate::suite) fn checks() -> Vec<Check> {
    [initialization::CHECKS].concat()
}
