//! Wrong in subagents.

use serde_json::json;

use crate::mutants::changes::send_after_update;
use crate::mutants::layer::{Mutant, change_incoming, change_update, mutant};

pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "subagents/2",
            "which was not announced",
            "the agent forgets to announce one",
            change_update("subagent_update", |update| {
                update["sessionId"] = json!("another");
            }),
        ),
        mutant(
            "subagents/2",
            "`session_message` refers to session \"another\", which was not announced",
            "the agent sends messages to whom it has not announced",
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
            "its subagents announce themselves",
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
            "its subagents change hands",
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
            "the agent says where its subagents are, from where it is",
            change_update("subagent_update", |update| update["cwd"] = json!("src")),
        ),
    ];
    if version == "v1" {
        mutants.push(mutant(
            "subagents/1",
            "the agent sent `subagent_update` to a client that does not support `subagents`",
            "the agent shows its subagents to everybody",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["subagents"] = json!({});
            }),
        ));
    }
    mutants
}
