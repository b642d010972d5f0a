//! Wrong in asking for permission.

use serde_json::json;

use crate::mutants::changes::{change_incoming_result, drop_updates_if, reject_after_first};
use crate::mutants::layer::{
    Mutant, Mutation, apply_both, change_call, change_result, drop_incoming, mutant,
};

const PERMISSION_METHOD: &str = "session/request_permission";

/// It takes every answer for this one.
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
            "its options cannot be told apart",
            change_call(PERMISSION_METHOD, |params| {
                params["options"][1]["optionId"] = json!("yes")
            }),
        ),
        mutant(
            "v1/tool-calls/32",
            "has no options",
            "the agent leaves no choice",
            change_call(PERMISSION_METHOD, |params| params["options"] = json!([])),
        ),
        mutant(
            "v1/tool-calls/33",
            "which was not reported",
            "the agent asks for what nobody knows of",
            change_call(PERMISSION_METHOD, |params| {
                params["toolCall"]["toolCallId"] = json!("another")
            }),
        ),
        mutant(
            "v1/tool-calls/34",
            "every permission was rejected, but the file was changed to \"alpha",
            "the agent takes a no for a yes",
            assume_option_chosen("yes"),
        ),
        mutant(
            "v1/tool-calls/35",
            "every permission was granted, but the file was not changed: \"alpha",
            "the agent takes a yes for a no",
            assume_option_chosen("no"),
        ),
        mutant(
            "v1/tool-calls/36",
            "was allowed, but never reported as in progress",
            "the agent does not tell what it is at",
            drop_updates_if(&["tool_call_update"], |update| {
                update["status"] == "in_progress"
            }),
        ),
        mutant(
            "v1/tool-calls/37",
            "the turn was cancelled during a permission request, but the file was changed to \"alpha",
            "the agent takes a cancellation for a yes",
            apply_both(
                assume_option_chosen("yes"),
                drop_incoming("session/cancel", false),
            ),
        ),
        mutant(
            "v1/tool-calls/38",
            "after an error response to a permission request: `session/prompt` failed with error -32603: no more",
            "the agent does not get over an error",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/tool-calls/39",
            "permission was rejected, but the turn ended with `cancelled`",
            "the agent takes a rejection for a cancellation",
            change_result("session/prompt", |result| {
                result["stopReason"] = json!("cancelled");
            }),
        ),
    ]
}
