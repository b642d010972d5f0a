//! Tool calls. In version 2 they are told piece by piece and `null` clears; in version 1 the first
//! message of a call is its announcement, and content is told whole.

use std::collections::VecDeque;

use acp_wire::RawObject;
use serde_json::value::RawValue;

use super::super::diff;
use super::super::json::{
    UpdateTranslation, empty_list, items, object, set_meta_note, to_raw_value, truncate,
};
use super::DownSession;
use crate::lru_map::LruMap;

/// How much is kept of a call's content, in bytes; of more than that, the end.
const KEPT_OF_CALL: usize = 256 * 1024;

/// How much is kept of all calls' content, in bytes; beyond it, that of the oldest is forgotten.
const KEPT: usize = 4 * 1024 * 1024;

/// The calls of a session.
#[derive(Default)]
pub(super) struct DownToolCalls {
    calls: LruMap<DownToolCall, 512>,
    size: usize,
}

#[derive(Default)]
struct DownToolCall {
    title: String,
    /// What it has produced, in version 1's words.
    content: VecDeque<Box<RawValue>>,
    size: usize,
    has_locations: bool,
}

impl DownToolCalls {
    /// Makes sure that the call is known, and tells whether it was.
    fn ensure_known(&mut self, id: &str) -> bool {
        let known = self.calls.contains(id);
        self.calls.touch(id);
        if !known {
            // Another may have been forgotten for it.
            self.size = self.calls.iter().map(|(_, call)| call.size).sum();
        }
        known
    }

    /// Adds to a call's content, or sets it anew.
    fn add_content(&mut self, id: &str, content: Vec<Box<RawValue>>, anew: bool) {
        let Some(call) = self.calls.get_mut(id) else {
            return;
        };
        self.size -= call.size;
        if anew {
            call.content.clear();
            call.size = 0;
        }
        for item in content {
            call.size += item.get().len();
            call.content.push_back(item);
        }
        while call.size > KEPT_OF_CALL
            && call.content.len() > 1
            && let Some(oldest) = call.content.pop_front()
        {
            call.size -= oldest.get().len();
        }
        self.size += call.size;
    }

    /// Forgets old calls' content until what is left is within the limit.
    fn drop_oldest_content(&mut self, but: &str) {
        while self.size > KEPT && self.calls.forget_oldest(but) {
            self.size = self.calls.iter().map(|(_, call)| call.size).sum();
        }
        if let Some(call) = self.calls.get_mut(but).filter(|call| call.size > KEPT) {
            // One item that is too large by itself.
            self.size -= call.size;
            call.content.clear();
            call.size = 0;
        }
    }

    /// The title of a call that the client knows.
    pub(super) fn title(&self, id: &str) -> Option<&str> {
        let call = self.calls.get(id)?;
        Some(call.title.as_str()).filter(|title| !title.is_empty())
    }

    pub(super) fn is_known(&self, id: &str) -> bool {
        self.calls.contains(id)
    }

    pub(super) fn content(&self, id: &str) -> Vec<Box<RawValue>> {
        let call = self.calls.get(id);
        call.map(|call| call.content.iter().cloned().collect())
            .unwrap_or_default()
    }
}

impl DownSession {
    /// A tool call as it is now.
    pub(super) fn tool_call(&mut self, update: RawObject) -> Vec<UpdateTranslation> {
        let id: String = update.field("toolCallId").unwrap_or_default();
        let known = self.calls.ensure_known(&id);
        let mut update = without_nulls(update, known);
        if !known {
            update.set("sessionUpdate", to_raw_value("tool_call"));
            if !update.has("title") {
                let name: String = update.field("name").unwrap_or_default();
                update.set("title", to_raw_value(&name));
            }
        }
        if let Some(mut title) = update.field::<String>("title")
            && let Some(call) = self.calls.calls.get_mut(&id)
        {
            // It is for permission requests, where nobody reads more.
            truncate(&mut title, 1024);
            call.title = title;
        }
        status_to_v1(&mut update);
        if update.has("content") {
            let paths = content_to_v1(&mut update);
            self.calls.add_content(&id, items(&update, "content"), true);
            self.add_locations(&id, &mut update, paths);
        }
        if update.has("locations")
            && let Some(call) = self.calls.calls.get_mut(&id)
        {
            call.has_locations = true;
        }
        let shown = items(&update, "content");
        let mut emits = vec![UpdateTranslation::Changed(update)];
        self.terminals.show(&id, &shown, &mut emits);
        self.calls.drop_oldest_content(&id);
        emits
    }

    /// A piece of what a tool call has produced.
    pub(super) fn tool_call_chunk(&mut self, update: &RawObject) -> Vec<UpdateTranslation> {
        let id: String = update.field("toolCallId").unwrap_or_default();
        let known = self.calls.ensure_known(&id);
        let (item, paths) = item_to_v1(update.get("content"));
        let shown = [item];
        self.calls.add_content(&id, shown.to_vec(), false);
        let mut told = if known {
            object! { "sessionUpdate": "tool_call_update", "toolCallId": id }
        } else {
            object! { "sessionUpdate": "tool_call", "toolCallId": id, "title": "" }
        };
        told.push("content".to_owned(), to_raw_value(&self.calls.content(&id)));
        if let Some(meta) = super::non_null(update, "_meta") {
            told.push("_meta".to_owned(), meta.to_owned());
        }
        self.add_locations(&id, &mut told, paths);
        let mut emits = vec![UpdateTranslation::Changed(told)];
        self.terminals.show(&id, &shown, &mut emits);
        self.calls.drop_oldest_content(&id);
        emits
    }

    /// A call that has not said where it works does so where its diffs are.
    fn add_locations(&mut self, id: &str, update: &mut RawObject, paths: Vec<String>) {
        let Some(call) = self.calls.calls.get_mut(id) else {
            return;
        };
        if paths.is_empty() || call.has_locations || update.has("locations") {
            return;
        }
        let locations: Vec<RawObject> = paths
            .into_iter()
            .map(|path| object! { "path": path })
            .collect();
        update.set("locations", to_raw_value(&locations));
    }
}

/// What `null` clears has the value that version 1 has for nothing.
pub(super) fn without_nulls(mut update: RawObject, known: bool) -> RawObject {
    if known {
        for (key, nothing) in [
            ("title", to_raw_value("")),
            ("kind", to_raw_value("other")),
            ("status", to_raw_value("pending")),
            ("content", empty_list()),
            ("locations", empty_list()),
        ] {
            if update.get(key).is_some_and(|value| value.get() == "null") {
                update.set(key, nothing);
            }
        }
    }
    update.retain(|_, value| value.get() != "null");
    update
}

/// Statuses that version 1 does not have.
pub(super) fn status_to_v1(update: &mut RawObject) {
    let status = match update.field::<String>("status").as_deref() {
        None | Some("pending" | "in_progress" | "completed" | "failed") => return,
        Some("cancelled") => "failed",
        Some(_) => "in_progress",
    };
    if let Some(original) = update.get("status").map(ToOwned::to_owned) {
        set_meta_note(update, "status", &original);
    }
    update.set("status", to_raw_value(status));
}

/// The content of a tool call, item by item, and the files of its diffs.
pub(super) fn content_to_v1(update: &mut RawObject) -> Vec<String> {
    let mut paths = Vec::new();
    let content: Vec<Box<RawValue>> = items(update, "content")
        .into_iter()
        .map(|item| {
            let (item, more) = item_to_v1(Some(&item));
            paths.extend(more);
            item
        })
        .collect();
    update.set("content", to_raw_value(&content));
    paths
}

fn item_to_v1(item: Option<&RawValue>) -> (Box<RawValue>, Vec<String>) {
    let item = item.unwrap_or(RawValue::NULL);
    let read = object(Some(item));
    if read.field::<String>("type").as_deref() == Some("diff") {
        let (content, paths) = diff::to_v1(&read);
        return (to_raw_value(&content), paths);
    }
    (item.to_owned(), Vec::new())
}
