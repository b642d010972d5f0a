//! Writes new messages and edits received ones.
//!
//! The functions work on raw JSON values, so parts that the bridge does not read are written exactly as received.

use acp_wire::jsonrpc::{self, Incoming, RequestId};
use acp_wire::{Notification, RawObject, v1};
use serde_json::value::RawValue;

pub(super) use crate::object::{to_object, to_raw_value};

/// The bytes to send to each side after a line is handled.
#[derive(Debug, Default)]
pub(super) struct BridgeOutput {
    pub(super) client: Vec<u8>,
    pub(super) agent: Vec<u8>,
}

/// A received line that is a valid message.
pub(super) struct BridgeLine<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) message: Incoming<'a>,
}

impl BridgeLine<'_> {
    /// Writes the line as received.
    pub(super) fn write_unchanged(&self, buf: &mut Vec<u8>) {
        write_unchanged(buf, self.bytes);
    }

    /// Writes the line after `change` has edited its members.
    pub(super) fn write_changed(&self, buf: &mut Vec<u8>, change: impl FnOnce(&mut RawObject)) {
        let Some(mut members) = parse_json::<RawObject>(self.bytes) else {
            return self.write_unchanged(buf);
        };
        change(&mut members);
        write_message(buf, &members);
    }

    /// Writes the line with its params replaced.
    pub(super) fn write_with_params(&self, buf: &mut Vec<u8>, params: &RawObject) {
        self.write_changed(buf, |line| line.set("params", to_raw_value(params)));
    }

    /// Writes the line with its method and params replaced.
    pub(super) fn write_with_method(&self, buf: &mut Vec<u8>, method: &str, params: &RawObject) {
        self.write_changed(buf, |line| {
            line.set("method", to_raw_value(method));
            line.set("params", to_raw_value(params));
        });
    }

    /// Writes the line with its result replaced.
    pub(super) fn write_with_result(&self, buf: &mut Vec<u8>, result: &RawObject) {
        self.write_changed(buf, |line| line.set("result", to_raw_value(result)));
    }
}

/// Returns an empty JSON list.
pub(super) fn empty_list() -> Box<RawValue> {
    to_raw_value(&[(); 0])
}

/// Parses JSON as a `T`, or returns `None` on failure.
pub(super) fn parse_json<T: serde::de::DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}

/// Returns the session id in a message's params, if any.
pub(super) fn read_session_id(params: &RawObject) -> Option<String> {
    params.field("sessionId")
}

/// Returns the session id in a request's params, or an error if there is none.
///
/// # Errors
/// The request has no session id, so it cannot be translated.
pub(super) fn require_session_id(params: &RawObject) -> Result<String, jsonrpc::Error> {
    read_session_id(params)
        .ok_or_else(|| jsonrpc::Error::invalid_params("Invalid params: sessionId is missing"))
}

pub(super) fn write_unchanged(buf: &mut Vec<u8>, line: &[u8]) {
    buf.extend_from_slice(line);
    buf.push(b'\n');
}

/// Appends a message and a newline.
pub(super) fn write_message(buf: &mut Vec<u8>, message: &RawObject) {
    let start = buf.len();
    if serde_json::to_writer(&mut *buf, message).is_err() {
        buf.truncate(start);
        return;
    }
    // Raw values may contain line breaks between tokens. Inside strings, JSON does not allow them.
    for byte in buf.get_mut(start..).unwrap_or_default() {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    buf.push(b'\n');
}

/// Writes a response with a result. Results that the bridge itself creates can always be serialized.
pub(super) fn write_result(buf: &mut Vec<u8>, id: &RequestId, result: &RawObject) {
    let _ = jsonrpc::write_result(buf, id, result);
}

/// Writes an error response to a request.
pub(super) fn write_error(buf: &mut Vec<u8>, id: &RequestId, error: &jsonrpc::Error) {
    let _ = jsonrpc::write_error(buf, id, error);
}

/// Writes a notification.
pub(super) fn write_notification(buf: &mut Vec<u8>, method: &str, params: &RawObject) {
    let _ = jsonrpc::write_notification(buf, method, params);
}

/// Writes a `session/update` notification.
pub(super) fn write_update(buf: &mut Vec<u8>, session: &str, update: &RawObject) {
    let params = object! { "sessionId": session, "update": update };
    write_notification(buf, v1::SessionNotification::METHOD, &params);
}

/// The bridge's replacement for one session update.
#[derive(Debug)]
pub(super) enum TranslatedUpdate {
    /// The line as received.
    Unchanged,
    /// The received line with this update instead of the original.
    Changed(RawObject),
    /// A new line with this update, created by the bridge.
    Generated(RawObject),
}

/// Writes the lines that replace the `session/update` notification in `line`.
pub(super) fn write_translations(
    buf: &mut Vec<u8>,
    line: &BridgeLine<'_>,
    params: &RawObject,
    session: &str,
    emits: Vec<TranslatedUpdate>,
) {
    for emit in emits {
        match emit {
            TranslatedUpdate::Unchanged => line.write_unchanged(buf),
            TranslatedUpdate::Changed(changed) => {
                let mut params = params.clone();
                params.set("update", to_raw_value(&changed));
                line.write_with_params(buf, &params);
            }
            TranslatedUpdate::Generated(own) => write_update(buf, session, &own),
        }
    }
}

/// Returns the items of a list as received, or none if the field is not a list.
pub(super) fn list_items(object: &RawObject, key: &str) -> Vec<Box<RawValue>> {
    object.field(key).unwrap_or_default()
}

/// The key in `_meta` for values that the other version cannot express.
pub(super) const META_KEY: &str = "acp-bridge";

/// Stores the original value of a translated field in the object's `_meta`.
pub(super) fn store_original(object_: &mut RawObject, key: &str, original: &RawValue) {
    let mut meta = to_object(object_.get("_meta"));
    let mut noted = to_object(meta.get(META_KEY));
    noted.set(key, original.to_owned());
    meta.set(META_KEY, to_raw_value(&noted));
    object_.set("_meta", to_raw_value(&meta));
}

/// Truncates a string to at most `max` bytes, at a character boundary.
pub(super) fn truncate_text(text: &mut String, max: usize) {
    let mut end = text.len().min(max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
}
