//! Mutants that handle tool calls, diffs or permission requests wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{
    change_incoming_response, drop_outgoing_updates, duplicate_first, fall_silent_after,
    reported_state, send_after_update, set_field,
};
use crate::mutants::layer::{Mutant, Mutation, change_call, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = tool_call_mutants();
    mutants.extend(diff_mutants());
    mutants.extend(permission_mutants());
    mutants
}

fn tool_call_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/tool-calls/1",
            "changed from completed to in_progress",
            "the agent resumes a finished tool call",
            send_after_update(
                |update| update["status"] == "completed",
                |params| {
                    let mut params = params.clone();
                    params["update"]["status"] = json!("in_progress");
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
                },
            ),
        ),
        mutant(
            "v2/tool-calls/2",
            "was used in two turns",
            "the agent's tool calls all have the same id",
            change_update("tool_call_update", |update| {
                update["toolCallId"] = json!("always")
            }),
        ),
        mutant(
            "v2/tool-calls/3",
            "content was sent for tool call \"nobodys\"",
            "the agent adds content to an unknown tool call",
            change_update("tool_call_content_chunk", |update| {
                update["toolCallId"] = json!("nobodys")
            }),
        ),
        mutant(
            "v2/tool-calls/4",
            "is not valid base64",
            "the agent sends terminal output as plain text",
            change_update("terminal_output_chunk", |update| {
                update["data"] = json!("checked\n")
            }),
        ),
        mutant(
            "v2/tool-calls/5",
            "output was sent for terminal \"nobodys\"",
            "the agent sends output for an unknown terminal",
            change_update("terminal_output_chunk", |update| {
                update["terminalId"] = json!("nobodys")
            }),
        ),
        mutant(
            "v2/tool-calls/6",
            "a tool call embeds terminal \"nobodys\"",
            "the agent embeds an unknown terminal",
            change_update("tool_call_update", |update| {
                if let Some(shown) = update.pointer_mut("/content/0/terminalId") {
                    *shown = json!("nobodys");
                }
            }),
        ),
    ]
}

/// Changes every diff that the agent sends.
fn change_diffs(
    with: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    change_update("tool_call_update", move |update| {
        if let Some(diff) = update
            .pointer_mut("/content/0")
            .filter(|content| content["type"] == "diff")
        {
            with(diff);
        }
    })
}

/// Changes the text of every patch that the agent sends.
fn change_patches(with: fn(&str) -> String) -> impl Fn() -> Mutation + Send + Sync {
    change_diffs(move |diff| {
        let text = with(diff["patch"]["text"].as_str().unwrap_or_default());
        diff["patch"]["text"] = json!(text);
    })
}

fn diff_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/tool-calls/21",
            "has no `patch`",
            "the agent's diffs have no patch",
            change_diffs(|diff| set_field(diff, "patch", None)),
        ),
        mutant(
            "v2/tool-calls/22",
            "in a patch is not absolute",
            "the agent's patches have relative paths",
            change_patches(|text| text.replace("--- /", "--- a/").replace("+++ /", "+++ b/")),
        ),
        mutant(
            "v2/tool-calls/23",
            "a patch begins with \"From 0123\"",
            "the agent's patches start with an email header",
            change_patches(|text| format!("From 0123\nSubject: Change\n\n{text}")),
        ),
        mutant(
            "v2/tool-calls/24",
            "which is not listed in `changes`",
            "the agent's patches change other files than listed",
            change_patches(|text| text.replace("notes.txt", "other.txt")),
        ),
    ]
}

const PERMISSION_METHOD: &str = "session/request_permission";

fn allow_response() -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": "yes"}})
}

fn permission_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/tool-calls/41",
            "has no options",
            "the agent's permission requests have no options",
            change_call(PERMISSION_METHOD, |params| params["options"] = json!([])),
        ),
        mutant(
            "v2/tool-calls/42",
            "duplicate option id \"yes\" in a permission request",
            "the agent offers the same option twice",
            change_call(PERMISSION_METHOD, |params| {
                duplicate_first(&mut params["options"])
            }),
        ),
        mutant(
            "v2/tool-calls/43",
            "the title of the permission request is empty",
            "the agent's permission requests have no title",
            change_call(PERMISSION_METHOD, |params| params["title"] = json!(" ")),
        ),
        mutant(
            "v2/tool-calls/44",
            "the permission request is for session \"another\", not",
            "the agent requests permission for another session",
            change_call(PERMISSION_METHOD, |params| {
                params["sessionId"] = json!("another")
            }),
        ),
        mutant(
            "v2/tool-calls/45",
            "a `state_update` with `requires_action`",
            "the agent does not report that it waits for permission",
            drop_outgoing_updates(|update| update["state"] == "requires_action"),
        ),
        mutant(
            "v2/tool-calls/46",
            "; expected `running`",
            "the agent does not report that it continues after a permission request",
            stay_in_requires_action,
        ),
        mutant(
            "v2/tool-calls/47",
            "no `state_update` with `idle`",
            "the agent does not continue after approval",
            fall_silent_after(|message| message["result"]["outcome"]["outcome"] == "selected"),
        ),
        mutant(
            "v2/tool-calls/48",
            "`notes.txt` was changed anyway",
            "the agent treats a rejection as approval",
            change_incoming_response(PERMISSION_METHOD, |message| {
                if message["result"]["outcome"]["optionId"] == "no" {
                    message["result"] = allow_response();
                }
            }),
        ),
        mutant(
            "v2/tool-calls/49",
            "`notes.txt` was changed anyway",
            "the agent treats an unknown outcome as approval",
            change_incoming_response(PERMISSION_METHOD, |message| {
                if message["result"]["outcome"]["outcome"] == "_acp-check/perhaps" {
                    message["result"] = allow_response();
                }
            }),
        ),
        mutant(
            "v2/tool-calls/50",
            "`notes.txt` was changed anyway",
            "the agent treats an error as approval",
            change_incoming_response(PERMISSION_METHOD, |message| {
                if message["error"].is_object() {
                    *message =
                        json!({"jsonrpc": "2.0", "id": message["id"], "result": allow_response()});
                }
            }),
        ),
    ]
}

fn stay_in_requires_action() -> Mutation {
    let mut asked = false;
    Box::new(move |passing| {
        asked |= reported_state(&passing) == Some("requires_action");
        if asked && reported_state(&passing) == Some("running") {
            *passing.message = None;
        }
    })
}
