//! Provides a map of limited size, and functions that read the fields of messages.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use crate::redaction::REDACTED;

/// A map of limited size, keyed by id. When it is full, it drops the oldest entry.
#[derive(Debug)]
pub(super) struct BoundedTable<T> {
    entries: HashMap<String, T>,
    order: VecDeque<String>,
    capacity: usize,
    /// Whether an entry was dropped. If so, a missing id may have been inserted earlier.
    has_evicted: bool,
}

impl<T> BoundedTable<T> {
    pub(super) fn with_capacity(room: usize) -> Self {
        Self {
            entries: HashMap::new(),
            order: VecDeque::new(),
            capacity: room,
            has_evicted: false,
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<&T> {
        self.entries.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut T> {
        self.entries.get_mut(id)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.values_mut()
    }

    /// Returns the entries, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        let known = |id| self.entries.get_key_value(id);
        self.order.iter().filter_map(known)
    }

    /// Returns `true` if it is certain that an id was never inserted.
    pub(super) fn is_new(&self, id: &str) -> bool {
        !self.has_evicted && !self.entries.contains_key(id)
    }

    pub(super) fn insert(&mut self, id: &str, entry: T) {
        if self.entries.insert(id.to_owned(), entry).is_none() {
            self.order.push_back(id.to_owned());
            if self.order.len() > self.capacity
                && let Some(oldest) = self.order.pop_front()
            {
                self.entries.remove(&oldest);
                self.has_evicted = true;
            }
        }
    }
}

/// Returns the value of a string field, or `None` if the field is missing or not a string.
pub(super) fn text_field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// Returns the value of an id field, or `None` if it was redacted, because redaction can make different ids equal.
pub(super) fn id_field<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    text_field(value, name).filter(|id| !id.contains(REDACTED))
}

/// Returns the items of a list field, or no items if the field is not a list.
pub(super) fn list_items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_table_evicts_the_oldest_entry() {
        let mut table = BoundedTable::with_capacity(2);
        for id in ["a", "b", "b"] {
            table.insert(id, ());
        }
        assert!(table.is_new("c") && table.get("a").is_some());
        table.insert("c", ());
        assert!(table.get("a").is_none() && !table.is_new("a") && !table.is_new("d"));
        assert_eq!(table.iter().count(), 2);
    }
}
