//! Mutants that request permission wrongly.

use serde_json::json;

use crate::mutants::changes::{hear_result, only_once, without_updates};
use crate::mutants::layer::{Mutant, Mutation, answer, both, call, mutant, unheard};

const ASKS: &str = "session/request_permission";

/// Replaces every answer with this option.
fn hears_option(id: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    hear_result(ASKS, move |result| {
        result["outcome"] = json!({"outcome": "selected", "optionId": id});
    })
}

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/tool-calls/31",
            "duplicate option id \"yes\"",
            "the agent's permission options all have the same id",
            call(ASKS, |params| {
                params["options"][1]["optionId"] = json!("yes")
            }),
        ),
        mutant(
            "v1/tool-calls/32",
            "has no options",
            "the agent's permission requests have no options",
            call(ASKS, |params| params["options"] = json!([])),
        ),
        mutant(
            "v1/tool-calls/33",
            "which was not reported",
            "the agent requests permission for an unreported tool call",
            call(ASKS, |params| {
                params["toolCall"]["toolCallId"] = json!("another")
            }),
        ),
        mutant(
            "v1/tool-calls/34",
            "every permission was rejected, but the file was changed to \"alpha",
            "the agent treats a rejection as approval",
            hears_option("yes"),
        ),
        mutant(
            "v1/tool-calls/35",
            "every permission was granted, but the file was not changed: \"alpha",
            "the agent treats approval as a rejection",
            hears_option("no"),
        ),
        mutant(
            "v1/tool-calls/36",
            "was allowed, but never reported as in progress",
            "the agent does not report that a tool call is in progress",
            without_updates(&["tool_call_update"], |update| {
                update["status"] == "in_progress"
            }),
        ),
        mutant(
            "v1/tool-calls/37",
            "the turn was cancelled during a permission request, but the file was changed to \"alpha",
            "the agent treats a cancellation as approval",
            both(hears_option("yes"), unheard("session/cancel", false)),
        ),
        mutant(
            "v1/tool-calls/38",
            "after an error response to a permission request: `session/prompt` failed with error -32603: no more",
            "the agent fails after an error response",
            only_once("session/prompt"),
        ),
        mutant(
            "v1/tool-calls/39",
            "permission was rejected, but the turn ended with `cancelled`",
            "the agent treats a rejection as a cancellation",
            answer("session/prompt", |result| {
                result["stopReason"] = json!("cancelled");
            }),
        ),
    ]
}
