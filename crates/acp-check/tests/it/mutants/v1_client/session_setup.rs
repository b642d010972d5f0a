//! Mutants that log in or open sessions incorrectly.

use serde_json::json;

use super::method_call;
use crate::mutants::layer::{
    LayerLine, Mutant, call_when, change_call, drop_incoming, end_when, mutant, mutate_messages,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    let prompt = || json!({"sessionId": "sess_check", "prompt": []});
    let refused = |passing: &crate::mutants::layer::InterceptedMessage<'_>, method: &str| {
        let error = |m: &serde_json::Value| !m["error"].is_null();
        passing.answers && passing.method == method && passing.message.as_ref().is_some_and(error)
    };
    vec![
        mutant(
            "v1/authentication/101",
            "the client sent `session/prompt`, although no session is open",
            "the client sends a prompt before it has logged in",
            call_when(
                move |passing| refused(passing, "session/new"),
                method_call("session/prompt", prompt()),
            ),
        ),
        mutant(
            "v1/authentication/102",
            "the client used the unknown auth method \"password\"",
            "the client uses an auth method that was not offered",
            change_call("authenticate", |params| {
                params["methodId"] = json!("password")
            }),
        ),
        mutant(
            "v1/authentication/103",
            "the client did not send `session/new` after the login",
            "the client does not open a session after the login",
            drop_incoming("authenticate", true),
        ),
        mutant(
            "v1/authentication/104",
            "the client sent `session/prompt` although the login failed",
            "the client sends a prompt after a failed login",
            call_when(
                move |passing| refused(passing, "authenticate"),
                method_call("session/prompt", prompt()),
            ),
        ),
        mutant(
            "v1/session-setup/101",
            "`cwd` is \".\"",
            "the client sends a relative working directory",
            change_call("session/new", |params| params["cwd"] = json!(".")),
        ),
        mutant(
            "v1/session-setup/102",
            "`mcpServers` is null",
            "the client omits an empty list of MCP servers",
            change_call("session/new", |params| {
                params.as_object_mut().unwrap().remove("mcpServers");
            }),
        ),
        mutant(
            "v1/session-setup/103",
            "the client passed an MCP server that uses http, which the agent does not support",
            "the client passes HTTP servers to agents that do not support them",
            change_call("session/new", |params| {
                let server = json!({"type": "http", "name": "far", "url": "https://example.org/mcp", "headers": []});
                params["mcpServers"] = json!([server]);
            }),
        ),
        mutant(
            "v1/session-setup/104",
            "\"npx\" is not an absolute path",
            "the client sends a relative path to an MCP server",
            change_call("session/new", |params| {
                params["mcpServers"][0]["command"] = json!("npx")
            }),
        ),
        mutant(
            "v1/session-setup/105",
            "became 0 in `session/prompt`",
            "the client turns an id that looks like a number into a number",
            change_call("session/prompt", |params| params["sessionId"] = json!(0)),
        ),
        mutant(
            "v1/session-setup/106",
            "became \"file:///a\" in `session/prompt`",
            "the client truncates ids at a space",
            change_call("session/prompt", |params| {
                let id = params["sessionId"].as_str().unwrap().to_owned();
                params["sessionId"] = json!(id.split(' ').next());
            }),
        ),
        mutant(
            "v1/session-setup/107",
            "in `session/prompt`",
            "the client truncates ids to 255 characters",
            change_call("session/prompt", |params| {
                let id = params["sessionId"].as_str().unwrap().to_owned();
                params["sessionId"] = json!(id.get(..255));
            }),
        ),
        mutant(
            "v1/session-setup/108",
            "the client passed `additionalDirectories`, which the agent does not support",
            "the client passes additional directories to agents that do not support them",
            change_call("session/new", |params| {
                params["additionalDirectories"] = json!(["/srv"])
            }),
        ),
        mutant(
            "v1/session-setup/109",
            "the client sent `session/prompt` before the response to `session/new`",
            "the client does not wait until the session is open",
            mutate_messages(|passing| {
                if passing.said && passing.method == "session/new" {
                    let params = json!({"sessionId": "", "prompt": []});
                    passing
                        .then
                        .push(LayerLine::Json(method_call("session/prompt", params)));
                }
            }),
        ),
        mutant(
            "v1/session-setup/110",
            "the client sent `session/prompt` although `session/new` failed",
            "the client sends a prompt after the session could not be opened",
            call_when(
                move |passing| refused(passing, "session/new"),
                method_call("session/prompt", prompt()),
            ),
        ),
        mutant(
            "v1/session-setup/111",
            "after updates before the response to `session/new`",
            "the client exits on an update of a session that is not open yet",
            end_when(|message| message["method"] == "session/update"),
        ),
        mutant(
            "v1/session-setup/112",
            "closed its output",
            "the client exits on a null field",
            end_when(|message| {
                let result = message["result"].as_object();
                result
                    .is_some_and(|result| result.get("modes").is_some_and(|modes| modes.is_null()))
            }),
        ),
        mutant(
            "v1/session-setup/113",
            "`session/load` refers to the unknown session \"sess_0\"",
            "the client loads a session that was not listed",
            change_call("session/load", |params| {
                params["sessionId"] = json!("sess_0")
            }),
        ),
        mutant(
            "v1/session-setup/113",
            "the client sent `session/fork`",
            "the client forks a session although the agent does not support that",
            call_when(
                |passing| passing.answers && passing.method == "session/list",
                method_call("session/fork", json!({"sessionId": "sess_old"})),
            ),
        ),
    ]
}
