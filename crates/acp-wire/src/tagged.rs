//! How an object that is told apart by one of its fields is read; used by `tagged!`.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::RawObject;
use crate::lenient::CowStr;

/// The tags of one union.
pub(crate) trait Tags: Copy {
    /// The field that holds the tag.
    const FIELD: &'static str;
    /// The variant a tag stands for.
    fn of(tag: &str) -> Option<Self>;
}

/// An object whose tag has been read.
pub(crate) enum Opened<K, A> {
    /// A known tag, and the fields that are left to read.
    Tagged(K, Rest<A>),
    /// An unknown tag, and the whole object with it.
    Unknown(String, RawObject),
    /// No tag at all, and the whole object.
    Untagged(RawObject),
}

/// The fields beside the tag.
pub(crate) enum Rest<A> {
    /// The tag came first: the rest has not been touched.
    Streamed(A),
    /// Fields came before the tag, so all of them were kept.
    Kept(RawObject),
}

impl<'de, A: MapAccess<'de>> Rest<A> {
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, A::Error> {
        match self {
            Self::Streamed(map) => T::deserialize(MapAccessDeserializer::new(map)),
            Self::Kept(object) => object.read().map_err(A::Error::custom),
        }
    }
}

pub(crate) fn open<'de, K: Tags, A: MapAccess<'de>>(mut map: A) -> Result<Opened<K, A>, A::Error> {
    let mut object = RawObject::default();
    while let Some(key) = map.next_key::<CowStr<'de>>()? {
        if key.as_str() != K::FIELD {
            object.push(key.into_owned(), map.next_value::<Box<RawValue>>()?);
            continue;
        }
        match map.next_value_seed(TagSeed::<K>(std::marker::PhantomData))? {
            // Writers are known to write `null` for absent.
            None => {}
            Some(Ok(known)) if object.is_empty() => {
                return Ok(Opened::Tagged(known, Rest::Streamed(map)));
            }
            Some(Ok(known)) => {
                while let Some(key) = map.next_key::<String>()? {
                    object.push(key, map.next_value::<Box<RawValue>>()?);
                }
                return Ok(Opened::Tagged(known, Rest::Kept(object)));
            }
            Some(Err(tag)) => {
                object.push(
                    K::FIELD.to_owned(),
                    serde_json::value::to_raw_value(&tag).map_err(A::Error::custom)?,
                );
                while let Some(key) = map.next_key::<String>()? {
                    object.push(key, map.next_value::<Box<RawValue>>()?);
                }
                return Ok(Opened::Unknown(tag, object));
            }
        }
    }
    Ok(Opened::Untagged(object))
}

/// Reads the tag without allocating when it is known; `None` for `null`.
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
        Ok(Some(K::of(tag).ok_or_else(|| tag.to_owned())))
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}
