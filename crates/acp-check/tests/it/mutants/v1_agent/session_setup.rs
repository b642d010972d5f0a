//! Mutants that set up new sessions incorrectly.

use serde_json::{Value, json};

use crate::mutants::changes::reject_if;
use crate::mutants::layer::{
    InterceptedMessage, LayerLine, Mutant, Mutation, change_incoming, change_result, drop_outgoing,
    mutant, mutate_messages,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-setup/1",
            "has no `sessionId`",
            "the agent's session ids are numbers",
            change_result("session/new", |result| result["sessionId"] = json!(1)),
        ),
        mutant(
            "v1/session-setup/1",
            "the `sessionId` is empty",
            "the agent's session ids are empty",
            change_result("session/new", |result| result["sessionId"] = json!("")),
        ),
        mutant(
            "v1/session-setup/2",
            "the agent opened two sessions with id \"session\"",
            "the agent's sessions all have the same id",
            change_result("session/new", |result| {
                result["sessionId"] = json!("session")
            }),
        ),
        mutant(
            "v1/session-setup/3",
            ", but the agent used",
            "the agent uses its own working directory",
            change_incoming("session/new", |params| {
                let cwd = params["cwd"]
                    .as_str()
                    .unwrap()
                    .replace("/other", "/project");
                params["cwd"] = json!(cwd);
            }),
        ),
        mutant(
            "v1/session-setup/4",
            "the agent opened a session in \"project\"",
            "the agent accepts relative paths",
            change_incoming("session/new", |params| {
                if params["cwd"] == "project" {
                    params["cwd"] = json!("/project");
                }
            }),
        ),
        mutant(
            "v1/session-setup/5",
            "the MCP server received no `initialize`",
            "the agent ignores MCP servers",
            change_incoming("session/new", |params| params["mcpServers"] = json!([])),
        ),
        mutant(
            "v1/session-setup/6",
            "the MCP server expected \"an argument\", got",
            "the agent omits the last argument of an MCP server",
            change_incoming("session/new", |params| {
                if let Some(args) = params["mcpServers"][0]["args"].as_array_mut() {
                    args.pop();
                }
            }),
        ),
        mutant(
            "v1/session-setup/6",
            "the MCP server expected \"a variable\", got",
            "the agent omits the environment of auth method an MCP server",
            change_incoming("session/new", |params| {
                if params["mcpServers"][0].is_object() {
                    params["mcpServers"][0]["env"] = json!([]);
                }
            }),
        ),
        mutant(
            "v1/session-setup/7",
            "`session/prompt` failed with error -32603",
            "the agent rejects a second turn in another session",
            reject_second_prompt,
        ),
        mutant(
            "v1/session-setup/7",
            "waiting for responses to 2 requests",
            "the agent does not respond if two turns are running",
            drop_outgoing("session/prompt", true),
        ),
        mutant(
            "v1/session-setup/8",
            ", but updates were sent for session",
            "the agent sends updates for the session that was opened last",
            send_to_last_session,
        ),
        mutant(
            "v1/session-setup/9",
            "the agent accepted a prompt for an unknown session",
            "the agent accepts prompts for unknown sessions",
            mutate_messages(|passing| {
                if !passing.said
                    && passing.method == "session/prompt"
                    && let Some(message) = passing.message.take_if(|message| {
                        message["params"]["sessionId"] == "acp-check-no-such-session"
                    })
                {
                    let result = json!({"stopReason": "end_turn"});
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                    passing.back.push(LayerLine::Json(answer));
                }
            }),
        ),
        mutant(
            "v1/session-setup/10",
            "`session/new` failed with error -32602",
            "the agent advertises additional directories, but rejects them",
            reject_if("session/new", -32602, |params| {
                params.get("additionalDirectories").is_some()
            }),
        ),
    ]
}

/// Rejects the second prompt.
fn reject_second_prompt() -> Mutation {
    let mut prompts = 0;
    Box::new(move |passing: InterceptedMessage<'_>| {
        if !passing.said && passing.method == "session/prompt" {
            prompts += 1;
            if prompts == 2
                && let Some(message) = passing.message.take()
            {
                let error = json!({"code": -32603, "message": "busy"});
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                passing.back.push(LayerLine::Json(answer));
            }
        }
    })
}

/// Rewrites the session id in every update to that of the most recently opened session.
fn send_to_last_session() -> Mutation {
    let mut last = Value::Null;
    Box::new(move |passing: InterceptedMessage<'_>| {
        if let Some(message) = passing.message
            && passing.said
        {
            if passing.answers && passing.method == "session/new" {
                last = message["result"]["sessionId"].clone();
            } else if passing.method == "session/update" {
                message["params"]["sessionId"] = last.clone();
            }
        }
    })
}
