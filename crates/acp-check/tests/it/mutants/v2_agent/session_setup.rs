//! Mutants that open, list or replay sessions incorrectly.

use serde_json::{Value, json};

use crate::mutants::changes::{
    duplicate_first, fall_silent_after, reject_after, reject_if, respond_with, result_line,
    set_field, succeed_without_effect_if, update_kind,
};
use crate::mutants::layer::{
    LayerLine, Mutant, Mutation, change_incoming, change_result, change_update, mutant,
    mutate_messages, reject_request,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = session_mutants();
    mutants.extend(replay_mutants());
    mutants.extend(list_mutants());
    mutants
}

fn session_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/session-setup/1",
            "duplicate session id \"same\"",
            "the agent's sessions all have the same id",
            change_result("session/new", |result| result["sessionId"] = json!("same")),
        ),
        mutant(
            "v2/session-setup/2",
            "`session/new` failed with error",
            "the agent requires MCP servers in `session/new`",
            reject_if("session/new", -32603, |params| {
                params["mcpServers"].is_null()
            }),
        ),
        mutant(
            "v2/session-setup/3",
            "`session/new` failed with error",
            "the agent advertises additional directories, but rejects them",
            reject_if("session/new", -32603, |params| {
                params["additionalDirectories"].is_array()
            }),
        ),
        mutant(
            "v2/session-setup/4",
            "`session/resume` failed with error -32601",
            "the agent does not support `session/resume`",
            reject_request("session/resume", -32601),
        ),
        mutant(
            "v2/session-setup/5",
            "`session/prompt` failed with error",
            "the agent rejects prompts in resumed sessions",
            reject_after("session/resume", "session/prompt"),
        ),
        mutant(
            "v2/session-setup/6",
            "`session/close` failed with error -32601",
            "the agent does not support `session/close`",
            reject_request("session/close", -32601),
        ),
        mutant(
            "v2/session-setup/7",
            "the agent continued with `agent_message_chunk` after the response to `session/close`",
            "the agent sends output for a closed session",
            mutate_messages(|passing| {
                if passing.is_incoming("session/close") {
                    let message = passing.message.take().unwrap();
                    passing.back.push(result_line(&message, json!({})));
                    let content = json!({"type": "text", "text": "two, "});
                    let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": "late", "content": content});
                    let params =
                        json!({"sessionId": message["params"]["sessionId"], "update": update});
                    let late =
                        json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                    passing.back.push(LayerLine::Json(late));
                }
            }),
        ),
        mutant(
            "v2/session-setup/8",
            "`session/prompt` failed with error",
            "the agent closes all sessions at once",
            reject_after("session/close", "session/prompt"),
        ),
        mutant(
            "v2/session-setup/9",
            ", which was not opened",
            "the agent sends updates for a session that was not opened",
            mutate_messages(|passing| {
                if update_kind(passing) == Some("agent_message_chunk")
                    && let Some(message) = passing.message
                {
                    message["params"]["sessionId"] = json!("another");
                }
            }),
        ),
        mutant(
            "v2/session-setup/10",
            "waiting for a response to request 1",
            "the agent stops responding after an unknown MCP transport",
            fall_silent_after(|message| message["params"]["mcpServers"][0].is_object()),
        ),
    ]
}

/// Returns `true` if an update of this type is part of a replay.
fn is_history_update(kind: &str) -> bool {
    kind.starts_with("user_message") || kind.starts_with("agent_")
}

/// Applies `each` to every replayed message. `each` can also add messages to a list that is sent after the response.
fn change_replay(
    each: impl Fn(&mut Option<Value>, &mut Vec<LayerLine>) + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    move || {
        let each = each.clone();
        let (mut replays, mut kept) = (false, Vec::new());
        Box::new(move |passing| {
            replays |= passing.is_incoming("session/resume");
            if replays && update_kind(&passing).is_some_and(is_history_update) {
                each(passing.message, &mut kept);
            } else if passing.said && passing.answers && passing.method == "session/resume" {
                replays = false;
                passing.then.append(&mut kept);
            }
        })
    }
}

/// Replays from the start if the params satisfy `otherwise`, even if the client did not ask for a replay.
fn replay_from_start_if(
    otherwise: impl Fn(&Value) -> bool + Clone + Send + Sync + 'static,
) -> impl Fn() -> Mutation + Send + Sync {
    change_incoming("session/resume", move |params| {
        if otherwise(params) {
            params["replayFrom"] = json!({"type": "start"});
        }
    })
}

fn replay_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/session-setup/21",
            "no user messages were replayed",
            "the agent does not replay the user's messages",
            change_replay(|message, _| *message = None),
        ),
        mutant(
            "v2/session-setup/21",
            "the replayed prompt differs from the original",
            "the agent changes the messages that it replays",
            change_replay(|message, _| {
                if let Some(message) = message {
                    message["params"]["update"]["content"]["text"] = json!("once");
                }
            }),
        ),
        mutant(
            "v2/session-setup/22",
            "`user_message_chunk` was sent after the response",
            "the agent replays messages after its response",
            change_replay(|message, kept| kept.extend(message.take().map(LayerLine::Json))),
        ),
        mutant(
            "v2/session-setup/23",
            "the agent replayed `user_message_chunk`",
            "the agent replays the history although that was not requested",
            replay_from_start_if(|params| params.get("replayFrom").is_none()),
        ),
        mutant(
            "v2/session-setup/24",
            "the agent replayed `user_message_chunk`",
            "the agent treats a null `replayFrom` as `start`",
            replay_from_start_if(|params| params.get("replayFrom") == Some(&Value::Null)),
        ),
        mutant(
            "v2/session-setup/25",
            "the agent resumed the session despite an unknown `replayFrom`",
            "the agent treats an unknown `replayFrom` as `start`",
            replay_from_start_if(|params| params["replayFrom"]["type"] == "_acp-check/yesterday"),
        ),
        mutant(
            "v2/session-setup/26",
            "a user message and an agent message have the same id \"same\"",
            "the agent's replayed messages all have the same id",
            change_replay(|message, _| {
                if let Some(message) = message {
                    message["params"]["update"]["messageId"] = json!("same");
                }
            }),
        ),
    ]
}

fn list_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/session-list/1",
            "`session/list` failed with error -32601",
            "the agent does not support `session/list`",
            reject_request("session/list", -32601),
        ),
        mutant(
            "v2/session-list/2",
            "is missing from the list for its directory",
            "the agent lists no sessions",
            change_result("session/list", |result| result["sessions"] = json!([])),
        ),
        mutant(
            "v2/session-list/3",
            "only sessions in another directory were requested, but the agent listed one in",
            "the agent lists the sessions of all directories",
            change_incoming("session/list", |params| set_field(params, "cwd", None)),
        ),
        mutant(
            "v2/session-list/4",
            "is listed twice",
            "the agent lists a session twice",
            change_result("session/list", |result| {
                duplicate_first(&mut result["sessions"])
            }),
        ),
        mutant(
            "v2/session-list/5",
            "was deleted, but is still listed",
            "the agent accepts a request to delete a session, but does not delete it",
            succeed_without_effect_if("session/delete", |_| true),
        ),
        mutant(
            "v2/session-list/6",
            "the returned title is \"Set by the check\", but the listed title is \"answer\"",
            "the agent forgets the title",
            respond_with("session/set_title", json!({"title": "Set by the check"})),
        ),
        mutant(
            "v2/session-list/7",
            "succeeded; expected an error",
            "the agent accepts an empty title",
            respond_with("session/set_title", json!({"title": ""})),
        ),
        mutant(
            "v2/session-list/8",
            "failed with error -32603 (",
            "the agent uses one error code for everything",
            reject_request("session/set_title", -32603),
        ),
        mutant(
            "v2/content/1",
            "content of type `image` is not valid base64",
            "the agent's images are not base64",
            change_update("agent_message", |update| {
                update["content"][0]["data"] = json!("x*")
            }),
        ),
    ]
}
