//! Requirements of the remote transport for servers, with one file for each part of the draft.

mod connections;
mod requests;
mod streams;
mod websocket;

use crate::check::Check;

/// Returns all checks.
pub(crate) fn checks() -> Vec<Check> {
    [
        requests::CHECKS,
        streams::CHECKS,
        connections::CHECKS,
        websocket::CHECKS,
    ]
    .concat()
}
