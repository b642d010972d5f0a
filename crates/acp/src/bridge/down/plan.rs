//! Plans. Version 2 has any number of them; version 1 has one, unless the client knows better.

use acp_wire::RawObject;
use serde_json::value::RawValue;

use super::super::json::{Emit, items, object, raw};

/// How many plans of a session are remembered.
const PLANS: usize = 64;

/// How large all of them together may be, in bytes.
const KEPT: usize = 1024 * 1024;

/// The plans of a session in the order they came, for clients that know only one.
#[derive(Default)]
pub(super) struct Plans(Vec<(String, Vec<Box<RawValue>>)>);

impl Plans {
    /// A plan is new or has changed. `several`: the client knows plans by their ids.
    pub(super) fn update(&mut self, mut update: RawObject, several: bool) -> Vec<Emit> {
        let plan = object(update.get("plan"));
        let is_items = plan.field::<String>("type").as_deref() == Some("items");
        if !is_items {
            return if several {
                vec![Emit::Same]
            } else {
                Vec::new()
            };
        }
        let entries = entries(&plan);
        if several {
            let mut plan = plan;
            plan.set("entries", raw(&entries));
            update.set("plan", raw(&plan));
            return vec![Emit::Changed(update)];
        }
        let id: Option<String> = plan.field("planId").or_else(|| plan.field("id"));
        let id = id.unwrap_or_default();
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, old)) => *old = entries,
            None => self.0.push((id, entries)),
        }
        update.take("plan");
        let told = self.told(update);
        while self.0.len() > PLANS || (self.size() > KEPT && !self.0.is_empty()) {
            self.0.remove(0);
        }
        told
    }

    /// A plan is gone.
    pub(super) fn removed(&mut self, update: &RawObject, several: bool) -> Vec<Emit> {
        if several {
            return vec![Emit::Same];
        }
        let id: String = update.field("planId").unwrap_or_default();
        let before = self.0.len();
        self.0.retain(|(known, _)| *known != id);
        if self.0.len() == before {
            return Vec::new();
        }
        self.told(update.clone().without(&["planId"]))
    }

    /// All plans as one.
    fn told(&self, mut update: RawObject) -> Vec<Emit> {
        let entries: Vec<&RawValue> = self
            .0
            .iter()
            .flat_map(|(_, entries)| entries.iter().map(AsRef::as_ref))
            .collect();
        update.set("sessionUpdate", raw("plan"));
        update.set("entries", raw(&entries));
        vec![Emit::Changed(update)]
    }

    fn size(&self) -> usize {
        let entries = self.0.iter().flat_map(|(_, entries)| entries);
        entries.map(|entry| entry.get().len()).sum()
    }
}

/// The entries of a plan; version 1 has none that are cancelled.
fn entries(plan: &RawObject) -> Vec<Box<RawValue>> {
    items(plan, "entries")
        .into_iter()
        .map(|entry| {
            let mut read = object(Some(&entry));
            let status = match read.field::<String>("status").as_deref() {
                Some("pending" | "in_progress" | "completed") | None => return entry,
                Some("cancelled") => "completed",
                Some(_) => "pending",
            };
            if let Some(original) = read.get("status").map(ToOwned::to_owned) {
                super::super::json::note(&mut read, "status", &original);
            }
            read.set("status", raw(status));
            raw(&read)
        })
        .collect()
}
