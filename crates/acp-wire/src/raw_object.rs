//! A JSON object that is kept exactly as it was received.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::lenient::{Lenient, read_text};
use crate::surrogate::read_lossy;

/// A JSON object whose fields are kept as text, in the order received. Unknown content is written back exactly as read,
/// including numbers of any size.
#[derive(Clone, Default)]
pub struct RawObject(Vec<(String, Box<RawValue>)>);

/// The fields that can contain the type of an object.
const TYPE_FIELDS: [&str; 2] = ["type", "sessionUpdate"];
/// The maximum length of a type to show, in bytes. The longest known type has 25 bytes.
const MAX_TYPE_BYTES: usize = 64;

/// Writes the names of all fields, but only the type field's value, because other values may be secret.
impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in &self.0 {
            let is_kind = TYPE_FIELDS.contains(&&**name) && value.get().len() <= MAX_TYPE_BYTES;
            let shown = if is_kind { value.get() } else { ".." };
            map.entry(name, &format_args!("{shown}"));
        }
        map.finish()
    }
}

impl RawObject {
    /// Returns `true` if the object has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of a field as JSON text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        // If a field occurs more than once, the last one counts, as in other JSON readers.
        self.0
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_ref())
    }

    /// Returns `true` if the object has this field and its value is not `null`. Some programs write `null` for an
    /// absent field.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get() != "null")
    }

    /// Returns the value of a field, if it exists and can be read as a `T`.
    #[must_use]
    pub fn field<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.get(key).and_then(|raw| from_raw(raw).ok())
    }

    /// Returns the fields in the order received.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_ref()))
    }

    /// Appends a field, even if the object already has one of the same name.
    pub fn push(&mut self, key: String, value: Box<RawValue>) {
        self.0.push((key, value));
    }

    /// Reads the value of a required field as a `T`, or returns an error that names the field.
    pub(crate) fn required<T: DeserializeOwned, E: serde::de::Error>(
        &self,
        key: &'static str,
    ) -> Result<T, E> {
        let raw = self.get(key).ok_or_else(|| E::missing_field(key))?;
        from_raw(raw).map_err(|e| E::custom(format_args!("{key}: {e}")))
    }

    /// Reads a field as a list. Items that are not a `T` are skipped.
    pub(crate) fn list<T: Lenient>(&self, key: &str) -> Option<Vec<T>> {
        read_text(self.get(key)?.get())
    }

    /// Renames a field, and removes any field that already has the new name.
    #[must_use]
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        if from != to && self.has(from) {
            self.0.retain(|(key, _)| key != to);
            for (key, _) in self.0.iter_mut().filter(|(key, _)| key == from) {
                to.clone_into(key);
            }
        }
        self
    }

    /// Sets a field, replacing its value if the field exists and appending it otherwise.
    pub fn set(&mut self, key: &str, value: Box<RawValue>) {
        match self.0.iter_mut().rev().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value,
            None => self.push(key.to_owned(), value),
        }
    }

    /// Removes a field and returns its value. If the field occurs more than once, returns the last value.
    pub fn take(&mut self, key: &str) -> Option<Box<RawValue>> {
        let mut taken = None;
        self.0.retain_mut(|(k, value)| {
            let stays = k != key;
            if !stays {
                taken = Some(std::mem::replace(value, RawValue::NULL.to_owned()));
            }
            stays
        });
        taken
    }

    /// Keeps only the fields for which `keep` returns `true`.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &RawValue) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    /// Removes the fields with these names.
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Self {
        self.0.retain(|(key, _)| !keys.contains(&key.as_str()));
        self
    }

    /// Deserializes the whole object as a `T`.
    ///
    /// # Errors
    /// The object is not a valid `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        // Unknown objects and those whose tag is not first are rare. Reading them from their text applies the same
        // rules as the fast path.
        let text = serde_json::to_string(self)?;
        read_lossy(&text, |text| serde_json::from_str(text))
    }
}

fn from_raw<T: DeserializeOwned>(raw: &RawValue) -> Result<T, serde_json::Error> {
    read_lossy(raw.get(), |text| serde_json::from_str(text))
}

impl PartialEq for RawObject {
    fn eq(&self, other: &Self) -> bool {
        self.0.len() == other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(a, b)| a.0 == b.0 && a.1.get() == b.1.get())
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct RawObjectVisitor;
        impl<'de> Visitor<'de> for RawObjectVisitor {
            type Value = RawObject;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut object = RawObject::default();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    object.push(key, value);
                }
                Ok(object)
            }
        }
        d.deserialize_map(RawObjectVisitor)
    }
}

impl Lenient for RawObject {
    fn lenient<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Self>, D::Error> {
        crate::lenient::read_via_raw(d)
    }
}
