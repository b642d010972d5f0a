//! Mutants that handle JSON-RPC messages wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::respond_with;
use crate::mutants::layer::{
    LayerLine, Mutant, end_when, mutant, mutate_messages, reject_request, send_twice,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/overview/101",
            "request 0 got 2 responses",
            "the client responds twice",
            send_twice("_acp_check/once", true),
        ),
        mutant(
            "v1/overview/102",
            "no response to request \"17\"",
            "the client turns an id that looks like a number into a number",
            change_response_ids(|id| (*id == "17").then(|| json!(17))),
        ),
        mutant(
            "v1/overview/103",
            "no response to request 9007199254740991",
            "the client truncates numbers to 32 bits",
            change_response_ids(|id| {
                id.as_u64()
                    .filter(|id| *id > 1 << 32)
                    .map(|id| json!(id as u32))
            }),
        ),
        mutant(
            "v1/overview/104",
            "after a request with the same id as the client's prompt",
            "the client treats a request as the response to its own request",
            mutate_messages(|passing| {
                if !passing.said && passing.method == "_acp_check/id" {
                    *passing.message = None;
                }
            }),
        ),
        mutant(
            "v1/overview/105",
            "the unknown method `acp_check/unheard_of` succeeded with",
            "the client returns a result for unknown methods",
            respond_with("acp_check/unheard_of", json!({})),
        ),
        mutant(
            "v1/overview/106",
            "an unknown method got error -32603",
            "the client uses one error code for everything",
            reject_request("acp_check/unheard_of", -32603),
        ),
        mutant(
            "v1/overview/107",
            "the client responded to a notification, with id",
            "the client responds to unknown notifications",
            mutate_messages(|passing| {
                if !passing.said && passing.method == "_acp_check/note" {
                    let error = json!({"code": -32601, "message": "no"});
                    let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
                    passing.back.push(LayerLine::Json(answer));
                }
            }),
        ),
        mutant(
            "v1/overview/108",
            "after a response to an unknown request",
            "the client exits on a response to an unknown request",
            end_when(|message| message["id"] == 424_242),
        ),
        mutant(
            "v1/overview/109",
            "sent concurrent requests 0 to 19, but got no response to: [13]",
            "the client drops requests that arrive too fast",
            mutate_messages(|passing| {
                let number = |message: &Value| message["params"]["number"] == 13;
                if !passing.said && passing.message.as_ref().is_some_and(number) {
                    *passing.message = None;
                }
            }),
        ),
        mutant(
            "v1/overview/110",
            "after unknown fields",
            "the client exits on unknown fields",
            end_when(|message| !message["params"]["update"]["content"]["mood"].is_null()),
        ),
    ]
}

/// Changes the ids of the client's responses.
fn change_response_ids(
    id: impl Fn(&Value) -> Option<Value> + Clone + Send + Sync + 'static,
) -> impl Fn() -> crate::mutants::layer::Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if passing.said
            && passing.answers
            && let Some(message) = passing.message
            && let Some(other) = id(&message["id"])
        {
            message["id"] = other;
        }
    })
}
