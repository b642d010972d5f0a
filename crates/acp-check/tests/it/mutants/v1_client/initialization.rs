//! Mutants that negotiate versions and capabilities wrongly.

use serde_json::{Value, json};

use super::method_call;
use crate::mutants::layer::{
    LayerLine, Mutant, call_when, change_call, end_when, mutant, mutate_messages,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/initialization/101",
            "the first message is not `initialize`",
            "the client sends another message before `initialize`",
            mutate_messages(|passing| {
                if passing.said && passing.method == "initialize" {
                    let first = json!({"jsonrpc": "2.0", "method": "_hello", "params": {}});
                    passing
                        .then
                        .extend(passing.message.replace(first).map(LayerLine::Json));
                }
            }),
        ),
        mutant(
            "v1/initialization/102",
            "the client requested version 0",
            "the client requests a version that does not exist",
            change_call("initialize", |params| params["protocolVersion"] = json!(0)),
        ),
        mutant(
            "v1/initialization/103",
            "the client did not close the connection, but sent `session/new`",
            "the client ignores the version in the response",
            change_initialize_response(|introduction| introduction["protocolVersion"] = json!(1)),
        ),
        mutant(
            "v1/initialization/104",
            "the prompt contains content of type \"image\", which the agent does not support",
            "the client sends an image although the agent does not support images",
            change_call("session/prompt", |params| {
                params["prompt"] = json!([{"type": "image", "mimeType": "image/png", "data": ""}]);
            }),
        ),
        mutant(
            "v1/initialization/104",
            "the client sent `session/list`, which the agent does not support",
            "the client lists sessions although the agent does not support that",
            call_when(
                |passing| passing.answers && passing.method == "session/new",
                method_call("session/list", json!({})),
            ),
        ),
        mutant(
            "v1/initialization/105",
            "`clientInfo`",
            "the client sends no name",
            change_call("initialize", |params| {
                params.as_object_mut().unwrap().remove("clientInfo");
            }),
        ),
        mutant(
            "v1/initialization/106",
            "closed its output",
            "the client exits on an unknown capability",
            end_when(|message| !message["result"]["agentCapabilities"]["telepathy"].is_null()),
        ),
        mutant(
            "v1/initialization/107",
            "the client sent `initialize` 2 times",
            "the client sends `initialize` twice",
            call_when(
                |passing| passing.answers && passing.method == "session/new",
                method_call("initialize", json!({"protocolVersion": 1})),
            ),
        ),
        mutant(
            "v1/initialization/108",
            "closed its output",
            "the client exits if there are no capabilities",
            end_when(|message| {
                let result = &message["result"];
                result["protocolVersion"] == 1 && result["agentCapabilities"].is_null()
            }),
        ),
        mutant(
            "v1/initialization/109",
            "the client sent `session/new` before the response to `initialize`",
            "the client does not wait for the response to `initialize`",
            mutate_messages(|passing| {
                if passing.said && passing.method == "initialize" {
                    let params = json!({"cwd": "/", "mcpServers": []});
                    passing
                        .then
                        .push(LayerLine::Json(method_call("session/new", params)));
                }
            }),
        ),
        mutant(
            "v1/initialization/110",
            "the client sent `session/new` although `initialize` failed",
            "the client treats an error as a result",
            mutate_messages(|passing| {
                if !passing.said
                    && passing.method == "initialize"
                    && let Some(message) = passing.message
                {
                    let introduction = json!({"protocolVersion": 1});
                    *message =
                        json!({"jsonrpc": "2.0", "id": message["id"], "result": introduction});
                }
            }),
        ),
    ]
}

/// Changes the response to `initialize` before the client gets it.
fn change_initialize_response(
    heard: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> crate::mutants::layer::Mutation + Send + Sync {
    mutate_messages(move |passing| {
        if !passing.said
            && passing.answers
            && passing.method == "initialize"
            && let Some(result) = passing.message.as_mut().and_then(|m| m.get_mut("result"))
        {
            heard(result);
        }
    })
}
