//! Mutants that handle prompts wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{
    drop_outgoing_updates, reject_after, reject_if, send_after_update, set_field,
    succeed_without_effect_if,
};
use crate::mutants::layer::{LayerLine, Mutant, Mutation, change_update, drop_outgoing, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = state_mutants();
    mutants.extend(message_mutants());
    mutants.extend(prompt_mutants());
    mutants
}

fn state_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/prompt-lifecycle/1",
            "waiting for a response to request 2",
            "the agent does not acknowledge prompts",
            drop_outgoing("session/prompt", true),
        ),
        mutant(
            "v2/prompt-lifecycle/2",
            "no `state_update` with `running`; got: [\"idle\"]",
            "the agent does not report that it is working",
            drop_outgoing_updates(|update| update["state"] == "running"),
        ),
        mutant(
            "v2/prompt-lifecycle/3",
            "no `state_update` with `idle` within",
            "the agent does not report the end of the turn",
            drop_outgoing_updates(|update| update["state"] == "idle"),
        ),
        mutant(
            "v2/prompt-lifecycle/4",
            "has no `stopReason`",
            "the agent reports no stop reason",
            change_update("state_update", |update| {
                set_field(update, "stopReason", None)
            }),
        ),
        mutant(
            "v2/prompt-lifecycle/5",
            "the end of one turn was reported 2 times",
            "the agent reports the end of the turn twice",
            send_after_update(
                |update| update["state"] == "idle",
                |params| json!({"jsonrpc": "2.0", "method": "session/update", "params": params}),
            ),
        ),
    ]
}

fn message_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/prompt-lifecycle/6",
            "no `user_message` or `user_message_chunk` for the prompt",
            "the agent does not report the user message",
            drop_outgoing_updates(|update| update["sessionUpdate"] == "user_message"),
        ),
        mutant(
            "v2/prompt-lifecycle/7",
            "was reported as \"other\"",
            "the agent reports another user message",
            change_update("user_message", |update| {
                update["content"] = json!([{"type": "text", "text": "other"}]);
            }),
        ),
        mutant(
            "v2/prompt-lifecycle/8",
            "`agent_message` and `agent_thought` have the same message id \"same\"",
            "the agent gives its message and its thought the same id",
            || {
                Box::new(|passing| {
                    if let Some(message) = passing.message {
                        let update = &mut message["params"]["update"];
                        if matches!(
                            update["sessionUpdate"].as_str(),
                            Some("agent_message_chunk" | "agent_thought_chunk")
                        ) {
                            update["messageId"] = json!("same");
                        }
                    }
                })
            },
        ),
        mutant(
            "v2/prompt-lifecycle/9",
            "messages of two turns have the same id \"always\"",
            "the agent's messages all have the same id",
            change_update("agent_message_chunk", |update| {
                update["messageId"] = json!("always")
            }),
        ),
    ]
}

/// Returns a predicate that matches prompts containing a block of this type.
fn has_block_of_type(kind: &'static str) -> impl Fn(&Value) -> bool + Clone + Send + Sync {
    move |params| {
        let mut blocks = params["prompt"].as_array().into_iter().flatten();
        blocks.any(|block| block["type"] == kind)
    }
}

fn content_rejection_mutant(check: &'static str, why: &'static str, kind: &'static str) -> Mutant {
    let refused = reject_if("session/prompt", -32603, has_block_of_type(kind));
    mutant(
        check,
        why,
        "the agent rejects content that it must accept",
        refused,
    )
}

/// Accepts prompts only for the session that was prompted first.
fn serve_one_session() -> Mutation {
    let mut first = None::<Value>;
    Box::new(move |passing| {
        if !passing.is_incoming("session/prompt") {
            return;
        }
        let session = passing
            .message
            .as_ref()
            .map(|message| message["params"]["sessionId"].clone());
        if first.is_none() {
            first = session;
        } else if session != first {
            let id = passing.message.take().unwrap()["id"].clone();
            let error = json!({"code": -32603, "message": "busy"});
            passing.back.push(LayerLine::Json(
                json!({"jsonrpc": "2.0", "id": id, "error": error}),
            ));
        }
    })
}

fn prompt_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/prompt-lifecycle/10",
            "`session/prompt` failed with error",
            "the agent accepts only one prompt",
            reject_after("session/prompt", "session/prompt"),
        ),
        mutant(
            "v2/prompt-lifecycle/11",
            "a prompt with content of type `text` failed with error",
            "the agent rejects a prompt with two text blocks",
            reject_if("session/prompt", -32603, |params| {
                params["prompt"][1]["type"] == "text"
            }),
        ),
        content_rejection_mutant(
            "v2/prompt-lifecycle/12",
            "of type `resource_link` failed",
            "resource_link",
        ),
        content_rejection_mutant("v2/prompt-lifecycle/13", "of type `image` failed", "image"),
        content_rejection_mutant("v2/prompt-lifecycle/14", "of type `audio` failed", "audio"),
        content_rejection_mutant(
            "v2/prompt-lifecycle/15",
            "of type `resource` failed",
            "resource",
        ),
        mutant(
            "v2/prompt-lifecycle/16",
            "the agent accepted a prompt for an unknown session",
            "the agent accepts prompts for unknown sessions",
            succeed_without_effect_if("session/prompt", |params| {
                params["sessionId"] == "acp-check-nobodys"
            }),
        ),
        mutant(
            "v2/prompt-lifecycle/17",
            "`session/prompt` failed with error",
            "the agent runs turns in only one session",
            serve_one_session,
        ),
    ]
}
