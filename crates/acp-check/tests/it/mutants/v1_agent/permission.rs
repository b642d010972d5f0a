//! Mutants that request permission incorrectly.

use serde_json::json;

use crate::mutants::changes::{change_incoming_result, drop_updates_if, reject_after_first};
use crate::mutants::layer::{
    Mutant, Mutation, apply_both, change_call, change_result, drop_incoming, mutant,
};

const PERMISSION_METHOD: &str = "session/request_permission";

/// Replaces the response to every permission request with one that selects this option.
fn assume_option_chosen(id: &'static str) -> impl Fn() -> Mutation + Send + Sync {
    change_incoming_result(PERMISSION_METHOD, move |result| {
        result["outcome"] = json!({"outcome": "selected", "optionId": id});
    })
}

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/tool-calls/31",
            "duplicate option id \"yes\"",
            "the agent's permission options all have the same id",
            change_call(PERMISSION_METHOD, |params| {
                params["options"][1]["optionId"] = json!("yes")
            }),
        ),
        mutant(
            "v1/tool-calls/32",
            "has no options",
            "the agent's permission requests have no options",
            change_call(PERMISSION_METHOD, |params| params["options"] = json!([])),
        ),
        mutant(
            "v1/tool-calls/33",
            "which was not reported",
            "the agent requests permission for an unreported tool call",
            change_call(PERMISSION_METHOD, |params| {
                params["toolCall"]["toolCallId"] = json!("another")
            }),
        ),
        mutant(
            "v1/tool-calls/34",
            "every permission was rejected, but the file was changed to \"alpha",
            "the agent treats a rejection as approval",
            assume_option_chosen("yes"),
        ),
        mutant(
            "v1/tool-calls/35",
            "every permission was granted, but the file still contains \"alpha",
            "the agent treats approval as a rejection",
            assume_option_chosen("no"),
        ),
        mutant(
            "v1/tool-calls/36",
            "was allowed, but never reported as in progress",
            "the agent does not report that a tool call is in progress",
            drop_updates_if(&["tool_call_update"], |update| {
                update["status"] == "in_progress"
            }),
        ),
        mutant(
            "v1/tool-calls/37",
            "the turn was cancelled during a permission request, but the file was changed to \"alpha",
            "the agent treats a cancellation as approval",
            apply_both(
                assume_option_chosen("yes"),
                drop_incoming("session/cancel", false),
            ),
        ),
        mutant(
            "v1/tool-calls/38",
            "after an error response to a permission request: `session/prompt` failed with error -32603: no more",
            "the agent fails after an error response",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/tool-calls/39",
            "permission was rejected, but the turn ended with `cancelled`",
            "the agent treats a rejection as a cancellation",
            change_result("session/prompt", |result| {
                result["stopReason"] = json!("cancelled");
            }),
        ),
    ]
}
