//! Checks for the requirements for servers of the remote transport. There is one file for each part of the draft.

mod connections;
mod requests;
mod streams;
mod websocket;

use crate::check::Check;

/// Returns all checks for servers of the remote transport.
pub(crate) fn checks() -> Vec<Check> {
    [
        requests::CHECKS,
        streams::CHECKS,
        connections::CHECKS,
        websocket::CHECKS,
    ]
    .concat()
}
