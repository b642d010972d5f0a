//! Mutants that report tool calls incorrectly.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::mutants::changes::{drop_updates_if, follow_update};
use crate::mutants::layer::{LayerLine, Mutant, Mutation, change_call, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = status_mutants();
    mutants.extend(content_mutants());
    mutants
}

fn status_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/tool-calls/1",
            "reported no tool call",
            "the agent reports no tool calls",
            drop_updates_if(&["tool_call", "tool_call_update"], |_| true),
        ),
        mutant(
            "v1/tool-calls/2",
            "the id \"call\" of a finished tool call was reused",
            "the agent's tool calls all have the same id",
            change_call("session/update", |params| {
                if let Some(id) = params["update"].get_mut("toolCallId") {
                    *id = json!("call");
                }
            }),
        ),
        mutant(
            "v1/tool-calls/3",
            "was updated, but never reported with `tool_call`",
            "the agent updates tool calls that it has not reported",
            drop_updates_if(&["tool_call"], |_| true),
        ),
        mutant(
            "v1/tool-calls/4",
            "changed from \"completed\" to \"in_progress\"",
            "the agent resumes a completed tool call",
            follow_update(|update| follow_with_status(update, "completed", "in_progress")),
        ),
        mutant(
            "v1/tool-calls/5",
            "changed from \"in_progress\" to \"pending\"",
            "the agent moves a running tool call back to `pending`",
            follow_update(|update| follow_with_status(update, "in_progress", "pending")),
        ),
        mutant(
            "v1/tool-calls/6",
            "is still \"in_progress\"",
            "the agent never completes a tool call",
            drop_updates_if(&["tool_call_update"], |update| {
                update["status"] == "completed"
            }),
        ),
    ]
}

/// If `update` sets the status to `is`, returns another update that sets it to `then`.
fn follow_with_status(update: &Value, is: &str, then: &str) -> Option<Value> {
    (update["status"] == is).then(|| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": update["toolCallId"], "status": then})
    })
}

fn content_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/tool-calls/7",
            "\"notes.txt\" is not an absolute path",
            "the agent reports locations with relative paths",
            change_update("tool_call", |update| {
                if let Some(location) = update.pointer_mut("/locations/0") {
                    location["path"] = json!("notes.txt");
                }
            }),
        ),
        mutant(
            "v1/tool-calls/8",
            "a location has line 0, but lines start at 1",
            "the agent counts lines from 0",
            change_update("tool_call", |update| {
                if let Some(location) = update.pointer_mut("/locations/0") {
                    location["line"] = json!(0);
                }
            }),
        ),
        mutant(
            "v1/tool-calls/9",
            "the diff has the old text null",
            "the agent's diffs treat every file as new",
            change_update("tool_call", |update| {
                if let Some(diff) = update.pointer_mut("/content/0") {
                    diff["oldText"] = Value::Null;
                }
            }),
        ),
        mutant(
            "v1/tool-calls/9",
            "but the diff has the new text \"beta\"",
            "the agent's diffs have the old text as the new text",
            change_update("tool_call", |update| {
                if let Some(diff) = update.pointer_mut("/content/0") {
                    (diff["oldText"], diff["newText"]) = (json!("beta"), json!("beta"));
                }
            }),
        ),
        mutant(
            "v1/tool-calls/10",
            "terminal \"own\" was embedded, but never created",
            "the agent embeds a terminal that was not created",
            change_update("tool_call", |update| {
                if let Some(terminal) = update.pointer_mut("/content/0") {
                    terminal["terminalId"] = json!("own");
                }
            }),
        ),
        mutant(
            "v1/tool-calls/11",
            "was first embedded after it was released",
            "the agent embeds a terminal after releasing it",
            delay_terminal_content,
        ),
    ]
}

/// Delays embedding each terminal until it has been released.
fn delay_terminal_content() -> Mutation {
    let mut calls: HashSet<String> = HashSet::new();
    Box::new(move |passing| {
        let release = passing.is_outgoing("terminal/release");
        let Some(message) = passing.message else {
            return;
        };
        if message
            .pointer("/params/update/content/0/terminalId")
            .is_some()
        {
            let update = &mut message["params"]["update"];
            calls.extend(update["toolCallId"].as_str().map(str::to_owned));
            update["content"] = json!([]);
        }
        if release {
            let params = &message["params"];
            let content = json!([{"type": "terminal", "terminalId": params["terminalId"]}]);
            for id in calls.drain() {
                let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "content": content});
                let params = json!({"sessionId": params["sessionId"], "update": update});
                passing.then.push(LayerLine::Json(
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}),
                ));
            }
        }
    })
}
