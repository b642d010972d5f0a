//! Mutants that negotiate versions and capabilities wrongly.

use serde_json::{Value, json};

use super::called;
use crate::mutants::layer::{LayerLine, Mutant, call, change, ends_at, mutant, says_at};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/initialization/101",
            "the first message is not `initialize`",
            "the client sends another message before `initialize`",
            change(|passing| {
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
            call("initialize", |params| params["protocolVersion"] = json!(0)),
        ),
        mutant(
            "v1/initialization/103",
            "the client continued with `session/new`",
            "the client ignores the version in the response",
            heard_introduction(|introduction| introduction["protocolVersion"] = json!(1)),
        ),
        mutant(
            "v1/initialization/104",
            "the prompt contains content of type \"image\", which the agent does not support",
            "the client sends an image although the agent does not support images",
            call("session/prompt", |params| {
                params["prompt"] = json!([{"type": "image", "mimeType": "image/png", "data": ""}]);
            }),
        ),
        mutant(
            "v1/initialization/104",
            "the client sent `session/list`, which the agent does not support",
            "the client lists sessions although the agent does not support that",
            says_at(
                |passing| passing.answers && passing.method == "session/new",
                called("session/list", json!({})),
            ),
        ),
        mutant(
            "v1/initialization/105",
            "`clientInfo`",
            "the client sends no name",
            call("initialize", |params| {
                params.as_object_mut().unwrap().remove("clientInfo");
            }),
        ),
        mutant(
            "v1/initialization/106",
            "closed its output",
            "the client exits on an unknown capability",
            ends_at(|message| !message["result"]["agentCapabilities"]["telepathy"].is_null()),
        ),
        mutant(
            "v1/initialization/107",
            "the client sent `initialize` 2 times",
            "the client sends `initialize` twice",
            says_at(
                |passing| passing.answers && passing.method == "session/new",
                called("initialize", json!({"protocolVersion": 1})),
            ),
        ),
        mutant(
            "v1/initialization/108",
            "closed its output",
            "the client exits if there are no capabilities",
            ends_at(|message| {
                let result = &message["result"];
                result["protocolVersion"] == 1 && result["agentCapabilities"].is_null()
            }),
        ),
        mutant(
            "v1/initialization/109",
            "the client sent `session/new` before the response to `initialize`",
            "the client does not wait for the response to `initialize`",
            change(|passing| {
                if passing.said && passing.method == "initialize" {
                    let params = json!({"cwd": "/", "mcpServers": []});
                    passing
                        .then
                        .push(LayerLine::Json(called("session/new", params)));
                }
            }),
        ),
        mutant(
            "v1/initialization/110",
            "the client sent `session/new` although `initialize` failed",
            "the client treats an error as a result",
            change(|passing| {
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
fn heard_introduction(
    heard: impl Fn(&mut Value) + Clone + Send + Sync + 'static,
) -> impl Fn() -> crate::mutants::layer::Mutation + Send + Sync {
    change(move |passing| {
        if !passing.said
            && passing.answers
            && passing.method == "initialize"
            && let Some(result) = passing.message.as_mut().and_then(|m| m.get_mut("result"))
        {
            heard(result);
        }
    })
}
