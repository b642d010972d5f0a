//! Nests what a subagent does under the tool call that has started it.
//!
//! In the protocol, a subagent has a session of its own (see `subagent.rs`). The most widely used agents do not use
//! that yet: their subagents work in the session of the parent, and a field in the `_meta` of each update names the
//! tool call that has started the subagent. The items keep their order in the thread. What they belong to is stored
//! beside it, so that a program that does not know about nesting shows everything in the order of arrival.

use acp_wire::Meta;
use acp_wire::v1::ToolCallId;

use super::{Item, ItemKind, Thread, ThreadToolCall};

/// The maximum nesting depth. What is deeper is shown at this depth, so that rendering needs a limited amount of stack.
const MAX_DEPTH: usize = 8;

/// Returns the tool call that an update belongs to according to its metadata: `claudeCode.parentToolUseId` (Claude
/// Agent), or `parentToolCallId` (Qwen Code).
fn parent_call_id(meta: Option<&Meta>) -> Option<ToolCallId> {
    let meta = meta?;
    let claude = meta
        .get("claudeCode")
        .and_then(|claude| claude.get("parentToolUseId"));
    let id = claude.or_else(|| meta.get("parentToolCallId"))?;
    id.as_str().filter(|id| !id.is_empty()).map(Into::into)
}

impl Thread {
    /// Returns the number of the tool call that an item is nested under, unless that tool call was dropped. Items are
    /// counted from the start of the session, including those that were dropped ([`truncation`](Self::truncation)).
    #[must_use]
    pub fn parent_item(&self, number: usize) -> Option<usize> {
        let parent = self.item(number)?.parent?;
        self.item(parent).map(|_| parent)
    }

    /// Returns the tool call that an item is nested under, unless it was dropped.
    #[must_use]
    pub fn parent_call(&self, number: usize) -> Option<&ThreadToolCall> {
        match &self.item(self.parent_item(number)?)?.kind {
            ItemKind::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the number of tool calls that an item is nested in.
    #[must_use]
    pub fn nesting_depth(&self, number: usize) -> usize {
        // A parent has a smaller number than its children, so this ends.
        std::iter::successors(self.parent_item(number), |at| self.parent_item(*at)).count()
    }

    /// Returns the items that are not nested, with their numbers.
    pub fn outermost_items(&self) -> impl DoubleEndedIterator<Item = (usize, &Item)> {
        let first = self.truncation.items;
        let items = self.items.iter().enumerate();
        items
            .map(move |(index, item)| (first + index, item))
            .filter(|(number, _)| self.parent_item(*number).is_none())
    }

    /// Returns the number of the outermost tool call that contains an item, or the item's own number.
    #[must_use]
    pub fn outermost_item(&self, number: usize) -> usize {
        let mut outermost = number;
        // A parent has a smaller number than its children, so this ends.
        while let Some(parent) = self.parent_item(outermost) {
            outermost = parent;
        }
        outermost
    }

    /// Returns the items that are nested directly under a tool call, with their numbers, in the order in which they
    /// started.
    pub fn nested_items(&self, number: usize) -> impl DoubleEndedIterator<Item = (usize, &Item)> {
        let nested = self.nested.get(&number).map_or(&[][..], Vec::as_slice);
        nested
            .iter()
            .filter_map(|number| Some((*number, self.item(*number)?)))
    }

    /// Returns the item that an update belongs to according to its metadata, if it is a known tool call. If that is nested
    /// too deeply, returns the tool call that contains it.
    pub(super) fn find_parent(&self, meta: Option<&Meta>) -> Option<usize> {
        let mut at = *self.tool_calls.get(&parent_call_id(meta)?)?;
        self.item(at)?;
        while self.nesting_depth(at) >= MAX_DEPTH {
            at = self.parent_item(at)?;
        }
        Some(at)
    }

    /// Nests an item under a tool call. Does nothing if the item is nested already, or is not later than the tool call.
    pub(super) fn nest_item(&mut self, number: usize, parent: usize) {
        if parent >= number {
            return;
        }
        if let Some(item) = self.item_mut(number)
            && item.parent.is_none()
        {
            item.parent = Some(parent);
            self.nested.entry(parent).or_default().push(number);
        }
    }

    /// Nests a tool call under the one that its update names.
    pub(super) fn nest_tool_call(&mut self, id: &ToolCallId, meta: Option<&Meta>) {
        if let Some(parent) = self.find_parent(meta)
            && let Some(at) = self.tool_calls.get(id).copied()
        {
            self.nest_item(at, parent);
        }
    }

    /// Returns the name of the subagent that makes a tool call in its parent's session: the title of the tool call that has
    /// started the subagent.
    pub(crate) fn nested_subagent_name(&self, id: &ToolCallId) -> Option<String> {
        let parent = self.parent_call(*self.tool_calls.get(id)?)?;
        Some(parent.title_or_id().to_owned())
    }

    /// Forgets what was nested under items that were dropped.
    pub(super) fn drop_nesting(&mut self) {
        let first = self.truncation.items;
        self.nested.retain(|parent, _| *parent >= first);
        self.nested.shrink_to(self.nested.len().saturating_mul(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::ThreadMessage;
    use acp_wire::v1::{SessionUpdate, ToolCallUpdate};
    use serde_json::{Value, json};

    fn apply_json(thread: &mut Thread, update: Value) {
        let update: SessionUpdate = serde_json::from_value(update).unwrap();
        thread.apply(&update.into());
    }

    fn start_call(thread: &mut Thread, id: &str, meta: Value) {
        apply_json(
            thread,
            json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": format!("title of {id}"), "_meta": meta}),
        );
    }

    fn say(thread: &mut Thread, text: &str, meta: Value) {
        apply_json(
            thread,
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, "_meta": meta}),
        );
    }

    fn claude(parent: &str) -> Value {
        json!({"claudeCode": {"parentToolUseId": parent, "toolName": "Read"}})
    }

    fn nested(thread: &Thread, number: usize) -> Vec<usize> {
        thread
            .nested_items(number)
            .map(|(number, _)| number)
            .collect()
    }

    #[test]
    fn parallel_subagents_keep_their_items_apart() {
        let mut thread = Thread::new();
        start_call(
            &mut thread,
            "a",
            json!({"claudeCode": {"toolName": "Task"}}),
        );
        start_call(&mut thread, "b", Value::Null);
        start_call(&mut thread, "a1", claude("a"));
        start_call(
            &mut thread,
            "b1",
            json!({"parentToolCallId": "b", "subagentType": "explore"}),
        );
        start_call(&mut thread, "a2", claude("a"));
        // Deeper, and an update that does not repeat the parent.
        start_call(&mut thread, "a1x", claude("a1"));
        apply_json(
            &mut thread,
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "a1", "status": "completed"}),
        );
        assert_eq!(nested(&thread, 0), [2, 4]);
        assert_eq!(nested(&thread, 1), [3]);
        assert_eq!(nested(&thread, 2), [5]);
        assert_eq!(thread.parent_item(0), None);
        assert_eq!(thread.outermost_item(5), 0);
        let subagent = thread.nested_subagent_name(&"a1".into());
        assert_eq!(subagent.as_deref(), Some("title of a"));
    }

    #[test]
    fn messages_of_a_subagent_do_not_join_those_of_its_parent() {
        let mut thread = Thread::new();
        start_call(&mut thread, "a", Value::Null);
        say(&mut thread, "outer ", Value::Null);
        say(&mut thread, "inner ", claude("a"));
        say(&mut thread, "inner", claude("a"));
        say(&mut thread, "outer", Value::Null);
        let texts: Vec<(Option<usize>, String)> = thread
            .items()
            .iter()
            .filter_map(|item| match &item.kind {
                ItemKind::Agent(message) => Some((item.parent, ThreadMessage::text(message))),
                _ => None,
            })
            .collect();
        let expected = [(None, "outer "), (Some(0), "inner inner"), (None, "outer")];
        assert_eq!(
            texts,
            expected.map(|(parent, text)| (parent, text.to_owned()))
        );
    }

    #[test]
    fn wrong_parents_are_ignored() {
        let mut thread = Thread::new();
        start_call(&mut thread, "self", claude("self"));
        start_call(&mut thread, "unknown", claude("none"));
        start_call(
            &mut thread,
            "odd",
            json!({"claudeCode": {"parentToolUseId": 7}}),
        );
        start_call(&mut thread, "empty", claude(""));
        // An earlier call cannot be nested under a later one, so there are no cycles.
        apply_json(
            &mut thread,
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "self", "_meta": claude("odd")}),
        );
        assert!((0..4).all(|number| thread.parent_item(number).is_none()));
        assert!((0..4).all(|number| nested(&thread, number).is_empty()));
    }

    #[test]
    fn nesting_is_limited() {
        let mut thread = Thread::new();
        start_call(&mut thread, "0", Value::Null);
        for number in 1..=3 * MAX_DEPTH {
            start_call(
                &mut thread,
                &number.to_string(),
                claude(&(number - 1).to_string()),
            );
        }
        let deepest = thread.next_item() - 1;
        assert_eq!(thread.nesting_depth(deepest), MAX_DEPTH);
        assert_eq!(thread.outermost_item(deepest), 0);
    }

    #[test]
    fn a_permission_request_nests_its_call() {
        let mut thread = Thread::new();
        start_call(&mut thread, "a", Value::Null);
        let mut request = ToolCallUpdate::new("a1");
        request.meta = Some(serde_json::from_value(claude("a")).unwrap());
        thread.apply_permission_request(&request.into());
        assert_eq!(nested(&thread, 0), [1]);
    }

    #[test]
    fn items_stay_when_their_parent_is_dropped() {
        let mut thread = Thread::with_limit(64 * 1024);
        start_call(&mut thread, "a", Value::Null);
        start_call(&mut thread, "a1", claude("a"));
        let mut number = 0;
        while thread.truncation().items == 0 {
            start_call(&mut thread, &format!("fill {number}"), Value::Null);
            number += 1;
        }
        start_call(&mut thread, "a2", claude("a"));
        let last = thread.next_item() - 1;
        assert_eq!(thread.parent_item(last), None);
        assert_eq!(thread.outermost_item(last), last);
        assert!(nested(&thread, 0).is_empty());
        assert!(thread.nested.is_empty());
    }
}
