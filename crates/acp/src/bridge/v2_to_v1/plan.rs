//! Translates plans. In version 2, a session can have any number of plans. In version 1, it has only one, unless the
//! client supports several.

use acp_wire::RawObject;
use serde_json::value::RawValue;

use super::super::json::{TranslatedUpdate, list_items, to_object, to_raw_value};

/// The maximum number of stored plans per session.
const MAX_PLANS: usize = 64;

/// The maximum total size of a session's stored plans, in bytes.
const MAX_STORED_BYTES: usize = 1024 * 1024;

/// A session's plans in order of arrival, for clients that support only one plan.
#[derive(Default)]
pub(super) struct SentPlans(Vec<(String, Vec<Box<RawValue>>)>);

impl SentPlans {
    /// Translates a new or changed plan. `several` is `true` if the client supports several plans.
    pub(super) fn translate_update(
        &mut self,
        mut update: RawObject,
        several: bool,
    ) -> Vec<TranslatedUpdate> {
        let plan = to_object(update.get("plan"));
        let is_items = plan.field::<String>("type").as_deref() == Some("items");
        if !is_items {
            return if several {
                vec![TranslatedUpdate::Unchanged]
            } else {
                Vec::new()
            };
        }
        let entries = entries_to_v1(&plan);
        if several {
            let mut plan = plan;
            plan.set("entries", to_raw_value(&entries));
            update.set("plan", to_raw_value(&plan));
            return vec![TranslatedUpdate::Changed(update)];
        }
        let id: Option<String> = plan.field("planId").or_else(|| plan.field("id"));
        let id = id.unwrap_or_default();
        match self.0.iter_mut().find(|(known, _)| *known == id) {
            Some((_, old)) => *old = entries,
            None => self.0.push((id, entries)),
        }
        update.take("plan");
        let translations = self.to_single_plan(update);
        while self.0.len() > MAX_PLANS
            || (self.stored_size() > MAX_STORED_BYTES && !self.0.is_empty())
        {
            self.0.remove(0);
        }
        translations
    }

    /// Translates the removal of a plan.
    pub(super) fn translate_removal(
        &mut self,
        update: &RawObject,
        several: bool,
    ) -> Vec<TranslatedUpdate> {
        if several {
            return vec![TranslatedUpdate::Unchanged];
        }
        let id: String = update.field("planId").unwrap_or_default();
        let before = self.0.len();
        self.0.retain(|(known, _)| *known != id);
        if self.0.len() == before {
            return Vec::new();
        }
        self.to_single_plan(update.clone().without(&["planId"]))
    }

    /// Merges the steps of all plans, and returns an update with the resulting single plan.
    fn to_single_plan(&self, mut update: RawObject) -> Vec<TranslatedUpdate> {
        let entries: Vec<&RawValue> = self
            .0
            .iter()
            .flat_map(|(_, entries)| entries.iter().map(AsRef::as_ref))
            .collect();
        update.set("sessionUpdate", to_raw_value("plan"));
        update.set("entries", to_raw_value(&entries));
        vec![TranslatedUpdate::Changed(update)]
    }

    fn stored_size(&self) -> usize {
        let entries = self.0.iter().flat_map(|(_, entries)| entries);
        entries.map(|entry| entry.get().len()).sum()
    }
}

/// Converts a plan's entries to version 1, which lacks the status `cancelled`.
fn entries_to_v1(plan: &RawObject) -> Vec<Box<RawValue>> {
    list_items(plan, "entries")
        .into_iter()
        .map(|entry| {
            let mut read = to_object(Some(&entry));
            let status = match read.field::<String>("status").as_deref() {
                Some("pending" | "in_progress" | "completed") | None => return entry,
                Some("cancelled") => "completed",
                Some(_) => "pending",
            };
            if let Some(original) = read.get("status").map(ToOwned::to_owned) {
                super::super::json::store_original(&mut read, "status", &original);
            }
            read.set("status", to_raw_value(status));
            to_raw_value(&read)
        })
        .collect()
}
