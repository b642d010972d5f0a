//! Requirements of the remote transport for clients, with one file for each part of the draft.

mod requests;
mod streams;
mod websocket;

use crate::check::Check;

/// Returns all checks.
pub(crate) fn checks() -> Vec<Check> {
    [requests::CHECKS, streams::CHECKS, websocket::CHECKS].concat()
}
