//! Test cases, read from `tests/data`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use acp_wire::{Method, MethodKind};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageCase {
    pub(crate) method: String,
    #[serde(default, deserialize_with = "deserialize_present")]
    pub(crate) params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "deserialize_present")]
    result: Option<Box<RawValue>>,
    pub(crate) written: Option<Value>,
}

/// Deserializes a field, treating an explicit `null` as present.
fn deserialize_present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(d).map(Some)
}

impl MessageCase {
    /// Returns the message as raw JSON, from either the params or the result.
    pub(crate) fn raw(&self) -> &RawValue {
        self.params.as_deref().or(self.result.as_deref()).unwrap()
    }
}

/// Reads all cases of a protocol version.
pub(crate) fn read_cases(version: &str) -> BTreeMap<String, MessageCase> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(version);
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let file: BTreeMap<String, MessageCase> =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for (name, case) in file {
            assert!(
                case.params.is_some() != case.result.is_some(),
                "{name}: params or result"
            );
            assert!(
                all.insert(name.clone(), case).is_none(),
                "{name} is there twice"
            );
        }
    }
    all
}

/// Checks that every method has a case with params, and that every request also has one with a result.
pub(crate) fn check_every_method_has_cases(version: &str, methods: &[Method]) {
    let cases = read_cases(version);
    let mut missing = Vec::new();
    for row in methods {
        let has = |part: fn(&MessageCase) -> bool| {
            cases
                .values()
                .any(|case| case.method == row.name && part(case))
        };
        if !has(|case| case.params.is_some()) {
            missing.push(format!("params of {}", row.name));
        }
        if row.kind == MethodKind::Request && !has(|case| case.result.is_some()) {
            missing.push(format!("result of {}", row.name));
        }
    }
    assert_eq!(missing, Vec::<String>::new());
}

/// Turns an object into arrays: an empty one, and its values in several orders. A reader that wrongly accepts an array
/// for an object assigns the values to the fields in declaration order, which usually matches the specification's
/// order.
pub(crate) fn to_arrays(object: &Value) -> Vec<Value> {
    let values: Vec<Value> = object.as_object().unwrap().values().cloned().collect();
    let mut arrays = vec![Value::Array(Vec::new())];
    for turn in 0..values.len() {
        let mut turned = values.clone();
        turned.rotate_left(turn);
        arrays.push(Value::Array(turned.clone()));
        turned.reverse();
        arrays.push(Value::Array(turned));
    }
    arrays
}

/// Turns the params or results in a method's cases into arrays.
pub(crate) fn array_variants(version: &str, method: &str, of_params: bool) -> Vec<Box<RawValue>> {
    let raw = |value: &Value| serde_json::value::to_raw_value(value).unwrap();
    let mut arrays = vec![raw(&Value::Array(Vec::new()))];
    for case in read_cases(version).values() {
        if case.method == method && case.params.is_some() == of_params {
            let message: Value = serde_json::from_str(case.raw().get()).unwrap();
            if message.is_object() {
                arrays.extend(to_arrays(&message).iter().map(raw));
            }
        }
    }
    arrays
}

/// Returns JSON pointers to all objects nested in a message.
pub(crate) fn nested_object_pointers(message: &Value) -> Vec<String> {
    fn collect_objects(value: &Value, place: &str, found: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    collect_objects(item, &format!("{place}/{at}"), found);
                }
            }
            Value::Object(object) => {
                if !place.is_empty() {
                    found.push(place.to_owned());
                }
                for (key, value) in object {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    collect_objects(value, &format!("{place}/{key}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect_objects(message, "", &mut found);
    found
}

/// The string values that occur in one version's cases, by key.
pub(crate) struct KnownKeys(BTreeMap<String, BTreeSet<String>>);

impl KnownKeys {
    pub(crate) fn from_cases(version: &str) -> Self {
        let mut told = Self(BTreeMap::new());
        for case in read_cases(version).values() {
            told.walk(&serde_json::from_str(case.raw().get()).unwrap());
        }
        told
    }

    fn walk(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(object) => {
                for (key, value) in object {
                    let texts = match value {
                        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
                        value => Vec::from_iter(value.as_str()),
                    };
                    let found = self.0.entry(key.clone()).or_default();
                    found.extend(texts.into_iter().map(str::to_owned));
                    self.walk(value);
                }
            }
            _ => {}
        }
    }

    /// Checks that every expected value of a key occurs in the cases.
    pub(crate) fn assert_values<T: ToString>(&self, key: &str, expected: &[T]) {
        let missing: Vec<_> = expected
            .iter()
            .map(ToString::to_string)
            .filter(|value| !self.0.get(key).is_some_and(|found| found.contains(value)))
            .collect();
        assert_eq!(
            missing,
            Vec::<String>::new(),
            "values of {key:?} that are in no case"
        );
    }
}
