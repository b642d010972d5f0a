//! Mutants that handle JSON-RPC, version negotiation or extensions wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{
    change_error_code, change_incoming_response, change_string_id, fall_silent_after,
    fall_silent_at, replace_error, respond_to_notifications, set_field,
};
use crate::mutants::layer::{LayerLine, Mutant, Mutation, change_call, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = overview_mutants();
    mutants.extend(initialization_mutants());
    mutants
}

fn initialization_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/initialization/101",
            "the first message is not `initialize`",
            "the client sends another message before `initialize`",
            send_before_initialize,
        ),
        mutant(
            "v2/initialization/102",
            "`info` with `name` and `version` is missing",
            "the client sends no name",
            change_call("initialize", |params| set_field(params, "info", None)),
        ),
        mutant(
            "v2/initialization/103",
            "the client did not close the connection, but sent `session/new`",
            "the client ignores the version in the response",
            change_incoming_response("initialize", |message| {
                message["result"]["protocolVersion"] = json!(2)
            }),
        ),
        mutant(
            "v2/initialization/104",
            "the client did not send `session/prompt` within",
            "the client stops responding after an unknown capability",
            fall_silent_at("telepathy"),
        ),
        mutant(
            "v2/initialization/105",
            "the client sent `session/new`",
            "the client opens a session although the agent does not support sessions",
            change_incoming_response("initialize", |message| {
                message["result"]["capabilities"] = json!({"session": {}});
            }),
        ),
        mutant(
            "v2/initialization/106",
            "the agent responded with version 1, but `session/new` is not valid in version 1: `params.mcpServers` is missing",
            "the client opens sessions as in version 2, whatever was negotiated",
            change_call("session/new", |params| {
                set_field(params, "mcpServers", None)
            }),
        ),
        mutant(
            "v2/initialization/107",
            "the prompt contains content of type `image`, which the agent does not support",
            "the client sends an image although the agent does not support images",
            change_call("session/prompt", |params| {
                let image = json!({"type": "image", "mimeType": "image/png", "data": "eA=="});
                params["prompt"].as_array_mut().unwrap().push(image);
            }),
        ),
        mutant(
            "v2/initialization/108",
            "`fs/read_text_file` succeeded, although it does not exist in version 2",
            "the client reads files for version 2 agents",
            replace_error("fs/read_text_file", || json!({"content": "alpha\n"})),
        ),
        mutant(
            "v2/initialization/109",
            "`terminal/create` succeeded, although it does not exist in version 2",
            "the client creates terminals for version 2 agents",
            replace_error("terminal/create", || json!({"terminalId": "t"})),
        ),
    ]
}

fn send_before_initialize() -> Mutation {
    Box::new(|passing| {
        if passing.said && passing.method == "initialize" {
            let hello = json!({"jsonrpc": "2.0", "method": "_mutant/hello"});
            let initialize: Option<Value> = passing.message.replace(hello);
            passing.then.extend(initialize.map(LayerLine::Json));
        }
    })
}

fn overview_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/overview/101",
            "an unknown method got error -32603; expected -32601",
            "the client uses a wrong error code for an unknown method",
            change_error_code("session/acp_check_no_such", -32603),
        ),
        mutant(
            "v2/overview/101",
            "succeeded; expected an error",
            "the client returns a result for an unknown method",
            replace_error("session/acp_check_no_such", || json!({})),
        ),
        mutant(
            "v2/overview/102",
            "no response to request \"acp-check-07\"",
            "the client treats ids as numbers",
            change_string_id(),
        ),
        mutant(
            "v2/overview/103",
            "after two notifications, the client sent a response with the unknown id",
            "the client responds to notifications",
            respond_to_notifications(),
        ),
        mutant(
            "v2/extensibility/101",
            "expected -32601",
            "the client uses a wrong error code for an unknown extension",
            change_error_code("_acp-check/no-such", -32603),
        ),
        mutant(
            "v2/extensibility/101",
            "an unknown method succeeded; expected an error",
            "the client returns a result for an unknown extension",
            replace_error("_acp-check/no-such", || json!({})),
        ),
        mutant(
            "v2/extensibility/102",
            "after an unknown extension notification: no response to request 0",
            "the client stops responding after an unknown notification",
            fall_silent_at("_acp-check/no-such"),
        ),
        mutant(
            "v2/extensibility/103",
            "after unusual metadata: no response to request 0",
            "the client interprets the content of `_meta`",
            fall_silent_after(|message| message["params"]["update"]["_meta"].is_object()),
        ),
    ]
}
