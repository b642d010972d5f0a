//! Wrong in asking for permission.

use serde_json::json;

use crate::mutants::changes::{hear_result, only_once, without_updates};
use crate::mutants::layer::{Mutant, Mutation, answer, both, call, mutant, unheard};

const ASKS: &str = "session/request_permission";

/// It takes every answer for this one.
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
            "its options cannot be told apart",
            call(ASKS, |params| {
                params["options"][1]["optionId"] = json!("yes")
            }),
        ),
        mutant(
            "v1/tool-calls/32",
            "has no options",
            "it leaves no choice",
            call(ASKS, |params| params["options"] = json!([])),
        ),
        mutant(
            "v1/tool-calls/33",
            "permission was requested for tool call",
            "it asks for what nobody knows of",
            call(ASKS, |params| {
                params["toolCall"]["toolCallId"] = json!("another")
            }),
        ),
        mutant(
            "v1/tool-calls/34",
            "every permission was rejected, and the file was changed",
            "it takes a no for a yes",
            hears_option("yes"),
        ),
        mutant(
            "v1/tool-calls/35",
            "the file is not changed",
            "it takes a yes for a no",
            hears_option("no"),
        ),
        mutant(
            "v1/tool-calls/36",
            "never reported to be in progress",
            "it does not tell what it is at",
            without_updates(&["tool_call_update"], |update| {
                update["status"] == "in_progress"
            }),
        ),
        mutant(
            "v1/tool-calls/37",
            "the turn was cancelled when permission was asked for",
            "it takes a cancellation for a yes",
            both(hears_option("yes"), unheard("session/cancel", false)),
        ),
        mutant(
            "v1/tool-calls/38",
            "after an error for an answer",
            "it does not get over an error",
            only_once("session/prompt"),
        ),
        mutant(
            "v1/tool-calls/39",
            "has ended as cancelled",
            "it takes a rejection for a cancellation",
            answer("session/prompt", |result| {
                result["stopReason"] = json!("cancelled");
            }),
        ),
    ]
}
