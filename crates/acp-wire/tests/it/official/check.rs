//! The checks of every message, the same for both versions.

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

/// The bytes that a message is generated from. Three of four are printable, because a string ends at the first byte
/// that is not UTF-8. The others are arbitrary, because they choose between variants.
pub(crate) fn bytes() -> impl Strategy<Value = Vec<u8>> {
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

pub(crate) fn made_of<T: for<'a> Arbitrary<'a>>(bytes: &[u8]) -> T {
    T::arbitrary(&mut Unstructured::new(bytes)).unwrap()
}

pub(crate) fn json_of<T: Serialize>(value: &T) -> Value {
    // As text, because that is what is sent.
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

pub(crate) fn read<T: DeserializeOwned>(json: &Value, what: &str) -> T {
    serde_json::from_str(&json.to_string()).unwrap_or_else(|e| panic!("{what}: {e}: {json}"))
}

pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}

/// Checks that the official crate and this one write the same, and shows where they differ.
fn same(theirs: &Value, ours: &Value) {
    fn differences(path: &str, theirs: Option<&Value>, ours: Option<&Value>, found: &mut String) {
        match (theirs, ours) {
            (theirs, ours) if theirs == ours => {}
            (Some(Value::Object(theirs)), Some(Value::Object(ours))) => {
                for key in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
                    differences(
                        &format!("{path}/{key}"),
                        theirs.get(key),
                        ours.get(key),
                        found,
                    );
                }
            }
            (Some(Value::Array(theirs)), Some(Value::Array(ours))) => {
                for i in 0..theirs.len().max(ours.len()) {
                    differences(&format!("{path}/{i}"), theirs.get(i), ours.get(i), found);
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
    differences("", Some(theirs), Some(ours), &mut found);
    assert!(
        found.is_empty(),
        "the official crate writes something else than we do:{found}"
    );
}

/// Checks the path from our type to JSON, which must be valid, to the official type, to JSON and back to our type.
/// `common` removes what only one of the two crates has.
pub(crate) fn ours_survives<Ours, Official>(
    ours: &Ours,
    schema: &Validator,
    common: fn(Value) -> Value,
) where
    Ours: Serialize + DeserializeOwned + PartialEq + Debug,
    Official: Serialize + DeserializeOwned,
{
    let written = json_of(ours);
    if let Err(e) = schema.validate(&written) {
        panic!(
            "what we write is not valid: {} at {}: {written}",
            e,
            e.instance_path()
        );
    }
    let again: Ours = read(&written, "we cannot read what we write");
    assert_eq!(&again, ours, "{written}");
    let official: Official = read(&written, "the official crate cannot read what we write");
    let theirs = json_of(&official);
    let written = common(written);
    same(&common(theirs.clone()), &written);
    let back: Ours = read(&theirs, "we cannot read what the official crate writes");
    let common: Ours = read(&written, "we cannot read a part of what we write");
    assert_eq!(back, common, "{theirs}");
}

/// Checks the path from the official type to JSON, to our type, to JSON and back to the official type.
pub(crate) fn official_survives<Ours, Official>(official: &Official, common: fn(Value) -> Value)
where
    Ours: Serialize + DeserializeOwned,
    Official: Serialize + DeserializeOwned,
{
    let theirs = json_of(official);
    let ours: Ours = read(&theirs, "we cannot read what the official crate writes");
    let our_json = json_of(&ours);
    let theirs = common(theirs);
    same(&theirs, &common(our_json.clone()));
    let back: Official = read(&our_json, "the official crate cannot read what we write");
    assert_eq!(common(json_of(&back)), theirs);
}

/// The checked types by name, each with its official schema.
pub(crate) type Schemas = [(&'static str, fn() -> Value)];

/// Defines two tests for each of these types, which have the same name in both crates.
macro_rules! messages {
    (common = $common:path; $($name:ident)+) => {
        const CHECKED: &check::Schemas =
            &[$((stringify!($name), check::schema_of::<they::$name>)),+];
        mod what_we_write {
            use super::*;
            $(
                #[test]
                #[allow(non_snake_case)]
                fn $name() {
                    let schema = jsonschema::validator_for(&check::schema_of::<they::$name>()).unwrap();
                    proptest!(|(bytes in check::bytes())| {
                        let ours: super::$name = check::made_of(&bytes);
                        check::ours_survives::<_, they::$name>(&ours, &schema, $common);
                    });
                }
            )+
        }
        mod what_they_write {
            use super::*;
            $(
                #[test]
                #[allow(non_snake_case)]
                fn $name() {
                    let samples = Samples::of(&check::schema_of::<they::$name>());
                    assert!(!samples.is_empty());
                    for sample in samples {
                        let official: they::$name =
                            check::read(&sample, "the official crate cannot read its own schema");
                        check::official_survives::<super::$name, _>(&official, $common);
                    }
                }
            )+
        }
    };
}

/// The tags and values that we support, for each union and enum of the official schema.
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

    /// Checks that these are exactly the definitions with constant strings in the official schemas.
    pub(crate) fn is_all_of(&self, schemas: &Schemas) {
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
                constants(definition, &mut found);
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

/// Returns every constant string in a schema.
fn constants(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| constants(item, found)),
        Value::Object(object) => {
            found.extend(
                object
                    .get("const")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            object.values().for_each(|value| constants(value, found));
        }
        _ => {}
    }
}

/// Checks that every type of a method table is among the checked types.
pub(crate) fn all_of_the_table(methods: &[Method], checked: &Schemas, but: &[&str]) {
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

/// Checks that the generated values include each of these tags.
pub(crate) fn are_made<T: for<'a> Arbitrary<'a> + Serialize>(key: &str, expected: &[&str]) {
    fn tags_of(value: &Value, key: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| tags_of(item, key, found)),
            Value::Object(object) => {
                found.extend(object.get(key).and_then(Value::as_str).map(str::to_owned));
                object.values().for_each(|value| tags_of(value, key, found));
            }
            _ => {}
        }
    }
    let mut runner = TestRunner::deterministic();
    let mut found = BTreeSet::new();
    for _ in 0..4096 {
        let bytes = bytes().new_tree(&mut runner).unwrap().current();
        tags_of(&json_of(&made_of::<T>(&bytes)), key, &mut found);
    }
    let missing: Vec<_> = expected
        .iter()
        .filter(|&&tag| !found.contains(tag))
        .collect();
    assert!(missing.is_empty(), "{key}: {missing:?} are never made");
}
