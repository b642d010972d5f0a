//! Mutants that log in or handle sessions wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{call_after, fall_silent_at, set_field};
use crate::mutants::layer::{Mutant, Mutation, change_call, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = login_mutants();
    mutants.extend(session_mutants());
    mutants.extend(config_option_mutants());
    mutants
}

fn is_rejection(message: &Value) -> bool {
    message["error"]["code"] == -32000
}

fn call_message(method: &'static str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "mutant", "method": method, "params": params})
}

fn login_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/authentication/101",
            "the client called `auth/login`, although the agent offers no auth methods",
            "the client logs in although the agent offers no auth methods",
            call_after(is_rejection, || {
                call_message("auth/login", &json!({"methodId": "any"}))
            }),
        ),
        mutant(
            "v2/authentication/101",
            "the client called `auth/logout`, although the agent offers no auth methods",
            "the client logs out although the agent offers no auth methods",
            call_after(is_rejection, || call_message("auth/logout", &json!({}))),
        ),
        mutant(
            "v2/authentication/102",
            "the client called `auth/login` with \"tty\"",
            "the client uses a `terminal` auth method",
            call_after(is_rejection, || {
                call_message("auth/login", &json!({"methodId": "tty"}))
            }),
        ),
        mutant(
            "v2/authentication/103",
            "the client called `auth/login` with \"other\"",
            "the client uses an auth method that was not offered",
            change_call("auth/login", |params| params["methodId"] = json!("other")),
        ),
        mutant(
            "v2/authentication/104",
            "the client did not send `session/new`",
            "the client does not open a session after the login",
            stop_after_login,
        ),
    ]
}

fn stop_after_login() -> Mutation {
    let mut logged_in = false;
    Box::new(move |passing| {
        logged_in |= passing.said && passing.method == "auth/login";
        if logged_in && passing.said && passing.method == "session/new" {
            *passing.message = None;
        }
    })
}

fn session_mutants() -> Vec<Mutant> {
    let server = json!([{"type": "stdio", "name": "own", "command": "/bin/true"}]);
    vec![
        mutant(
            "v2/session-setup/101",
            "`session/new` has an MCP server of type `stdio`, but the agent does not support `session.mcp.stdio`",
            "the client passes MCP servers with unsupported transports",
            change_call("session/new", move |params| {
                params["mcpServers"] = server.clone()
            }),
        ),
        mutant(
            "v2/session-setup/102",
            "has `additionalDirectories`",
            "the client passes additional directories to agents that do not support them",
            change_call("session/new", |params| {
                params["additionalDirectories"] = json!(["/tmp"])
            }),
        ),
        mutant(
            "v2/session-setup/103",
            "the prompt is for \"another\"",
            "the client sends a prompt to another session",
            change_call("session/prompt", |params| {
                params["sessionId"] = json!("another")
            }),
        ),
        mutant(
            "v2/session-setup/104",
            "but the prompt is for",
            "the client trims session ids",
            change_call("session/prompt", |params| {
                let id = params["sessionId"].as_str().unwrap().trim().to_owned();
                params["sessionId"] = json!(id);
            }),
        ),
        mutant(
            "v2/session-setup/105",
            "the client did not send `session/prompt` within",
            "the client stops responding after an update before the prompt",
            fall_silent_at("usage_update"),
        ),
        mutant(
            "v2/session-setup/106",
            "`session/close` refers to the unknown session \"another\"",
            "the client closes another session",
            change_call("session/close", |params| {
                params["sessionId"] = json!("another")
            }),
        ),
        mutant(
            "v2/session-setup/107",
            "the client called `session/delete`",
            "the client deletes sessions although the agent does not support that",
            call_after(
                |message| message["params"]["update"]["state"] == "idle",
                || call_message("session/delete", &json!({"sessionId": "sess_check"})),
            ),
        ),
        mutant(
            "v2/session-setup/107",
            "the client called `session/delete`",
            "the client assumes that the agent can delete sessions",
            crate::mutants::changes::change_incoming_response("initialize", |message| {
                set_field(
                    &mut message["result"]["capabilities"]["session"],
                    "delete",
                    Some(json!({})),
                );
            }),
        ),
    ]
}

fn config_option_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/session-config-options/101",
            "the client did not send `session/prompt` within",
            "the client stops responding after an unknown category",
            fall_silent_at("_acp-check/smell"),
        ),
        mutant(
            "v2/session-config-options/102",
            "the client did not send `session/prompt` within",
            "the client stops responding after an unknown option type",
            fall_silent_at("_acp-check/slider"),
        ),
        mutant(
            "v2/session-config-options/103",
            "after changed config options: no response to request 0",
            "the client stops responding after changed options",
            fall_silent_at("config_option_update"),
        ),
        mutant(
            "v2/session-config-options/104",
            "after a command with an unknown input type: no response to request 0",
            "the client stops responding after an unknown input type",
            fall_silent_at("_acp-check/form"),
        ),
    ]
}
