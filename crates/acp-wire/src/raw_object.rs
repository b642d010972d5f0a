//! A JSON object kept as it came.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::lenient::{Lenient, from_text};
use crate::surrogate::read_lossy;

/// A JSON object whose values are kept as text, in the order they came: what is unknown is written
/// back as it was read, numbers of any size included.
#[derive(Clone, Default)]
pub struct RawObject(Vec<(String, Box<RawValue>)>);

/// The fields that name a kind. The longest name there is has 25 bytes.
const KINDS: [&str; 2] = ["type", "sessionUpdate"];
const LONGEST_KIND: usize = 64;

/// The names of its fields and what kind it is: nobody knows what else is secret in what is unknown.
impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for (name, value) in &self.0 {
            let is_kind = KINDS.contains(&&**name) && value.get().len() <= LONGEST_KIND;
            let shown = if is_kind { value.get() } else { ".." };
            map.entry(name, &format_args!("{shown}"));
        }
        map.finish()
    }
}

impl RawObject {
    /// Whether the object has no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a field as JSON text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        // The last one wins, as in every JSON reader.
        self.0
            .iter()
            .rev()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_ref())
    }

    /// Whether there is such a field, and not `null`: writers are known to write `null` for absent.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get() != "null")
    }

    /// The value of a field, if it is there and can be read as a `T`.
    #[must_use]
    pub fn field<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        self.get(key).and_then(|raw| from_raw(raw).ok())
    }

    /// The fields in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_ref()))
    }

    /// Adds a field at the end.
    pub fn push(&mut self, key: String, value: Box<RawValue>) {
        self.0.push((key, value));
    }

    /// The value of a field that must be there, as a `T`.
    pub(crate) fn required<T: DeserializeOwned, E: serde::de::Error>(
        &self,
        key: &'static str,
    ) -> Result<T, E> {
        let raw = self.get(key).ok_or_else(|| E::missing_field(key))?;
        from_raw(raw).map_err(|e| E::custom(format_args!("{key}: {e}")))
    }

    /// The items of a field that is a list, those left out that are no `T`.
    pub(crate) fn list<T: Lenient>(&self, key: &str) -> Option<Vec<T>> {
        from_text(self.get(key)?.get())
    }

    /// The object with a field called by another name, in place of any of that name.
    #[must_use]
    pub fn renamed(mut self, from: &str, to: &str) -> Self {
        if from != to && self.has(from) {
            self.0.retain(|(key, _)| key != to);
            for (key, _) in self.0.iter_mut().filter(|(key, _)| key == from) {
                to.clone_into(key);
            }
        }
        self
    }

    /// Sets a field: in its place, or at the end.
    pub fn set(&mut self, key: &str, value: Box<RawValue>) {
        match self.0.iter_mut().rev().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value,
            None => self.push(key.to_owned(), value),
        }
    }

    /// Takes a field out; its last value, if it came more than once.
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

    /// Keeps the fields that `keep` says yes to.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &RawValue) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    /// The object without some fields.
    #[must_use]
    pub fn without(mut self, keys: &[&str]) -> Self {
        self.0.retain(|(key, _)| !keys.contains(&key.as_str()));
        self
    }

    /// Reads the whole object as a `T`.
    ///
    /// # Errors
    /// What `T` says of the object.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        // Unknown and out-of-order objects are rare; reading them from their text keeps one set of
        // rules for them and for the fast way.
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
        crate::lenient::via_raw(d)
    }
}
