//! Wrong in logging in, and in opening sessions.

use serde_json::json;

use super::called;
use crate::mutants::layer::{LayerLine, Mutant, call, change, ends_at, mutant, says_at, unheard};

pub(crate) fn mutants() -> Vec<Mutant> {
    let prompt = || json!({"sessionId": "sess_check", "prompt": []});
    let refused = |passing: &crate::mutants::layer::PassingMessage<'_>, method: &str| {
        let error = |m: &serde_json::Value| !m["error"].is_null();
        passing.answers && passing.method == method && passing.message.as_ref().is_some_and(error)
    };
    vec![
        mutant(
            "v1/authentication/101",
            "it sent `session/prompt` though there is no session",
            "it prompts though it has to log in first",
            says_at(
                move |passing| refused(passing, "session/new"),
                called("session/prompt", prompt()),
            ),
        ),
        mutant(
            "v1/authentication/102",
            "it used unknown auth method \"password\"",
            "it has a method of its own",
            call("authenticate", |params| {
                params["methodId"] = json!("password")
            }),
        ),
        mutant(
            "v1/authentication/103",
            "it did not send `session/new` after the login",
            "it forgets what it logged in for",
            unheard("authenticate", true),
        ),
        mutant(
            "v1/authentication/104",
            "it sent `session/prompt` although the login failed",
            "it prompts though the login failed",
            says_at(
                move |passing| refused(passing, "authenticate"),
                called("session/prompt", prompt()),
            ),
        ),
        mutant(
            "v1/session-setup/101",
            "`cwd` is \".\"",
            "its directory is relative",
            call("session/new", |params| params["cwd"] = json!(".")),
        ),
        mutant(
            "v1/session-setup/102",
            "`mcpServers` is null",
            "it leaves out what it has none of",
            call("session/new", |params| {
                params.as_object_mut().unwrap().remove("mcpServers");
            }),
        ),
        mutant(
            "v1/session-setup/103",
            "it passed a server over http, which the agent does not support",
            "it gives servers over HTTP to every agent",
            call("session/new", |params| {
                let server = json!({"type": "http", "name": "far", "url": "https://example.org/mcp", "headers": []});
                params["mcpServers"] = json!([server]);
            }),
        ),
        mutant(
            "v1/session-setup/104",
            "\"npx\" is not absolute",
            "its server is to be looked for",
            call("session/new", |params| {
                params["mcpServers"][0]["command"] = json!("npx")
            }),
        ),
        mutant(
            "v1/session-setup/105",
            "became 0 in `session/prompt`",
            "it makes a number of an id",
            call("session/prompt", |params| params["sessionId"] = json!(0)),
        ),
        mutant(
            "v1/session-setup/106",
            "became \"file:///a\" in `session/prompt`",
            "it cuts ids at a space",
            call("session/prompt", |params| {
                let id = params["sessionId"].as_str().unwrap().to_owned();
                params["sessionId"] = json!(id.split(' ').next());
            }),
        ),
        mutant(
            "v1/session-setup/107",
            "in `session/prompt`",
            "its ids have 255 characters",
            call("session/prompt", |params| {
                let id = params["sessionId"].as_str().unwrap().to_owned();
                params["sessionId"] = json!(id.get(..255));
            }),
        ),
        mutant(
            "v1/session-setup/108",
            "it passed `additionalDirectories`, which the agent does not support",
            "it gives directories to every agent",
            call("session/new", |params| {
                params["additionalDirectories"] = json!(["/srv"])
            }),
        ),
        mutant(
            "v1/session-setup/109",
            "it sent `session/prompt` before the response to `session/new`",
            "it does not wait for the session",
            change(|passing| {
                if passing.said && passing.method == "session/new" {
                    let params = json!({"sessionId": "", "prompt": []});
                    passing
                        .then
                        .push(LayerLine::Json(called("session/prompt", params)));
                }
            }),
        ),
        mutant(
            "v1/session-setup/110",
            "it sent `session/prompt` although `session/new` failed",
            "it prompts without a session",
            says_at(
                move |passing| refused(passing, "session/new"),
                called("session/prompt", prompt()),
            ),
        ),
        mutant(
            "v1/session-setup/111",
            "after updates before the response to `session/new`",
            "it ends at an update of a session that is not open yet",
            ends_at(|message| message["method"] == "session/update"),
        ),
        mutant(
            "v1/session-setup/112",
            "closed its output",
            "it ends at a null",
            ends_at(|message| {
                let result = message["result"].as_object();
                result
                    .is_some_and(|result| result.get("modes").is_some_and(|modes| modes.is_null()))
            }),
        ),
        mutant(
            "v1/session-setup/113",
            "`session/load` refers to unknown session \"sess_0\"",
            "it loads what is not listed",
            call("session/load", |params| {
                params["sessionId"] = json!("sess_0")
            }),
        ),
        mutant(
            "v1/session-setup/113",
            "it sent `session/fork`",
            "it does what is not offered",
            says_at(
                |passing| passing.answers && passing.method == "session/list",
                called("session/fork", json!({"sessionId": "sess_old"})),
            ),
        ),
    ]
}
