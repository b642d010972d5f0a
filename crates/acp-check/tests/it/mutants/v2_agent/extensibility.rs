//! Mutants that handle extensions wrongly.

use serde_json::json;

use crate::mutants::changes::{change_error_code, fall_silent_after, reject_if, replace_error};
use crate::mutants::layer::{Mutant, change_call, change_result, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/extensibility/1",
            "expected -32601",
            "the agent uses a wrong error code for an unknown extension",
            change_error_code("_acp-check/no-such", -32603),
        ),
        mutant(
            "v2/extensibility/1",
            "an unknown method succeeded; expected an error",
            "the agent returns a result for an unknown extension",
            replace_error("_acp-check/no-such", || json!({})),
        ),
        mutant(
            "v2/extensibility/2",
            "waiting for a response to request 2",
            "the agent stops responding after an unknown notification",
            fall_silent_after(|message| message["method"] == "_acp-check/no-such"),
        ),
        mutant(
            "v2/extensibility/3",
            "`session/new` failed with error -32603: no",
            "the agent interprets the content of `_meta`",
            reject_if("session/new", -32603, |params| {
                params["_meta"]["traceparent"] == "none"
            }),
        ),
        mutant(
            "v2/extensibility/4",
            "unknown update type \"weather_update\"; custom names must start with `_`",
            "the agent's custom update type does not start with `_`",
            change_update("usage_update", |update| {
                update["sessionUpdate"] = json!("weather_update")
            }),
        ),
        mutant(
            "v2/extensibility/5",
            "unknown tool call kind \"smell\"; custom names must start with `_`",
            "the agent's custom tool call kind does not start with `_`",
            change_update("tool_call_update", |update| update["kind"] = json!("smell")),
        ),
        mutant(
            "v2/extensibility/5",
            "unknown tool call status \"asleep\"; custom names must start with `_`",
            "the agent's custom tool call status does not start with `_`",
            change_update("tool_call_update", |update| {
                update["status"] = json!("asleep")
            }),
        ),
        mutant(
            "v2/extensibility/6",
            "unknown stop reason \"tired\"; custom names must start with `_`",
            "the agent's custom stop reason does not start with `_`",
            change_update("state_update", |update| {
                if update["state"] == "idle" {
                    update["stopReason"] = json!("tired");
                }
            }),
        ),
        mutant(
            "v2/extensibility/7",
            "unknown permission option kind \"maybe\"; custom names must start with `_`",
            "the agent's custom option kind does not start with `_`",
            change_call("session/request_permission", |params| {
                params["options"][0]["kind"] = json!("maybe");
            }),
        ),
        mutant(
            "v2/extensibility/8",
            "unknown category \"smell\"; custom names must start with `_`",
            "the agent's custom category does not start with `_`",
            change_result("session/new", |result| {
                result["configOptions"][0]["category"] = json!("smell");
            }),
        ),
        mutant(
            "v2/extensibility/9",
            "unknown content type \"smell\"; custom names must start with `_`",
            "the agent's custom content type does not start with `_`",
            change_update("agent_message_chunk", |update| {
                update["content"]["type"] = json!("smell")
            }),
        ),
    ]
}
