//! Mutants that handle JSON-RPC or version negotiation wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{
    change_error_code, change_string_id, reject_if, replace_error, respond_to_notifications,
    send_after_update, set_field,
};
use crate::mutants::layer::{
    Mutant, change_call, change_result, change_update, mutant, mutate_messages, reject_request,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = overview_mutants();
    mutants.extend([
        mutant(
            "v2/initialization/1",
            "`info` with `name` and `version` is missing",
            "the agent sends no name",
            change_result("initialize", |result| set_field(result, "info", None)),
        ),
        mutant(
            "v2/initialization/1",
            "`initialize` failed with error",
            "the agent rejects `initialize`",
            reject_request("initialize", -32603),
        ),
        mutant(
            "v2/initialization/2",
            "requested version 2, got 7",
            "the agent responds with a version that does not exist",
            change_result("initialize", |result| result["protocolVersion"] = json!(7)),
        ),
        mutant(
            "v2/initialization/3",
            "requested the nonexistent version 65535, got 65535",
            "the agent echoes the requested version",
            change_result("initialize", |result| {
                result["protocolVersion"] = json!(65535)
            }),
        ),
        mutant(
            "v2/initialization/4",
            "no `stopReason`",
            "the agent responds to prompts as in version 2, whatever was negotiated",
            change_result("session/prompt", |result| {
                set_field(result, "stopReason", None)
            }),
        ),
        mutant(
            "v2/initialization/4",
            "a `state_update`, which exists only in version 2, was sent in version 1",
            "the agent reports its state as in version 2, whatever was negotiated",
            change_call("session/update", |params| {
                params["update"] = json!({"sessionUpdate": "state_update", "state": "running"});
            }),
        ),
        mutant(
            "v2/initialization/5",
            "failed with error",
            "the agent rejects unknown capabilities",
            reject_if("initialize", -32603, |params| {
                params["capabilities"]["telepathy"].is_object()
            }),
        ),
        mutant(
            "v2/initialization/6",
            "the agent called `elicitation/create`",
            "the agent requests input from clients that do not support it",
            send_after_update(
                |update| update["state"] == "running",
                |params| request_message("elicitation/create", params),
            ),
        ),
        mutant(
            "v2/initialization/7",
            "the agent called `fs/read_text_file`",
            "the agent reads files of version 2 clients",
            send_after_update(
                |update| update["state"] == "running",
                |params| request_message("fs/read_text_file", params),
            ),
        ),
        mutant(
            "v2/initialization/8",
            "the update `tool_call`",
            "the agent reports tool calls as in version 1",
            change_update("tool_call_update", |update| {
                update["sessionUpdate"] = json!("tool_call")
            }),
        ),
    ]);
    mutants
}

fn request_message(method: &str, params: &Value) -> Value {
    let params = json!({
        "sessionId": params["sessionId"], "path": "/nowhere", "message": "Who is it?", "mode": "form",
    });
    json!({"jsonrpc": "2.0", "id": format!("mutant {method}"), "method": method, "params": params})
}

fn overview_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/overview/1",
            "an unknown method got error -32603; expected -32601",
            "the agent uses a wrong error code for an unknown method",
            change_error_code("session/acp_check_no_such", -32603),
        ),
        mutant(
            "v2/overview/1",
            "succeeded; expected an error",
            "the agent returns a result for an unknown method",
            replace_error("session/acp_check_no_such", || json!({})),
        ),
        mutant(
            "v2/overview/2",
            "a response with the id",
            "the agent treats ids as numbers",
            change_string_id(),
        ),
        mutant(
            "v2/overview/3",
            "after two notifications, the agent sent a response with the unknown id",
            "the agent responds to notifications",
            respond_to_notifications(),
        ),
        mutant(
            "v2/overview/4",
            "8 of 16 requests got no response",
            "the agent responds to every other request",
            mutate_messages(|passing| {
                let odd = |message: &Value| message["id"].as_u64().is_some_and(|id| id % 2 == 1);
                if passing.said
                    && passing.answers
                    && passing.method == "_acp-check/several"
                    && passing.message.as_ref().is_some_and(odd)
                {
                    *passing.message = None;
                }
            }),
        ),
    ]
}
