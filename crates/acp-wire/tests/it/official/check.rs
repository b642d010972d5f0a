//! Checks for every message, shared by both versions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};

use acp_wire::Method;
use arbitrary::{Arbitrary, Unstructured};
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Generates the bytes from which a message is built. Three quarters of them are printable, because a string ends at
/// the first byte that is not UTF-8. The rest are arbitrary, because they select variants.
pub(crate) fn arbitrary_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..2000).prop_map(|mut bytes| {
        for (byte, low) in bytes.iter_mut().zip((0..4).cycle()) {
            *byte = if *byte < 192 {
                0x20 + *byte / 2
            } else {
                (*byte - 192) * 4 + low
            };
        }
        bytes
    })
}

pub(crate) fn generate<T: for<'a> Arbitrary<'a>>(bytes: &[u8]) -> T {
    T::arbitrary(&mut Unstructured::new(bytes)).unwrap()
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Value {
    // As text, because that is what is sent.
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

pub(crate) fn from_json<T: DeserializeOwned>(json: &Value, what: &str) -> T {
    serde_json::from_str(&json.to_string()).unwrap_or_else(|e| panic!("{what}: {e}: {json}"))
}

pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}

/// Checks that the official crate and this one write the same JSON. Panics with a list of the differences otherwise.
fn assert_same_json(theirs: &Value, ours: &Value) {
    fn collect_differences(
        path: &str,
        theirs: Option<&Value>,
        ours: Option<&Value>,
        found: &mut String,
    ) {
        match (theirs, ours) {
            (theirs, ours) if theirs == ours => {}
            (Some(Value::Object(theirs)), Some(Value::Object(ours))) => {
                for key in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
                    collect_differences(
                        &format!("{path}/{key}"),
                        theirs.get(key),
                        ours.get(key),
                        found,
                    );
                }
            }
            (Some(Value::Array(theirs)), Some(Value::Array(ours))) => {
                for i in 0..theirs.len().max(ours.len()) {
                    collect_differences(&format!("{path}/{i}"), theirs.get(i), ours.get(i), found);
                }
            }
            (theirs, ours) => {
                let text =
                    |json: Option<&Value>| json.map_or("nothing".to_owned(), Value::to_string);
                *found += &format!("\n{path}: they {}, we {}", text(theirs), text(ours));
            }
        }
    }
    let mut found = String::new();
    collect_differences("", Some(theirs), Some(ours), &mut found);
    assert!(
        found.is_empty(),
        "the official crate writes something else than we do:{found}"
    );
}

/// Checks that a value of our type survives conversion to the official type and back. The JSON in between must match
/// the schema. `common` removes the parts that only one of the two crates supports.
pub(crate) fn assert_our_value_is_preserved<Ours, Official>(
    ours: &Ours,
    schema: &Validator,
    common: fn(Value) -> Value,
) where
    Ours: Serialize + DeserializeOwned + PartialEq + Debug,
    Official: Serialize + DeserializeOwned,
{
    let written = to_json(ours);
    if let Err(e) = schema.validate(&written) {
        panic!(
            "what we write is not valid: {} at {}: {written}",
            e,
            e.instance_path()
        );
    }
    let again: Ours = from_json(&written, "we cannot read what we write");
    assert_eq!(&again, ours, "{written}");
    let official: Official = from_json(&written, "the official crate cannot read what we write");
    let theirs = to_json(&official);
    let written = common(written);
    assert_same_json(&common(theirs.clone()), &written);
    let back: Ours = from_json(&theirs, "we cannot read what the official crate writes");
    let common: Ours = from_json(&written, "we cannot read a part of what we write");
    assert_eq!(back, common, "{theirs}");
}

/// Checks that a value of the official type survives conversion to our type and back, compared as JSON.
pub(crate) fn assert_official_value_is_preserved<Ours, Official>(
    official: &Official,
    common: fn(Value) -> Value,
) where
    Ours: Serialize + DeserializeOwned,
    Official: Serialize + DeserializeOwned,
{
    let theirs = to_json(official);
    let ours: Ours = from_json(&theirs, "we cannot read what the official crate writes");
    let our_json = to_json(&ours);
    let theirs = common(theirs);
    assert_same_json(&theirs, &common(our_json.clone()));
    let back: Official = from_json(&our_json, "the official crate cannot read what we write");
    assert_eq!(common(to_json(&back)), theirs);
}

/// The types to check, by name, each with its official schema.
pub(crate) type Schemas = [(&'static str, fn() -> Value)];

/// Defines two tests for each type, which must have the same name in both crates.
macro_rules! messages {
    (common = $common:path; $($name:ident)+) => {
        const CHECKED_TYPES: &check::Schemas =
            &[$((stringify!($name), check::schema_of::<official_types::$name>)),+];
        mod our_messages {
            use super::*;
            $(
                #[test]
                #[allow(non_snake_case)]
                fn $name() {
                    let schema = jsonschema::validator_for(&check::schema_of::<official_types::$name>()).unwrap();
                    proptest!(|(bytes in check::arbitrary_bytes())| {
                        let ours: super::$name = check::generate(&bytes);
                        check::assert_our_value_is_preserved::<_, official_types::$name>(&ours, &schema, $common);
                    });
                }
            )+
        }
        mod official_messages {
            use super::*;
            $(
                #[test]
                #[allow(non_snake_case)]
                fn $name() {
                    let samples = Samples::for_schema(&check::schema_of::<official_types::$name>());
                    assert!(!samples.is_empty());
                    for sample in samples {
                        let official: official_types::$name =
                            check::from_json(&sample, "the official crate cannot read its own schema");
                        check::assert_official_value_is_preserved::<super::$name, _>(&official, $common);
                    }
                }
            )+
        }
    };
}

/// The tags and enum values that we support, for each union and enum in the official schema.
#[derive(Default)]
pub(crate) struct KnownVariants(BTreeMap<&'static str, BTreeSet<String>>);

impl KnownVariants {
    pub(crate) fn add<T: Display>(&mut self, definition: &'static str, ours: &[T]) {
        let ours = ours.iter().map(ToString::to_string).collect();
        assert!(
            self.0.insert(definition, ours).is_none(),
            "{definition} twice"
        );
    }

    /// Checks that the supported values are exactly the constants in the official schemas.
    pub(crate) fn assert_covers_schemas(&self, schemas: &Schemas) {
        let mut theirs = BTreeMap::new();
        for (name, schema) in schemas {
            let mut schema = schema();
            let definitions = schema.as_object_mut().unwrap().remove("$defs");
            let definitions = definitions
                .as_ref()
                .and_then(Value::as_object)
                .into_iter()
                .flatten();
            for (name, definition) in definitions.chain([(&(*name).to_owned(), &schema)]) {
                let mut found = BTreeSet::new();
                collect_constants(definition, &mut found);
                if !found.is_empty() {
                    theirs.insert(name.clone(), found);
                }
            }
        }
        let ours = self
            .0
            .iter()
            .map(|(name, ours)| ((*name).to_owned(), ours.clone()));
        let ours: BTreeMap<_, _> = ours.collect();
        for name in theirs.keys().chain(ours.keys()) {
            assert_eq!(theirs.get(name), ours.get(name), "{name}: they and we");
        }
    }
}

/// Collects every constant string in a schema.
fn collect_constants(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect_constants(item, found)),
        Value::Object(object) => {
            found.extend(
                object
                    .get("const")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            object
                .values()
                .for_each(|value| collect_constants(value, found));
        }
        _ => {}
    }
}

/// Checks that the checked types include every type in a method table, except for the methods in `but`.
pub(crate) fn assert_covers_table(methods: &[Method], checked: &Schemas, but: &[&str]) {
    for row in methods {
        for name in std::iter::once(row.params).chain(row.result) {
            assert_ne!(
                checked.iter().any(|(checked, _)| *checked == name),
                but.contains(&row.name),
                "{name} of {}",
                row.name
            );
        }
    }
}

/// Checks that every expected tag occurs in the generated values.
pub(crate) fn assert_generated<T: for<'a> Arbitrary<'a> + Serialize>(key: &str, expected: &[&str]) {
    fn collect_tags(value: &Value, key: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| collect_tags(item, key, found)),
            Value::Object(object) => {
                found.extend(object.get(key).and_then(Value::as_str).map(str::to_owned));
                object
                    .values()
                    .for_each(|value| collect_tags(value, key, found));
            }
            _ => {}
        }
    }
    let mut runner = TestRunner::deterministic();
    let mut found = BTreeSet::new();
    let mut missing = expected.to_vec();
    for _ in 0..4096 {
        let bytes = arbitrary_bytes().new_tree(&mut runner).unwrap().current();
        collect_tags(&to_json(&generate::<T>(&bytes)), key, &mut found);
        missing.retain(|&tag| !found.contains(tag));
        if missing.is_empty() {
            return;
        }
    }
    panic!("{key}: {missing:?} are never made");
}
