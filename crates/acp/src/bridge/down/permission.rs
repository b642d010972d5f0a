//! Permissions. Version 2 asks with a title, and about a tool call, a command or nothing in particular;
//! version 1 asks about a tool call.

use acp_wire::RawObject;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::json::{items, object, raw};
use super::tool_call::{content_to_v1, status_to_v1, without_nulls};
use super::{Session, set};

impl Session {
    /// What a permission is asked for, in version 1's words.
    pub(super) fn permission(&mut self, mut params: RawObject) -> RawObject {
        let subject = object(params.get("subject"));
        let kind: Option<String> = subject.field("type");
        let (mut call, known) = match kind.as_deref() {
            Some("tool_call") => (object(subject.get("toolCall")), true),
            Some("command") => (command(&subject), true),
            // A subject without a name here stays where it is, for who knows it.
            other => (object! {}, other.is_none()),
        };
        if !call.has("toolCallId") {
            call.set("toolCallId", raw(&Uuid::new_v4().to_string()));
        }
        call = without_nulls(call, false);
        status_to_v1(&mut call);
        if call.has("content") {
            content_to_v1(&mut call);
        }
        if !call.has("title") {
            let title = set(&params, "title").map_or_else(|| raw(""), ToOwned::to_owned);
            call.set("title", title);
        }
        if let Some(text) = params.field::<String>("description") {
            let block = object! { "type": "text", "text": text };
            let why: Box<RawValue> = raw(&object! { "type": "content", "content": block });
            let rest = if call.has("content") {
                items(&call, "content")
            } else {
                // The request's content replaces that of the call, which is not to be lost.
                let id: String = call.field("toolCallId").unwrap_or_default();
                self.calls.content(&id)
            };
            let content: Vec<Box<RawValue>> = std::iter::once(why).chain(rest).collect();
            call.set("content", raw(&content));
        }
        params = params.without(&["title", "description"]);
        if known {
            params = params.without(&["subject"]);
        }
        params.set("toolCall", raw(&call));
        params
    }
}

/// A command as a tool call.
fn command(subject: &RawObject) -> RawObject {
    let text: String = subject.field("command").unwrap_or_default();
    let block = object! { "type": "text", "text": text };
    let content = object! { "type": "content", "content": block };
    let mut input = object! { "command": text };
    if let Some(cwd) = set(subject, "cwd") {
        input.push("cwd".to_owned(), cwd.to_owned());
    }
    let mut call = object! { "kind": "execute", "content": [content], "rawInput": input };
    if let Some(id) = set(subject, "toolCallId") {
        call.set("toolCallId", id.to_owned());
    }
    call
}
