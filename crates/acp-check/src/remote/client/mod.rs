//! Checks for the requirements for clients of the remote transport. There is one file for each part of the draft.

mod requests;
mod streams;
mod websocket;

use crate::check::Check;

/// Returns all checks for clients of the remote transport.
pub(crate) fn checks() -> Vec<Check> {
    [requests::CHECKS, streams::CHECKS, websocket::CHECKS].concat()
}
