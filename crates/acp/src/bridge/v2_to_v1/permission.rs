//! Translates permission requests. In version 2, a request has a title and, optionally, a tool call or a command as its
//! subject. In version 1, its subject is always a tool call.

use acp_wire::RawObject;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::json::{list_items, to_object, to_raw_value};
use super::tool_call::{content_to_v1, replace_nulls, status_to_v1};
use super::{V2ToV1Session, get_non_null};

impl V2ToV1Session {
    /// Translates the params of a permission request to version 1. If the request hides a tool call's content while it
    /// is pending, also returns the id of that call.
    pub(super) fn translate_permission_request(
        &mut self,
        mut params: RawObject,
    ) -> (RawObject, Option<String>) {
        let subject = to_object(params.get("subject"));
        let kind: Option<String> = subject.field("type");
        let (mut call, known) = match kind.as_deref() {
            Some("tool_call") => (to_object(subject.get("toolCall")), true),
            Some("command") => (command_to_tool_call(&subject), true),
            // A subject of an unknown type stays in the params, for clients that know it.
            other => (object! {}, other.is_none()),
        };
        if !call.has("toolCallId") {
            call.set("toolCallId", to_raw_value(&Uuid::new_v4().to_string()));
        }
        let id: String = call.field("toolCallId").unwrap_or_default();
        call = replace_nulls(call, false);
        status_to_v1(&mut call);
        if call.has("content") {
            content_to_v1(&mut call);
        }
        // In version 2, the request has its own title. In version 1, only the tool call has a title.
        let mut question: Option<String> = params.field("title");
        if !call.has("title") {
            let title = match self.calls.title(&id) {
                Some(title) => title.to_owned(),
                None => question.take().unwrap_or_default(),
            };
            call.set("title", to_raw_value(&title));
        }
        question.take_if(|question| call.field::<String>("title").as_ref() == Some(question));
        let text: Vec<String> = [question, params.field("description")]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect();
        let mut hidden = None;
        if !text.is_empty() {
            let block = object! { "type": "text", "text": text.join("\n\n") };
            let why: Box<RawValue> = to_raw_value(&object! { "type": "content", "content": block });
            // The content of the request replaces that of the call.
            let rest = if call.has("content") {
                list_items(&call, "content")
            } else {
                self.calls.content(&id)
            };
            let content: Vec<Box<RawValue>> = std::iter::once(why).chain(rest).collect();
            call.set("content", to_raw_value(&content));
            hidden = self.calls.is_known(&id).then_some(id);
        }
        params = params.without(&["title", "description"]);
        if known {
            params = params.without(&["subject"]);
        }
        params.set("toolCall", to_raw_value(&call));
        (params, hidden)
    }

    /// Returns an update that restores the tool call content that a permission request has hidden.
    pub(super) fn restore_content_update(&self, call: &str) -> RawObject {
        object! {
            "sessionUpdate": "tool_call_update",
            "toolCallId": call,
            "content": self.calls.content(call),
        }
    }
}

/// Creates the tool call that represents the command in a permission request.
fn command_to_tool_call(subject: &RawObject) -> RawObject {
    let text: String = subject.field("command").unwrap_or_default();
    let block = object! { "type": "text", "text": text };
    let content = object! { "type": "content", "content": block };
    let mut input = object! { "command": text };
    if let Some(cwd) = get_non_null(subject, "cwd") {
        input.push("cwd".to_owned(), cwd.to_owned());
    }
    let mut call = object! { "kind": "execute", "content": [content], "rawInput": input };
    if let Some(id) = get_non_null(subject, "toolCallId") {
        call.set("toolCallId", id.to_owned());
    }
    call
}
