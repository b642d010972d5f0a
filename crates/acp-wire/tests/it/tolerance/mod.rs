//! Tests of invalid messages. Reading one loses only its invalid part, and the library never writes one.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

mod envelope;
mod surrogates;
mod v1;
mod v2;

const FORTY_DIGITS: &str = "1234567890123456789012345678901234567890";

fn from_json<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_str(&json.to_string()).unwrap_or_else(|e| panic!("{e}: {json}"))
}

fn to_json_text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

fn to_json<T: Serialize>(value: &T) -> Value {
    serde_json::from_str(&to_json_text(value)).unwrap()
}

/// Checks that a value is written exactly as it was read.
fn assert_round_trips<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(
    json: &str,
) -> T {
    let value: T = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {json}"));
    assert_eq!(to_json_text(&value), json);
    let again: T = serde_json::from_str(&to_json_text(&value)).unwrap();
    assert_eq!(again, value);
    value
}

fn raw_value(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}
