//! A bounded map that drops the least recently used entry.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The maximum length of an id that is used as a key unchanged, in bytes.
const MAX_KEY_BYTES: usize = 4096;

/// Returns the key for an id: the id itself or, if it is too long, its start and a hash.
pub(crate) fn to_key(id: &str) -> Cow<'_, str> {
    if id.len() <= MAX_KEY_BYTES {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let beginning: String = id.chars().take(64).collect();
    Cow::Owned(format!("{beginning}… {:x}", hasher.finish()))
}

/// A map from ids to values with at most `N` entries. A full map drops the least recently used entry.
#[derive(Debug)]
pub(crate) struct LruMap<T, const N: usize> {
    entries: HashMap<String, (u64, T)>,
    clock: u64,
}

impl<T, const N: usize> Default for LruMap<T, N> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            clock: 0,
        }
    }
}

impl<T: Default, const N: usize> LruMap<T, N> {
    /// Returns the value for an id, without marking it as used.
    pub(crate) fn get(&self, id: &str) -> Option<&T> {
        self.entries.get(&*to_key(id)).map(|(_, thing)| thing)
    }

    /// Returns the value for an id, inserting a default value if there is none, and marks it as used.
    pub(crate) fn get_or_insert(&mut self, id: &str) -> &mut T {
        self.clock += 1;
        let id = to_key(id);
        if !self.entries.contains_key(&*id) && self.entries.len() >= N {
            self.remove_oldest(&id);
        }
        let entry = self.entries.entry(id.into_owned()).or_default();
        entry.0 = self.clock;
        &mut entry.1
    }

    /// Removes the least recently used entry other than the one for `but`. Returns `true` if an entry was removed.
    pub(crate) fn remove_oldest(&mut self, but: &str) -> bool {
        let but = to_key(but);
        let others = self.entries.iter().filter(|(id, _)| **id != *but);
        let oldest = others.min_by_key(|(_, (touched, _))| *touched);
        match oldest.map(|(id, _)| id.clone()) {
            Some(id) => self.entries.remove(&id).is_some(),
            None => false,
        }
    }

    /// Removes the entry for an id.
    pub(crate) fn remove(&mut self, id: &str) {
        self.entries.remove(&*to_key(id));
    }
}

/// Methods that only the bridge uses.
#[cfg(feature = "bridge")]
impl<T: Default, const N: usize> LruMap<T, N> {
    /// Returns `true` if the map has an entry for an id.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.entries.contains_key(&*to_key(id))
    }

    /// Returns all ids, in no particular order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns a mutable reference to the value for an id, without marking it as used.
    pub(crate) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.entries.get_mut(&*to_key(id)).map(|(_, thing)| thing)
    }

    /// Returns all ids and values, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries
            .iter()
            .map(|(id, (_, thing))| (id.as_str(), thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_keeps_the_most_recently_used_entries() {
        let mut things = LruMap::<u8, 2>::default();
        for id in ["a", "b", "a", "c"] {
            *things.get_or_insert(id) += 1;
        }
        assert_eq!(things.get("a"), Some(&2));
        assert!(!things.contains("b"));
        assert!(things.contains("c"));
    }

    #[test]
    fn long_ids_are_shortened_to_a_hash() {
        let mut things = LruMap::<u8, 2>::default();
        let [one, other] = ["1", "2"].map(|end| "x".repeat(100_000) + end);
        *things.get_or_insert(&one) += 1;
        assert_eq!((things.get(&one), things.get(&other)), (Some(&1), None));
        assert!(things.iter().all(|(id, _)| id.len() < 100));
    }
}
