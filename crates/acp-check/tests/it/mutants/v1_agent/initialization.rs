//! Mutants that negotiate versions and capabilities incorrectly.

use serde_json::json;

use crate::mutants::changes::reject_if;
use crate::mutants::layer::{
    Mutant, change_result, drop_outgoing, mutant, reject_from_nth, reject_request,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/initialization/1",
            "`initialize` failed with error",
            "the agent rejects `initialize`",
            reject_request("initialize", -32603),
        ),
        mutant(
            "v1/initialization/1",
            "no `protocolVersion`",
            "the agent sends no version",
            change_result("initialize", |result| {
                result.as_object_mut().unwrap().remove("protocolVersion");
            }),
        ),
        mutant(
            "v1/initialization/2",
            "requested protocol version 1, but the response has 7",
            "the agent responds with a version that does not exist",
            change_result("initialize", |result| result["protocolVersion"] = json!(7)),
        ),
        mutant(
            "v1/initialization/3",
            "requested protocol version 65535, which does not exist; expected 1 or 2, got 65535",
            "the agent echoes the requested version",
            change_result("initialize", |result| {
                result["protocolVersion"] = json!(65535);
            }),
        ),
        mutant(
            "v1/initialization/4",
            "the agent called `fs/read_text_file`",
            "the agent reads files of clients that do not support it",
            assume_capabilities(json!({"fs": {"readTextFile": true}})),
        ),
        mutant(
            "v1/initialization/5",
            "failed with error",
            "the agent rejects unknown capabilities",
            reject_unknown_capabilities,
        ),
        mutant(
            "v1/initialization/6",
            "agentInfo",
            "the agent sends no name",
            change_result("initialize", |result| {
                result.as_object_mut().unwrap().remove("agentInfo");
            }),
        ),
        mutant(
            "v1/initialization/7",
            "the agent called `fs/write_text_file`",
            "the agent writes files of a client that supports only reading",
            assume_capabilities(json!({"fs": {"readTextFile": true, "writeTextFile": true}})),
        ),
        mutant(
            "v1/initialization/8",
            "the agent called `fs/read_text_file`",
            "the agent reads files of a client that supports only writing",
            assume_capabilities(json!({"fs": {"readTextFile": true, "writeTextFile": true}})),
        ),
        mutant(
            "v1/initialization/9",
            "the agent called `fs/read_text_file`",
            "the agent reads files of a client that supports only terminals",
            assume_capabilities(json!({"fs": {"readTextFile": true}, "terminal": true})),
        ),
        mutant(
            "v1/initialization/10",
            "no `agentCapabilities`",
            "the agent sends no capabilities",
            change_result("initialize", |result| {
                result.as_object_mut().unwrap().remove("agentCapabilities");
            }),
        ),
        mutant(
            "v1/initialization/11",
            "the agent offers `session/list`",
            "the agent advertises a method that it does not support",
            reject_request("session/list", -32601),
        ),
        mutant(
            "v1/initialization/12",
            "waiting for a response to request 0",
            "the agent ignores requests before `initialize`",
            drop_outgoing("session/new", true),
        ),
        mutant(
            "v1/initialization/13",
            "waiting for a response to request 1",
            "the agent ignores a second `initialize`",
            drop_second_initialize,
        ),
        mutant(
            "v1/initialization/14",
            "`initialize` failed with error -32600",
            "the agent rejects `initialize` after a failed attempt",
            reject_from_nth("initialize", -32600, 2),
        ),
        mutant(
            "v1/initialization/15",
            "`initialize` failed with error -32602",
            "the agent rejects null capabilities",
            reject_if("initialize", -32602, |params| {
                params
                    .get("clientInfo")
                    .is_some_and(serde_json::Value::is_null)
            }),
        ),
    ]
}

/// Drops a second `initialize` before it reaches the agent.
fn drop_second_initialize() -> crate::mutants::layer::Mutation {
    let mut calls = 0;
    Box::new(move |passing| {
        if !passing.said && passing.method == "initialize" {
            calls += 1;
            if calls == 2 {
                *passing.message = None;
            }
        }
    })
}

/// Makes the agent assume that the client has these capabilities.
fn assume_capabilities(
    capabilities: serde_json::Value,
) -> impl Fn() -> crate::mutants::layer::Mutation + Send + Sync {
    crate::mutants::layer::mutate_messages(move |passing| {
        if !passing.said
            && passing.method == "initialize"
            && let Some(message) = passing.message
        {
            message["params"]["clientCapabilities"] = capabilities.clone();
        }
    })
}

/// Rejects a client that advertises an unknown capability.
fn reject_unknown_capabilities() -> crate::mutants::layer::Mutation {
    Box::new(|passing| {
        let unknown = |message: &serde_json::Value| {
            message["params"]["clientCapabilities"]["telepathy"].is_object()
        };
        if !passing.said && passing.message.as_ref().is_some_and(unknown) {
            let id = passing.message.take().unwrap()["id"].clone();
            let error = json!({"code": -32602, "message": "unknown capability"});
            let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
            passing
                .back
                .push(crate::mutants::layer::LayerLine::Json(answer));
        }
    })
}
