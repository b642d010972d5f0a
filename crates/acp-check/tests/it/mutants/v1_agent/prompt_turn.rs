//! Mutants that run turns incorrectly.

use serde_json::{Value, json};

use crate::mutants::changes::{
    deliver_only_first, drop_request_if, drop_updates_if, reject_after_first, respond_instead,
    send_update_after_response,
};
use crate::mutants::layer::{
    Mutant, change_call, change_result, change_update, drop_outgoing, mutant,
};

/// Returns an update that contains a message chunk.
pub(super) fn message_chunk() -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "And?"}})
}

/// Returns a predicate for prompts with this text.
pub(super) fn has_prompt_text(text: &'static str) -> impl Fn(&Value) -> bool + Clone + Send + Sync {
    move |params| params["prompt"][0]["text"] == text
}

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/prompt-turn/1",
            "invalid stop reason \"done\"; expected one of end_turn, max_tokens, max_turn_requests, refusal,",
            "the agent uses an invalid stop reason",
            change_result("session/prompt", |result| {
                result["stopReason"] = json!("done")
            }),
        ),
        mutant(
            "v1/prompt-turn/1",
            "the turn did not end",
            "the agent does not respond to prompts",
            drop_outgoing("session/prompt", true),
        ),
        mutant(
            "v1/prompt-turn/2",
            "the turn ended without any output",
            "the agent produces no output",
            drop_updates_if(&["agent_message_chunk", "agent_thought_chunk"], |_| true),
        ),
        mutant(
            "v1/prompt-turn/3",
            "`agent_message_chunk` was sent after the response to the prompt",
            "the agent sends output after the response to the prompt",
            send_update_after_response("session/prompt", message_chunk()),
        ),
        mutant(
            "v1/prompt-turn/4",
            "an update is for session \"another\"",
            "the agent sends updates for another session",
            change_call("session/update", |params| {
                params["sessionId"] = json!("another")
            }),
        ),
        mutant(
            "v1/prompt-turn/5",
            "`fs/read_text_file` is for session \"another\", but the only session is",
            "the agent requests files for another session",
            change_call("fs/read_text_file", |params| {
                params["sessionId"] = json!("another")
            }),
        ),
        mutant(
            "v1/prompt-turn/6",
            "after the first turn",
            "the agent accepts only one prompt",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/prompt-turn/7",
            "the agent was asked to remember and repeat 7351, but answered \"I do not know.\"",
            "the agent forgets the previous turns",
            change_update("agent_message_chunk", |update| {
                update["content"]["text"] = json!("I do not know.");
            }),
        ),
        mutant(
            "v1/prompt-turn/8",
            "the stop reason is \"cancelled\", but the turn was not cancelled",
            "the agent reports every turn as cancelled",
            change_result("session/prompt", |result| {
                result["stopReason"] = json!("cancelled");
            }),
        ),
        mutant(
            "v1/prompt-turn/9",
            "the turn did not end",
            "the agent ignores an empty prompt",
            drop_request_if("session/prompt", |params| params["prompt"] == json!([])),
        ),
        mutant(
            "v1/prompt-turn/10",
            "a prompt for an unknown session succeeded with",
            "the agent accepts prompts for unknown sessions",
            respond_instead(
                "session/prompt",
                |params| params["sessionId"] == "sess_nobody_has_opened",
                json!({"result": {"stopReason": "end_turn"}}),
            ),
        ),
        mutant(
            "v1/prompt-turn/11",
            "error -32603",
            "the agent rejects a prompt while another session has a turn",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/prompt-turn/12",
            "while a turn was running in another session:",
            "the agent delays a prompt while another session has a turn",
            drop_request_if("session/prompt", has_prompt_text("answer")),
        ),
        mutant(
            "v1/prompt-turn/13",
            "the turn did not end",
            "the agent ignores prompts during a turn",
            deliver_only_first("session/prompt"),
        ),
    ]
}
