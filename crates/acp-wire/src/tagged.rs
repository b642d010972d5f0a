//! Reads tagged objects, whose type is in one of their fields. Used by `tagged!`.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::RawObject;
use crate::lenient::CowStr;

/// A type with one value for each known tag of a tagged enum.
pub(crate) trait Tags: Copy {
    /// The name of the field that contains the tag.
    const FIELD: &'static str;
    /// Returns the variant for a tag, or `None` if the tag is unknown.
    fn from_tag(tag: &str) -> Option<Self>;
}

/// An object whose tag has been read.
pub(crate) enum TaggedObject<K, A> {
    /// A known tag, with the remaining fields.
    Tagged(K, UntaggedFields<A>),
    /// An unknown tag, with the whole object including the tag.
    Unknown(String, RawObject),
    /// No tag, with the whole object.
    Untagged(RawObject),
}

/// The fields of an object besides its tag.
pub(crate) enum UntaggedFields<A> {
    /// The tag came first, so the other fields are still unread.
    Streamed(A),
    /// Other fields came before the tag, so all of the fields were stored.
    Buffered(RawObject),
}

impl<'de, A: MapAccess<'de>> UntaggedFields<A> {
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, A::Error> {
        match self {
            Self::Streamed(map) => T::deserialize(MapAccessDeserializer::new(map)),
            Self::Buffered(object) => object.read().map_err(A::Error::custom),
        }
    }
}

pub(crate) fn read_tag<'de, K: Tags, A: MapAccess<'de>>(
    mut map: A,
) -> Result<TaggedObject<K, A>, A::Error> {
    let mut object = RawObject::default();
    while let Some(key) = map.next_key::<CowStr<'de>>()? {
        if key.as_str() != K::FIELD {
            object.push(key.into_owned(), map.next_value::<Box<RawValue>>()?);
            continue;
        }
        match map.next_value_seed(TagSeed::<K>(std::marker::PhantomData))? {
            // Some writers send `null` for an absent tag.
            None => {}
            Some(Ok(known)) if object.is_empty() => {
                return Ok(TaggedObject::Tagged(known, UntaggedFields::Streamed(map)));
            }
            Some(Ok(known)) => {
                while let Some(key) = map.next_key::<String>()? {
                    object.push(key, map.next_value::<Box<RawValue>>()?);
                }
                return Ok(TaggedObject::Tagged(
                    known,
                    UntaggedFields::Buffered(object),
                ));
            }
            Some(Err(tag)) => {
                object.push(
                    K::FIELD.to_owned(),
                    serde_json::value::to_raw_value(&tag).map_err(A::Error::custom)?,
                );
                while let Some(key) = map.next_key::<String>()? {
                    object.push(key, map.next_value::<Box<RawValue>>()?);
                }
                return Ok(TaggedObject::Unknown(tag, object));
            }
        }
    }
    Ok(TaggedObject::Untagged(object))
}

/// A seed for reading a tag. Does not allocate for known tags, and returns `None` for `null`.
struct TagSeed<K>(std::marker::PhantomData<K>);

impl<'de, K: Tags> DeserializeSeed<'de> for TagSeed<K> {
    type Value = Option<Result<K, String>>;
    fn deserialize<D: serde::Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        d.deserialize_any(self)
    }
}

impl<K: Tags> Visitor<'_> for TagSeed<K> {
    type Value = Option<Result<K, String>>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string in \"{}\"", K::FIELD)
    }
    fn visit_str<E: serde::de::Error>(self, tag: &str) -> Result<Self::Value, E> {
        Ok(Some(K::from_tag(tag).ok_or_else(|| tag.to_owned())))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

// The macros generate public types, hence the allowed lints.
#[cfg(test)]
#[allow(unreachable_pub, dead_code)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Color {
        Red,
        Blue,
    }

    impl Tags for Color {
        const FIELD: &'static str = "color";
        fn from_tag(tag: &str) -> Option<Self> {
            match tag {
                "red" | "rouge" => Some(Self::Red),
                "blue" => Some(Self::Blue),
                _ => None,
            }
        }
    }

    type Fields = BTreeMap<String, u32>;

    /// The result of [`open`], with its contents read.
    #[derive(Debug, PartialEq)]
    enum ReadColor {
        Streamed(Color, Fields),
        Buffered(Color, Fields),
        Unknown(String, String),
        Untagged(String),
    }

    impl<'de> Deserialize<'de> for ReadColor {
        fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            struct ReadColorVisitor;
            impl<'de> Visitor<'de> for ReadColorVisitor {
                type Value = ReadColor;
                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ReadColor, A::Error> {
                    let text = |object| serde_json::to_string(&object).unwrap();
                    Ok(match read_tag::<Color, A>(map)? {
                        TaggedObject::Tagged(color, rest @ UntaggedFields::Streamed(_)) => {
                            ReadColor::Streamed(color, rest.read()?)
                        }
                        TaggedObject::Tagged(color, rest @ UntaggedFields::Buffered(_)) => {
                            ReadColor::Buffered(color, rest.read()?)
                        }
                        TaggedObject::Unknown(tag, object) => ReadColor::Unknown(tag, text(object)),
                        TaggedObject::Untagged(object) => ReadColor::Untagged(text(object)),
                    })
                }
            }
            d.deserialize_map(ReadColorVisitor)
        }
    }

    fn read_color(json: &str) -> Result<ReadColor, serde_json::Error> {
        serde_json::from_str(json)
    }

    fn color_fields<const N: usize>(fields: [(&str, u32); N]) -> Fields {
        fields.map(|(key, value)| (key.to_owned(), value)).into()
    }

    #[test]
    fn fields_after_a_leading_tag_are_streamed() {
        let color = read_color(r#"{"color":"red","a":1,"b":2}"#).unwrap();
        assert_eq!(
            color,
            ReadColor::Streamed(Color::Red, color_fields([("a", 1), ("b", 2)]))
        );
        let color = read_color(r#"{ "col\u006fr" : "r\u0065d" }"#).unwrap();
        assert_eq!(color, ReadColor::Streamed(Color::Red, color_fields([])));
        assert_eq!(
            read_color(r#"{"color":"rouge"}"#).unwrap(),
            ReadColor::Streamed(Color::Red, color_fields([]))
        );
    }

    #[test]
    fn fields_around_a_later_tag_are_buffered() {
        let color = read_color(r#"{"a":1,"color":"blue","b":2}"#).unwrap();
        assert_eq!(
            color,
            ReadColor::Buffered(Color::Blue, color_fields([("a", 1), ("b", 2)]))
        );
        let color = read_color(r#"{"a":1,"color":"blue"}"#).unwrap();
        assert_eq!(
            color,
            ReadColor::Buffered(Color::Blue, color_fields([("a", 1)]))
        );
    }

    #[test]
    fn an_object_with_an_unknown_tag_is_preserved_in_order() {
        for json in [
            r#"{"color":"mauve","b":1.50,"a":[ 1 ]}"#,
            r#"{"b":1.50,"color":"mauve","a":[ 1 ]}"#,
            r#"{"b":1.50,"a":[ 1 ],"color":"mauve"}"#,
        ] {
            assert_eq!(
                read_color(json).unwrap(),
                ReadColor::Unknown("mauve".to_owned(), json.to_owned())
            );
        }
    }

    #[test]
    fn an_object_without_a_tag_is_preserved() {
        for json in ["{}", r#"{"b":1,"a":2}"#] {
            assert_eq!(
                read_color(json).unwrap(),
                ReadColor::Untagged(json.to_owned())
            );
        }
        let color = read_color(r#"{"b":1,"color":null,"a":2}"#).unwrap();
        assert_eq!(color, ReadColor::Untagged(r#"{"b":1,"a":2}"#.to_owned()));
    }

    #[test]
    fn a_tag_that_is_not_a_string_is_an_error() {
        for json in [
            r#"{"color":5}"#,
            r#"{"a":1,"color":["red"]}"#,
            r#"{"color":true}"#,
        ] {
            let error = read_color(json).unwrap_err();
            assert!(
                error.to_string().contains(r#"a string in "color""#),
                "{error}"
            );
        }
    }

    #[test]
    fn errors_in_other_fields_are_reported() {
        for json in [r#"{"color":"red","a":"x"}"#, r#"{"a":"x","color":"red"}"#] {
            let error = read_color(json).unwrap_err();
            assert!(
                error.to_string().contains("invalid type: string \"x\""),
                "{error}"
            );
        }
    }

    // The macro under test, which uses `Tags`.
    tagged! {
        /// An enum that has an alias, a variant without a tag, and a fallback.
        pub enum ColorUnion by "color" {
            /// A variant with two tags.
            Red(crate::v1::TextContent) = "red" | "rouge",
            ;
            /// The variant without a tag.
            Plain(crate::v1::HttpHeader) without tag
        }
        fallback = read_crimson;
    }

    fn read_crimson(tag: &str, object: &RawObject) -> Option<ColorUnion> {
        (tag == "crimson").then(|| object.read().ok().map(ColorUnion::Red))?
    }

    #[test]
    fn the_macro_writes_the_current_tag_for_aliases() {
        for tag in ["red", "rouge", "crimson"] {
            for json in [
                format!(r#"{{"color":"{tag}","text":"t"}}"#),
                format!(r#"{{"text":"t","color":"{tag}"}}"#),
            ] {
                let color: ColorUnion = serde_json::from_str(&json).unwrap();
                assert_eq!(color, ColorUnion::Red(crate::v1::TextContent::new("t")));
                assert_eq!(
                    serde_json::to_string(&color).unwrap(),
                    r#"{"color":"red","text":"t"}"#
                );
            }
        }
        assert_eq!(ColorUnion::TAGS, ["red"]);
    }

    #[test]
    fn the_macro_passes_unknown_tags_to_the_fallback() {
        // The fallback accepts the tag, but cannot read the object.
        let json = r#"{"color":"crimson","name":"n","value":"v"}"#;
        let color: ColorUnion = serde_json::from_str(json).unwrap();
        assert!(matches!(color, ColorUnion::Unknown(_)), "{color:?}");
        assert_eq!(serde_json::to_string(&color).unwrap(), json);

        let color: ColorUnion = serde_json::from_str(r#"{"name":"n","value":"v"}"#).unwrap();
        assert_eq!(
            color,
            ColorUnion::Plain(crate::v1::HttpHeader::new("n", "v"))
        );
        assert_eq!(
            serde_json::to_string(&color).unwrap(),
            r#"{"name":"n","value":"v"}"#
        );
        assert!(serde_json::from_str::<ColorUnion>(r#"{"name":"n"}"#).is_err());
    }
}
