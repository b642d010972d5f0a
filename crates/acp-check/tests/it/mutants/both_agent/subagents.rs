//! Mutants that handle subagents incorrectly.

use serde_json::json;

use crate::mutants::changes::send_after_update;
use crate::mutants::layer::{Mutant, change_incoming, change_update, mutant};

pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "subagents/2",
            "which was not announced",
            "the agent does not announce a subagent",
            change_update("subagent_update", |update| {
                update["sessionId"] = json!("another");
            }),
        ),
        mutant(
            "subagents/2",
            "`session_message` refers to session \"another\", which was not announced",
            "the agent sends a message to a session that it has not announced",
            send_after_update(
                |update| update["sessionUpdate"] == "subagent_update",
                |params| {
                    let update = json!({
                        "sessionUpdate": "session_message", "messageId": "to-another",
                        "recipientSessionId": "another",
                    });
                    let params = json!({"sessionId": params["sessionId"], "update": update});
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
                },
            ),
        ),
        mutant(
            "subagents/3",
            "is announced as its own subagent",
            "the agent announces a subagent as its own parent",
            send_after_update(
                |update| update["sessionUpdate"] == "subagent_update",
                |params| {
                    let mut params = params.clone();
                    params["sessionId"] = params["update"]["sessionId"].clone();
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
                },
            ),
        ),
        mutant(
            "subagents/3",
            "and \"another\"",
            "the agent changes the parent of a subagent",
            send_after_update(
                |update| update["sessionUpdate"] == "subagent_update",
                |params| {
                    let mut params = params.clone();
                    params["sessionId"] = json!("another");
                    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
                },
            ),
        ),
        mutant(
            "subagents/4",
            "`cwd` must be an absolute path",
            "the agent reports a relative working directory for a subagent",
            change_update("subagent_update", |update| update["cwd"] = json!("src")),
        ),
    ];
    if version == "v1" {
        mutants.push(mutant(
            "subagents/1",
            "the agent sent `subagent_update` to a client that does not support `subagents`",
            "the agent shows subagents to clients that do not support them",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["subagents"] = json!({});
            }),
        ));
    }
    mutants
}
