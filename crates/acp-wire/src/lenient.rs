//! Reads messages leniently. A malformed part of a message does not affect the rest.
//!
//! The schema marks fields with `x-deserialize-default-on-error` (a malformed value is read as missing) and lists
//! with `x-deserialize-skip-invalid-items`. Scalars are read in place; objects are first read as raw text, because a
//! deserializer cannot continue after an error inside them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use indexmap::IndexMap;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde_json::value::RawValue;

use crate::surrogate::read_lossy;

/// A type that can be read leniently: `null` and values of another type are read as `None`.
pub(crate) trait Lenient: Sized {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error>;
}

/// The `deserialize_with` function for optional fields.
pub(crate) fn option<'de, D: Deserializer<'de>, T: Lenient>(d: D) -> Result<Option<T>, D::Error> {
    T::lenient(d)
}

/// The `deserialize_with` function for fields with a default.
pub(crate) fn defaulted<'de, D: Deserializer<'de>, T: Lenient + Default>(
    d: D,
) -> Result<T, D::Error> {
    Ok(T::lenient(d)?.unwrap_or_default())
}

/// The `deserialize_with` function for required fields that are read leniently.
pub(crate) fn required<'de, D: Deserializer<'de>, T: Lenient>(d: D) -> Result<T, D::Error> {
    T::lenient(d)?
        .ok_or_else(|| D::Error::custom(format_args!("not a valid {}", std::any::type_name::<T>())))
}

/// The `deserialize_with` function for update fields that `null` clears.
pub(crate) fn clearable<'de, D: Deserializer<'de>, T: Lenient>(
    d: D,
) -> Result<Option<Option<T>>, D::Error> {
    let raw = <Box<RawValue> as serde::Deserialize>::deserialize(d)?;
    if raw.get() == "null" {
        return Ok(Some(None));
    }
    Ok(read_text::<T>(raw.get()).map(Some))
}

/// The `deserialize_with` function for update fields that can be any JSON value. `null` is read as a value, because it
/// clears the field.
pub(crate) fn clearable_any<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<serde_json::Value>, D::Error> {
    read_via_raw(d)
}

/// The `deserialize_with` function for lists. Skips invalid items, and reads anything other than a list as an empty
/// list.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Lenient>(d: D) -> Result<Vec<T>, D::Error> {
    Ok(optional_list(d)?.unwrap_or_default())
}

/// The `deserialize_with` function for lists in which "missing" and "empty" mean different things.
pub(crate) fn optional_list<'de, D: Deserializer<'de>, T: Lenient>(
    d: D,
) -> Result<Option<Vec<T>>, D::Error> {
    struct ListVisitor<T>(PhantomData<T>);
    impl<'de, T: Lenient> Visitor<'de> for ListVisitor<T> {
        type Value = Option<Vec<T>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = seq.next_element_seed(LenientSeed::<T>(PhantomData))? {
                items.extend(item);
            }
            Ok(Some(items))
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            drain_map(map)?;
            Ok(None)
        }
    }
    d.deserialize_any(ListVisitor(PhantomData))
}

impl<T: Lenient> Lenient for Box<T> {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        Ok(T::lenient(d)?.map(Self::new))
    }
}

impl<T: Lenient> Lenient for Vec<T> {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        optional_list(d)
    }
}

struct LenientSeed<T>(PhantomData<T>);
impl<'de, T: Lenient> DeserializeSeed<'de> for LenientSeed<T> {
    type Value = Option<T>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Option<T>, D::Error> {
        T::lenient(d)
    }
}

fn drain_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

fn drain_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Implements [`Lenient::lenient`] for types other than scalars.
pub(crate) fn read_via_raw<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    d: D,
) -> Result<Option<T>, D::Error> {
    let raw = <Box<RawValue> as serde::Deserialize>::deserialize(d)?;
    Ok(read_lossy(raw.get(), |text| serde_json::from_str(text)).ok())
}

/// Reads a value from a separate piece of JSON text, so that an error affects only this value.
pub(crate) fn read_text<T: Lenient>(text: &str) -> Option<T> {
    let read = |text: &str| T::lenient(&mut serde_json::Deserializer::from_str(text));
    read_lossy(text, read).ok().flatten()
}

/// A JSON scalar, or `Other` for `null`, a list or an object. The contents of `Other` are skipped.
enum Scalar<'a> {
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Str(Cow<'a, str>),
    Other,
}

struct ScalarVisitor<F>(F);

impl<'de, F, T> Visitor<'de> for ScalarVisitor<F>
where
    F: FnOnce(Scalar<'_>) -> Option<T>,
{
    type Value = Option<T>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }
    fn visit_bool<E>(self, v: bool) -> Result<Self::Value, E> {
        Ok((self.0)(Scalar::Bool(v)))
    }
    fn visit_i64<E>(self, v: i64) -> Result<Self::Value, E> {
        Ok((self.0)(Scalar::Signed(v)))
    }
    fn visit_u64<E>(self, v: u64) -> Result<Self::Value, E> {
        Ok((self.0)(Scalar::Unsigned(v)))
    }
    fn visit_f64<E>(self, v: f64) -> Result<Self::Value, E> {
        Ok((self.0)(Scalar::Float(v)))
    }
    fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
        Ok((self.0)(Scalar::Str(Cow::Borrowed(v))))
    }
    fn visit_string<E>(self, v: String) -> Result<Self::Value, E> {
        Ok((self.0)(Scalar::Str(Cow::Owned(v))))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok((self.0)(Scalar::Other))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        drain_seq(seq)?;
        Ok((self.0)(Scalar::Other))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        drain_map(map)?;
        Ok((self.0)(Scalar::Other))
    }
}

/// Passes a string to `f` without allocating. Returns `None` for any other value.
pub(crate) fn read_str_or_none<'de, D: Deserializer<'de>, T>(
    d: D,
    f: impl FnOnce(&str) -> T,
) -> Result<Option<T>, D::Error> {
    d.deserialize_any(ScalarVisitor(|scalar: Scalar<'_>| match scalar {
        Scalar::Str(s) => Some(f(&s)),
        _ => None,
    }))
}

/// Passes a string to `f` without allocating. Returns an error for any other value.
pub(crate) fn read_str<'de, D: Deserializer<'de>, T>(
    d: D,
    f: impl FnOnce(&str) -> T,
) -> Result<T, D::Error> {
    struct StrVisitor<F>(F);
    impl<F: FnOnce(&str) -> T, T> Visitor<'_> for StrVisitor<F> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }
        fn visit_str<E>(self, v: &str) -> Result<T, E> {
            Ok((self.0)(v))
        }
    }
    d.deserialize_str(StrVisitor(f))
}

macro_rules! lenient_scalar {
    ($($ty:ty: $scalar:ident => $read:expr;)+) => { $(
        impl Lenient for $ty {
            fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
                d.deserialize_any(ScalarVisitor(|$scalar: Scalar<'_>| $read))
            }
        }
    )+ };
}

lenient_scalar! {
    bool: s => match s { Scalar::Bool(b) => Some(b), _ => None };
    String: s => match s { Scalar::Str(s) => Some(s.into_owned()), _ => None };
    u64: s => as_u64(&s);
    u32: s => as_u64(&s).and_then(|n| u32::try_from(n).ok());
    u16: s => as_u64(&s).and_then(|n| u16::try_from(n).ok());
    i64: s => as_i64(&s);
    f64: s => match s {
        Scalar::Float(n) => Some(n),
        // A float has no more precision beyond 2^53.
        #[allow(clippy::cast_precision_loss)]
        Scalar::Unsigned(n) => Some(n as f64),
        #[allow(clippy::cast_precision_loss)]
        Scalar::Signed(n) => Some(n as f64),
        _ => None,
    };
}

/// Converts a scalar to a whole number. `3.0` counts as 3, because some languages have only floating-point numbers.
fn as_i64(scalar: &Scalar<'_>) -> Option<i64> {
    match *scalar {
        Scalar::Signed(n) => Some(n),
        Scalar::Unsigned(n) => i64::try_from(n).ok(),
        // Beyond 2^53, a float cannot represent every whole number.
        #[allow(clippy::cast_possible_truncation)]
        Scalar::Float(n) if n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0 => {
            Some(n as i64)
        }
        _ => None,
    }
}

fn as_u64(scalar: &Scalar<'_>) -> Option<u64> {
    match *scalar {
        Scalar::Unsigned(n) => Some(n),
        ref other => as_i64(other).and_then(|n| u64::try_from(n).ok()),
    }
}

/// Implements [`Lenient`] for maps. As in lists, a malformed entry does not affect the other entries.
macro_rules! lenient_map {
    ($($map:ident)+) => { $(
        impl<T: Lenient> Lenient for $map<String, T> {
            fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
                let Some(object) = read_via_raw::<D, crate::RawObject>(d)? else {
                    return Ok(None);
                };
                let entries = object.iter().filter_map(|(key, value)| {
                    let read = read_text(value.get());
                    read.map(|value| (key.to_owned(), value))
                });
                Ok(Some(entries.collect()))
            }
        }
    )+ };
}

lenient_map! { BTreeMap IndexMap }

impl Lenient for serde_json::Value {
    /// Reads the value as text first, because `Value` cannot represent some JSON, such as deep nesting and numbers
    /// outside the range of floats.
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        Ok(read_via_raw(d)?.filter(|value: &Self| !value.is_null()))
    }
}

impl Lenient for crate::Meta {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        read_via_raw(d)
    }
}

/// A string that borrows from the input where possible.
pub(crate) struct CowStr<'a>(Cow<'a, str>);

impl CowStr<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
    pub(crate) fn into_owned(self) -> String {
        self.0.into_owned()
    }
}

impl<'de> serde::Deserialize<'de> for CowStr<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct CowVisitor;
        impl<'de> Visitor<'de> for CowVisitor {
            type Value = CowStr<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(CowStr(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(CowStr(Cow::Owned(v.to_owned())))
            }
            fn visit_string<E>(self, v: String) -> Result<Self::Value, E> {
                Ok(CowStr(Cow::Owned(v)))
            }
        }
        d.deserialize_str(CowVisitor)
    }
}

// The macros generate public types, hence the allowed lints.
#[cfg(test)]
#[allow(unreachable_pub, dead_code)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    record! {
        /// A record with one field of each kind. Each field has the name of its kind.
        pub struct FieldKinds {
            /// A string that must be present. Without it, the record cannot be read.
            required required: String,
            /// A number that is 0 if it is missing.
            tolerant tolerant: u32,
            /// A string that may be missing.
            optional optional: String,
            /// A boolean that is `false` if it is missing.
            defaulted defaulted: bool,
            /// Numbers that are left out when there are none.
            list list: u32,
            /// Numbers that are always written.
            written_list written_list: u32,
            /// Numbers that are passed to `new`.
            required_list required_list: u32,
            /// Numbers that may be missing. A missing list differs from an empty one.
            optional_list optional_list: u32,
            /// A string that `null` clears.
            clearable clearable: String,
            /// Numbers that `null` clears.
            clearable_list clearable_list: u32,
            /// Any JSON value except `null`.
            any any,
            /// Any JSON value, including `null`.
            clearable_any clearable_any,
        }
    }

    /// Reads a record in which `field` has this value.
    fn parse_field(field: &str, value: &Value) -> FieldKinds {
        serde_json::from_str(&json!({"required": "r", field: value}).to_string()).unwrap()
    }

    fn parse<T: Lenient>(json: &str) -> Option<T> {
        let mut d = serde_json::Deserializer::from_str(json);
        let read = T::lenient(&mut d).unwrap();
        d.end().unwrap();
        read
    }

    #[test]
    fn absent_fields_get_defaults_and_optional_ones_stay_absent() {
        let nothing: FieldKinds = serde_json::from_str(r#"{"required":"r"}"#).unwrap();
        assert_eq!(nothing, FieldKinds::new("r", 0_u32, []));
        assert_eq!(
            serde_json::to_value(&nothing).unwrap(),
            json!({"required": "r", "tolerant": 0, "defaulted": false, "writtenList": [], "requiredList": []})
        );
        assert!(serde_json::from_str::<FieldKinds>("{}").is_err());
        assert!(serde_json::from_str::<FieldKinds>(r#"{"required":null}"#).is_err());
    }

    #[test]
    fn null_and_malformed_fields_get_the_default() {
        let nothing = FieldKinds::new("r", 0_u32, []);
        let fields = [
            "tolerant",
            "optional",
            "defaulted",
            "list",
            "writtenList",
            "requiredList",
            "optionalList",
            "_meta",
        ];
        for field in fields {
            for wrong in [json!(null), json!(-1.5), json!({"a": [1]})] {
                if field == "_meta" && wrong.is_object() {
                    continue;
                }
                assert_eq!(parse_field(field, &wrong), nothing, "{field}: {wrong}");
            }
        }
        assert_eq!(parse_field("clearable", &json!(-1.5)), nothing);
        assert_eq!(parse_field("clearableList", &json!({"a": [1]})), nothing);
        assert_eq!(parse_field("any", &json!(null)), nothing);
    }

    #[test]
    fn null_clears_clearable_fields() {
        let cleared = parse_field("clearable", &json!(null));
        assert_eq!(cleared.clearable, Some(None));
        assert_eq!(
            serde_json::to_value(&cleared).unwrap()["clearable"],
            Value::Null
        );
        assert_eq!(
            parse_field("clearable", &json!("x")),
            FieldKinds::new("r", 0_u32, []).clearable("x")
        );
        let cleared = parse_field("clearableList", &json!(null));
        assert_eq!(cleared.clearable_list, Some(None));
        let cleared = parse_field("clearableAny", &json!(null));
        assert_eq!(cleared.clearable_any, Some(Value::Null));
        assert_eq!(
            serde_json::to_value(&cleared).unwrap()["clearableAny"],
            Value::Null
        );
    }

    #[test]
    fn lists_skip_invalid_items() {
        let items = json!([1, null, "2", 3.0, -4, [5], {"a": 6}, 7.5, 8]);
        assert_eq!(parse_field("list", &items).list, [1, 3, 8]);
        assert_eq!(parse_field("writtenList", &items).written_list, [1, 3, 8]);
        assert_eq!(parse_field("requiredList", &items).required_list, [1, 3, 8]);
        assert_eq!(
            parse_field("optionalList", &items).optional_list,
            Some(vec![1, 3, 8])
        );
        assert_eq!(
            parse_field("clearableList", &items).clearable_list,
            Some(Some(vec![1, 3, 8]))
        );
    }

    #[test]
    fn an_empty_optional_list_differs_from_an_absent_one() {
        let empty = parse_field("optionalList", &json!([]));
        assert_eq!(empty.optional_list, Some(vec![]));
        assert_eq!(
            serde_json::to_value(&empty).unwrap()["optionalList"],
            json!([])
        );
        assert_eq!(
            serde_json::to_value(parse_field("list", &json!([])))
                .unwrap()
                .get("list"),
            None
        );
    }

    #[test]
    fn scalars_are_not_converted() {
        assert_eq!(parse::<bool>("true"), Some(true));
        assert_eq!(parse::<bool>("1"), None);
        assert_eq!(parse::<String>(r#""a\n""#), Some("a\n".to_owned()));
        assert_eq!(parse::<String>("5"), None);
        assert_eq!(parse::<f64>("3"), Some(3.0));
        assert_eq!(parse::<f64>("-3"), Some(-3.0));
        assert_eq!(parse::<f64>(r#""3""#), None);
        for none in ["null", "[[1],{}]", r#"{"a":{"b":[]}}"#] {
            assert_eq!(parse::<bool>(none), None);
            assert_eq!(parse::<String>(none), None);
            assert_eq!(parse::<u64>(none), None);
            assert_eq!(parse::<f64>(none), None);
        }
    }

    #[test]
    fn whole_numbers_out_of_range_are_none() {
        assert_eq!(parse::<u16>("65535"), Some(u16::MAX));
        assert_eq!(parse::<u16>("65536"), None);
        assert_eq!(parse::<u32>("4294967296"), None);
        assert_eq!(parse::<u32>("-1"), None);
        assert_eq!(parse::<u64>("18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse::<i64>("18446744073709551615"), None);
        assert_eq!(parse::<i64>("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse::<u64>("2.0"), Some(2));
        assert_eq!(parse::<u64>("2.5"), None);
        assert_eq!(parse::<i64>("-2e3"), Some(-2000));
        assert_eq!(parse::<i64>("9007199254740992.0"), Some(1 << 53));
        assert_eq!(parse::<i64>("9007199254740994.0"), None);
    }

    #[test]
    fn maps_skip_invalid_entries() {
        let map =
            parse::<BTreeMap<String, u32>>(r#"{"a":1,"b":"x","c":null,"d":[1],"e":2.0,"f":1e999}"#);
        assert_eq!(map, Some([("a".to_owned(), 1), ("e".to_owned(), 2)].into()));
        assert_eq!(parse::<BTreeMap<String, u32>>("[]"), None);
    }

    #[test]
    fn a_malformed_value_is_consumed_completely() {
        // `read` checks the end of the text; this checks that the rest of the object is still read.
        for wrong in ["{\"a\":[1,{}]}", "[[],[{}]]", "\"\\\"\"", "true", "-0.5"] {
            let json = format!(r#"{{"list":{wrong},"tolerant":{wrong},"required":"r","any":5}}"#);
            let read: FieldKinds = serde_json::from_str(&json).unwrap();
            assert_eq!(read, FieldKinds::new("r", 0_u32, []).any(5), "{wrong}");
        }
    }
}
