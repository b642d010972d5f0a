//! Mutants that handle extensions incorrectly.

use serde_json::{Value, json};

use super::overview::change_code;
use crate::mutants::changes::reject_if;
use crate::mutants::layer::{
    LayerLine, Mutant, change_result, drop_outgoing, mutant, mutate_messages,
};

const UNKNOWN_METHOD: &str = "_acp-check/unknown";

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/extensibility/1",
            "`session/new` failed with error",
            "the agent interprets the content of `_meta`",
            reject_if("session/new", -32602, |params| {
                params["_meta"]["progressToken"].is_object()
            }),
        ),
        mutant(
            "v1/extensibility/2",
            "`session/prompt` failed with error",
            "the agent rejects `_meta` in content blocks",
            reject_if("session/prompt", -32602, |params| {
                params["prompt"][0].get("_meta").is_some()
            }),
        ),
        mutant(
            "v1/extensibility/3",
            "`session/prompt` failed with error",
            "the agent rejects responses with `_meta`",
            mutate_messages(|passing| {
                if !passing.said
                    && passing.answers
                    && passing.method == "session/request_permission"
                    && let Some(message) = passing.message
                    && message["result"].get("_meta").is_some()
                {
                    let error = json!({"code": -32602, "message": "no"});
                    let id = &message["id"];
                    *message = json!({"jsonrpc": "2.0", "id": id, "error": error});
                }
            }),
        ),
        mutant(
            "v1/extensibility/4",
            "waiting for a response to request 1",
            "the agent ignores unknown requests",
            drop_outgoing(UNKNOWN_METHOD, true),
        ),
        mutant(
            "v1/extensibility/5",
            "failed with error -32603",
            "the agent uses a wrong error code for unknown methods",
            change_code(-32601, -32603),
        ),
        mutant(
            "v1/extensibility/6",
            "after the notification `_acp-check/hello`",
            "the agent exits on an unknown extension notification",
            end_on_request("_acp-check/hello"),
        ),
        mutant(
            "v1/extensibility/7",
            "the agent stopped responding after the unknown notification `session/acp-check`",
            "the agent exits on an unknown notification",
            end_on_request("session/acp-check"),
        ),
        mutant(
            "v1/extensibility/8",
            "`session/new` failed with error",
            "the agent rejects unknown fields",
            reject_if("session/new", -32602, |params| {
                params.get("acpCheckLater").is_some()
            }),
        ),
        mutant(
            "v1/extensibility/9",
            "the agent sent `right/telemetry`",
            "the agent's custom method does not start with `_`",
            mutate_messages(|passing| {
                if passing.said && passing.method == "session/update" {
                    let own = json!({"jsonrpc": "2.0", "method": "right/telemetry"});
                    passing.then.push(LayerLine::Json(own));
                }
            }),
        ),
        mutant(
            "v1/extensibility/10",
            "`result.mood` is not in the specification; custom fields belong in `_meta`",
            "the agent adds a custom field to a response",
            change_result("session/new", |result| result["mood"] = json!("good")),
        ),
    ]
}

fn end_on_request(
    method: &'static str,
) -> impl Fn() -> crate::mutants::layer::Mutation + Send + Sync {
    mutate_messages(move |passing| {
        let heard = |message: &Value| message["method"] == method;
        if !passing.said && passing.message.as_ref().is_some_and(heard) {
            passing.back.push(LayerLine::End);
        }
    })
}
