//! Wrong in initialization.

use serde_json::{Value, json};

use super::called;
use crate::mutants::layer::{LayerLine, Mutant, call, change, ends_at, mutant, says_at};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/initialization/101",
            "the first message is not `initialize`",
            "the client says something else first",
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
            "the client asks for a version that is none",
            call("initialize", |params| params["protocolVersion"] = json!(0)),
        ),
        mutant(
            "v1/initialization/103",
            "the client continued with `session/new`",
            "the client does not look at the version that is answered",
            heard_introduction(|introduction| introduction["protocolVersion"] = json!(1)),
        ),
        mutant(
            "v1/initialization/104",
            "the prompt contains content of type \"image\", which the agent does not support",
            "the client prompts with an image whoever the agent is",
            call("session/prompt", |params| {
                params["prompt"] = json!([{"type": "image", "mimeType": "image/png", "data": ""}]);
            }),
        ),
        mutant(
            "v1/initialization/104",
            "the client sent `session/list`, which the agent does not support",
            "the client lists the sessions of every agent",
            says_at(
                |passing| passing.answers && passing.method == "session/new",
                called("session/list", json!({})),
            ),
        ),
        mutant(
            "v1/initialization/105",
            "`clientInfo`",
            "the client has no name",
            call("initialize", |params| {
                params.as_object_mut().unwrap().remove("clientInfo");
            }),
        ),
        mutant(
            "v1/initialization/106",
            "closed its output",
            "the client ends at a capability that it does not know",
            ends_at(|message| !message["result"]["agentCapabilities"]["telepathy"].is_null()),
        ),
        mutant(
            "v1/initialization/107",
            "the client sent `initialize` 2 times",
            "the client begins again when it has begun",
            says_at(
                |passing| passing.answers && passing.method == "session/new",
                called("initialize", json!({"protocolVersion": 1})),
            ),
        ),
        mutant(
            "v1/initialization/108",
            "closed its output",
            "the client wants to be told of capabilities",
            ends_at(|message| {
                let result = &message["result"];
                result["protocolVersion"] == 1 && result["agentCapabilities"].is_null()
            }),
        ),
        mutant(
            "v1/initialization/109",
            "the client sent `session/new` before the response to `initialize`",
            "the client does not wait for the answer",
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
            "the client takes an error for an answer",
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

/// Changes what the client hears of the agent.
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
