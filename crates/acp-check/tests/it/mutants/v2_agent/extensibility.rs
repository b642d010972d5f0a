//! Wrong in what is one's own.

use serde_json::json;

use crate::mutants::changes::{change_error_code, fall_silent_after, reject_if, replace_error};
use crate::mutants::layer::{Mutant, change_call, change_result, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/extensibility/1",
            "expected -32601",
            "its code for an unknown extension is another",
            change_error_code("_acp-check/no-such", -32603),
        ),
        mutant(
            "v2/extensibility/1",
            "an unknown method succeeded; expected an error",
            "the agent knows every extension",
            replace_error("_acp-check/no-such", || json!({})),
        ),
        mutant(
            "v2/extensibility/2",
            "waiting for a response to request 2",
            "an unknown notification is its end",
            fall_silent_after(|message| message["method"] == "_acp-check/no-such"),
        ),
        mutant(
            "v2/extensibility/3",
            "`session/new` failed with error -32603: no",
            "the agent believes what is in `_meta`",
            reject_if("session/new", -32603, |params| {
                params["_meta"]["traceparent"] == "none"
            }),
        ),
        mutant(
            "v2/extensibility/4",
            "unknown update type \"weather_update\"; custom names start with `_`",
            "the agent tells of the weather",
            change_update("usage_update", |update| {
                update["sessionUpdate"] = json!("weather_update")
            }),
        ),
        mutant(
            "v2/extensibility/5",
            "unknown tool call kind \"smell\"; custom names start with `_`",
            "the agent has a tool of its own kind, and does not say so",
            change_update("tool_call_update", |update| update["kind"] = json!("smell")),
        ),
        mutant(
            "v2/extensibility/5",
            "unknown tool call status \"asleep\"; custom names start with `_`",
            "the agent has a status of its own, and does not say so",
            change_update("tool_call_update", |update| {
                update["status"] = json!("asleep")
            }),
        ),
        mutant(
            "v2/extensibility/6",
            "unknown stop reason \"tired\"; custom names start with `_`",
            "the agent has a reason of its own, and does not say so",
            change_update("state_update", |update| {
                if update["state"] == "idle" {
                    update["stopReason"] = json!("tired");
                }
            }),
        ),
        mutant(
            "v2/extensibility/7",
            "unknown permission option kind \"maybe\"; custom names start with `_`",
            "the agent has an option of its own kind, and does not say so",
            change_call("session/request_permission", |params| {
                params["options"][0]["kind"] = json!("maybe");
            }),
        ),
        mutant(
            "v2/extensibility/8",
            "unknown category \"smell\"; custom names start with `_`",
            "the agent has a category of its own, and does not say so",
            change_result("session/new", |result| {
                result["configOptions"][0]["category"] = json!("smell");
            }),
        ),
        mutant(
            "v2/extensibility/9",
            "unknown content type \"smell\"; custom names start with `_`",
            "the agent has content of its own, and does not say so",
            change_update("agent_message_chunk", |update| {
                update["content"]["type"] = json!("smell")
            }),
        ),
    ]
}
