//! Mutants that respond to permission requests incorrectly.

use serde_json::{Value, json};

use crate::mutants::changes::{reject_if, respond_with};
use crate::mutants::layer::{
    Mutant, Mutation, change_result, mutant, mutate_messages, reject_request,
};

const PERMISSION_METHOD: &str = "session/request_permission";

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/tool-calls/121",
            "the client selected \"yes\", which is not one of the options",
            "the client's answer does not depend on the options",
            change_chosen_option(|_| json!("yes")),
        ),
        mutant(
            "v1/tool-calls/121",
            "invalid outcome {\"outcome\":\"allowed\"}",
            "the client responds with an unknown outcome",
            change_result(PERMISSION_METHOD, |result| {
                result["outcome"] = json!({"outcome": "allowed"})
            }),
        ),
        mutant(
            "v1/tool-calls/122",
            "the client selected 0, which is not one of the options",
            "the client turns an id that looks like a number into a number",
            change_chosen_option(|id| {
                id.as_str()
                    .and_then(|id| id.parse().ok())
                    .map_or(id.clone(), |id: u64| json!(id))
            }),
        ),
        mutant(
            "v1/tool-calls/123",
            "the client selected \"allow_once\", which is not one of the options",
            "the client selects an option by its kind",
            change_chosen_option(|_| json!("allow_once")),
        ),
        mutant(
            "v1/tool-calls/124",
            "`session/request_permission` failed with error -32602: no",
            "the client rejects a request with a single option",
            reject_request(PERMISSION_METHOD, -32602),
        ),
        mutant(
            "v1/tool-calls/125",
            "`session/request_permission` failed with error -32602: no title",
            "the client rejects a request without a title",
            mutate_messages(|passing| {
                let bare = |message: &Value| message["params"]["toolCall"]["title"].is_null();
                if !passing.said
                    && passing.method == PERMISSION_METHOD
                    && passing.message.as_ref().is_some_and(bare)
                {
                    let id = passing.message.take().unwrap()["id"].clone();
                    let error = json!({"code": -32602, "message": "no title"});
                    let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
                    passing
                        .back
                        .push(crate::mutants::layer::LayerLine::Json(answer));
                }
            }),
        ),
        mutant(
            "v1/tool-calls/126",
            "the client selected \"yes-0\", which is not one of the options",
            "the client supports only one permission request at a time",
            change_chosen_option(|_| json!("yes-0")),
        ),
        mutant(
            "v1/tool-calls/127",
            "the client responded with `cancelled`, but did not cancel the turn",
            "the client responds with `cancelled` instead of a rejection",
            respond_with(
                PERMISSION_METHOD,
                json!({"outcome": {"outcome": "cancelled"}}),
            ),
        ),
        mutant(
            "v1/tool-calls/128",
            "the client selected \"\", which is not one of the options",
            "the client fails on an unknown option kind",
            change_chosen_option(|_| json!("")),
        ),
        mutant(
            "v1/tool-calls/129",
            "`session/request_permission` failed with error -32602: no",
            "the client rejects permission requests of subagents",
            reject_if(PERMISSION_METHOD, -32602, |params| {
                params["sessionId"] == "acp-check-subagent"
            }),
        ),
    ]
}

/// Modifies the option ids that the client selects.
fn change_chosen_option(
    other: impl Fn(&Value) -> Value + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    change_result(PERMISSION_METHOD, move |result| {
        let chosen = &mut result["outcome"]["optionId"];
        *chosen = other(chosen);
    })
}
