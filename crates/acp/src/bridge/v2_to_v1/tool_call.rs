//! Translates tool calls. In version 2, an update changes parts of a call, and `null` clears a field. In version 1, the
//! first update announces the call, and content is always sent in full.

use std::collections::VecDeque;

use acp_wire::RawObject;
use serde_json::value::RawValue;

use super::super::diff;
use super::super::json::{
    TranslatedUpdate, empty_list, list_items, store_original, to_object, to_raw_value,
    truncate_text,
};
use super::V2ToV1Session;
use crate::lru_map::LruMap;

/// The maximum number of bytes of content to store for a call. The oldest items are dropped first.
const MAX_CALL_BYTES: usize = 256 * 1024;

/// The maximum number of bytes of content to store for all calls. The content of the oldest calls is dropped first.
const MAX_STORED_BYTES: usize = 4 * 1024 * 1024;

/// A session's tool calls, each with the parts that the client has received.
#[derive(Default)]
pub(super) struct SentToolCalls {
    calls: LruMap<SentToolCall, 512>,
    size: usize,
}

#[derive(Default)]
struct SentToolCall {
    title: String,
    /// The call's content, in version 1 form.
    content: VecDeque<Box<RawValue>>,
    size: usize,
    has_locations: bool,
}

impl SentToolCalls {
    /// Adds a tool call unless it is known. Returns `true` if it was already known.
    fn ensure_known(&mut self, id: &str) -> bool {
        let known = self.calls.contains(id);
        self.calls.get_or_insert(id);
        if !known {
            // Adding this call may have evicted another one.
            self.size = self.calls.iter().map(|(_, call)| call.size).sum();
        }
        known
    }

    /// Appends items to a call's content, or replaces the content if `anew` is `true`.
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
        while call.size > MAX_CALL_BYTES
            && call.content.len() > 1
            && let Some(oldest) = call.content.pop_front()
        {
            call.size -= oldest.get().len();
        }
        self.size += call.size;
    }

    /// Drops the content of the oldest calls, except for the call `but`, to bring the stored content within the limit.
    fn drop_oldest_content(&mut self, but: &str) {
        while self.size > MAX_STORED_BYTES && self.calls.remove_oldest(but) {
            self.size = self.calls.iter().map(|(_, call)| call.size).sum();
        }
        if let Some(call) = self
            .calls
            .get_mut(but)
            .filter(|call| call.size > MAX_STORED_BYTES)
        {
            // A single item is larger than the limit.
            self.size -= call.size;
            call.content.clear();
            call.size = 0;
        }
    }

    /// Returns the title of a call, or `None` if the call is unknown or has no title.
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

impl V2ToV1Session {
    /// Translates a tool call update, for a new or a known call.
    pub(super) fn translate_tool_call(&mut self, update: RawObject) -> Vec<TranslatedUpdate> {
        let id: String = update.field("toolCallId").unwrap_or_default();
        let known = self.calls.ensure_known(&id);
        let mut update = replace_nulls(update, known);
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
            // The title is stored for permission requests, in which nobody reads more than 1 KiB of it.
            truncate_text(&mut title, 1024);
            call.title = title;
        }
        status_to_v1(&mut update);
        if update.has("content") {
            let paths = content_to_v1(&mut update);
            self.calls
                .add_content(&id, list_items(&update, "content"), true);
            self.add_locations(&id, &mut update, paths);
        }
        if update.has("locations")
            && let Some(call) = self.calls.calls.get_mut(&id)
        {
            call.has_locations = true;
        }
        let shown = list_items(&update, "content");
        let mut emits = vec![TranslatedUpdate::Changed(update)];
        self.terminals.assign_to_call(&id, &shown, &mut emits);
        self.calls.drop_oldest_content(&id);
        emits
    }

    /// Translates a chunk of a tool call's content.
    pub(super) fn translate_tool_call_chunk(
        &mut self,
        update: &RawObject,
    ) -> Vec<TranslatedUpdate> {
        let id: String = update.field("toolCallId").unwrap_or_default();
        let known = self.calls.ensure_known(&id);
        let (item, paths) = item_to_v1(update.get("content"));
        let shown = [item];
        self.calls.add_content(&id, shown.to_vec(), false);
        let mut call_update = if known {
            object! { "sessionUpdate": "tool_call_update", "toolCallId": id }
        } else {
            object! { "sessionUpdate": "tool_call", "toolCallId": id, "title": "" }
        };
        call_update.push("content".to_owned(), to_raw_value(&self.calls.content(&id)));
        if let Some(meta) = super::get_non_null(update, "_meta") {
            call_update.push("_meta".to_owned(), meta.to_owned());
        }
        self.add_locations(&id, &mut call_update, paths);
        let mut emits = vec![TranslatedUpdate::Changed(call_update)];
        self.terminals.assign_to_call(&id, &shown, &mut emits);
        self.calls.drop_oldest_content(&id);
        emits
    }

    /// Adds the paths in a call's diffs as its locations, unless the agent has reported locations for the call.
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

/// Removes `null` members from a new call. For a known call, replaces them with the empty values that version 1 uses.
pub(super) fn replace_nulls(mut update: RawObject, known: bool) -> RawObject {
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

/// Replaces a status that version 1 lacks, keeping the original in `_meta`.
pub(super) fn status_to_v1(update: &mut RawObject) {
    let status = match update.field::<String>("status").as_deref() {
        None | Some("pending" | "in_progress" | "completed" | "failed") => return,
        Some("cancelled") => "failed",
        Some(_) => "in_progress",
    };
    if let Some(original) = update.get("status").map(ToOwned::to_owned) {
        store_original(update, "status", &original);
    }
    update.set("status", to_raw_value(status));
}

/// Translates a tool call's content to version 1, item by item, and returns the paths in its diffs.
pub(super) fn content_to_v1(update: &mut RawObject) -> Vec<String> {
    let mut paths = Vec::new();
    let content: Vec<Box<RawValue>> = list_items(update, "content")
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
    let read = to_object(Some(item));
    if read.field::<String>("type").as_deref() == Some("diff") {
        let (content, paths) = diff::diff_to_v1(&read);
        return (to_raw_value(&content), paths);
    }
    (item.to_owned(), Vec::new())
}
