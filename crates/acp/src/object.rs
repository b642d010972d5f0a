//! Helpers for JSON objects with raw values, which preserve unknown fields and numbers of any size.

use acp_wire::RawObject;
use serde::Serialize;
use serde_json::value::RawValue;

/// Builds a [`RawObject`] from fields.
macro_rules! object {
    ($($key:literal: $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut object = acp_wire::RawObject::default();
        $( object.push($key.to_owned(), $crate::object::to_raw_value(&$value)); )*
        object
    }};
}

/// Serializes a value as JSON. This library's own values can always be serialized.
pub(crate) fn to_raw_value(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Reads a value as an object, or returns an empty object if it is not one.
pub(crate) fn to_object(value: Option<&RawValue>) -> RawObject {
    value
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default()
}
