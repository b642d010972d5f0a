//! JSON objects whose values stay as they came: fields that nobody here knows, and numbers of any size, pass.

use acp_wire::RawObject;
use serde::Serialize;
use serde_json::value::RawValue;

/// An object of these fields.
macro_rules! object {
    ($($key:literal: $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut object = acp_wire::RawObject::default();
        $( object.push($key.to_owned(), $crate::object::to_raw_value(&$value)); )*
        object
    }};
}

/// A value as text. What is written here can always be written.
pub(crate) fn to_raw_value(value: &(impl Serialize + ?Sized)) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The value as an object; an empty one if it is none.
pub(crate) fn object(value: Option<&RawValue>) -> RawObject {
    value
        .and_then(|value| serde_json::from_str(value.get()).ok())
        .unwrap_or_default()
}
