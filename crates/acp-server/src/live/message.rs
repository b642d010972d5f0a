//! The lines that a live agent writes.

use std::sync::Arc;

use acp::jsonrpc::{self, RequestId};
use serde::Serialize;
use serde_json::value::RawValue;

/// A message with its line feed. It is stored once, however many clients receive it.
pub(super) type LiveLine = Arc<[u8]>;

/// Returns a notification.
pub(super) fn notification(method: &str, params: &(impl Serialize + ?Sized)) -> LiveLine {
    line(|out| jsonrpc::write_notification(out, method, params))
}

/// Returns a request. Without params, the request has none.
pub(super) fn request(id: i64, method: &str, params: Option<&RawValue>) -> LiveLine {
    let id = RequestId::Number(id);
    match params {
        Some(params) => line(|out| jsonrpc::write_request(out, &id, method, params)),
        // An absent member and an empty object mean the same for every method of the protocol.
        None => line(|out| jsonrpc::write_request(out, &id, method, &serde_json::json!({}))),
    }
}

/// Returns the response to a request.
pub(super) fn response(id: &RequestId, result: &Result<Box<RawValue>, jsonrpc::Error>) -> LiveLine {
    match result {
        Ok(result) => line(|out| jsonrpc::write_result(out, id, result)),
        Err(error) => line(|out| jsonrpc::write_error(out, id, error)),
    }
}

/// Returns a message that was received without its line feed.
pub(super) fn with_line_feed(message: &[u8]) -> LiveLine {
    [message, b"\n"].concat().into()
}

/// Converts a value to JSON text. A value that cannot be converted becomes `null`; there is none among those that this
/// crate writes.
pub(super) fn to_raw(value: &impl Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn line(write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>) -> LiveLine {
    let mut out = Vec::new();
    if let Err(error) = write(&mut out) {
        tracing::error!(%error, "cannot write a message");
    }
    out.into()
}
