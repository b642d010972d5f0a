//! Forks that end at a message: an extension of `session/fork` that several agents support.
//!
//! The request names the last message to keep in `_meta.jetbrains.air.fork`, and an agent declares its support in the
//! same place of its capabilities. See `docs/decisions/0035-rewind-by-the-agent.md`.

use acp_wire::Meta;
use acp_wire::v1::MessageId;
use serde_json::{Map, Value, json};

/// The names of the objects in `_meta` that lead to the extension.
const PATH: [&str; 3] = ["jetbrains", "air", "fork"];

/// The version of the extension.
const VERSION: u64 = 1;

/// Returns the object of the extension in `_meta`, if it is there.
fn find_in(meta: &Meta) -> Option<&Value> {
    let [first, rest @ ..] = PATH;
    let mut value = meta.get(first)?;
    for name in rest {
        value = value.get(name)?;
    }
    Some(value)
}

/// Puts an object of the extension into `_meta`, beside what is already there.
fn insert_into(meta: &mut Meta, value: Value) {
    let [parents @ .., last] = PATH;
    let mut object = meta;
    for name in parents {
        let inner = object.entry(name).or_insert(Value::Null);
        if !inner.is_object() {
            *inner = Value::Object(Map::new());
        }
        let Value::Object(inner) = inner else { return };
        object = inner;
    }
    object.insert(last.to_owned(), value);
}

/// Adds the last message to keep to the `_meta` of `session/fork`.
pub(crate) fn insert_message(meta: &mut Meta, message: &MessageId) {
    insert_into(
        meta,
        json!({ "version": VERSION, "messageId": message.as_str() }),
    );
}

/// Reads the last message to keep from the `_meta` of `session/fork`. Returns `None` if the whole session is to be copied.
///
/// # Errors
/// The extension has another version, or names no message. To copy the whole session instead would keep what the client
/// wants to leave out.
pub(crate) fn read_message(meta: Option<&Meta>) -> Result<Option<MessageId>, String> {
    let Some(value) = meta.and_then(find_in) else {
        return Ok(None);
    };
    let path = PATH.join(".");
    if value.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err(format!("_meta.{path} must have the version {VERSION}"));
    }
    let id = value.get("messageId").and_then(Value::as_str);
    match id.filter(|id| !id.trim().is_empty()) {
        Some(id) => Ok(Some(id.into())),
        None => Err(format!(
            "_meta.{path}.messageId must be the id of a message"
        )),
    }
}

/// Declares in the `_meta` of an agent's capabilities that it can fork sessions at a message.
pub(crate) fn declare(meta: &mut Meta) {
    insert_into(meta, json!({ "version": VERSION, "inclusive": true }));
}

/// Returns `true` if the `_meta` of an agent's capabilities declares that it can fork sessions at a message, which the
/// fork contains.
pub(crate) fn is_declared(meta: Option<&Meta>) -> bool {
    meta.and_then(find_in)
        .is_some_and(|value| value["version"] == VERSION && value["inclusive"] == true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(value: Value) -> Meta {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_message_is_added_beside_other_data() {
        let mut all = meta(json!({"jetbrains": {"air": {"version": 1}}, "mine": 2}));
        insert_message(&mut all, &"m1".into());
        let expected = json!({
            "jetbrains": {"air": {"version": 1, "fork": {"version": 1, "messageId": "m1"}}},
            "mine": 2,
        });
        assert_eq!(Value::Object(all.clone()), expected);
        assert_eq!(read_message(Some(&all)), Ok(Some("m1".into())));
        assert_eq!(read_message(None), Ok(None));
        // Something else in its place is replaced.
        let mut odd = meta(json!({"jetbrains": {"air": 7}}));
        insert_message(&mut odd, &"m1".into());
        assert_eq!(read_message(Some(&odd)), Ok(Some("m1".into())));
    }

    #[test]
    fn an_unreadable_message_is_an_error() {
        for fork in [
            json!({"version": 2, "messageId": "m1"}),
            json!({"version": 1}),
            json!({"version": 1, "messageId": " "}),
            json!("m1"),
        ] {
            let all = meta(json!({"jetbrains": {"air": {"fork": fork}}}));
            assert!(read_message(Some(&all)).is_err(), "{all:?}");
        }
    }

    #[test]
    fn only_this_version_that_keeps_the_message_counts() {
        let mut all = Meta::new();
        assert!(!is_declared(Some(&all)));
        declare(&mut all);
        assert!(is_declared(Some(&all)));
        for fork in [
            json!({"version": 2, "inclusive": true}),
            json!({"version": 1, "inclusive": false}),
            json!({"version": 1}),
        ] {
            let all = meta(json!({"jetbrains": {"air": {"fork": fork}}}));
            assert!(!is_declared(Some(&all)), "{all:?}");
        }
    }
}
