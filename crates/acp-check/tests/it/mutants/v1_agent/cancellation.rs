//! Mutants that handle cancelled turns incorrectly.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::prompt_turn::message_chunk;
use crate::mutants::changes::{
    fail_after_success, reject_after_first, respond_instead, respond_to_notification,
    send_update_after_response,
};
use crate::mutants::layer::{
    LayerLine, Mutant, Mutation, change_result, drop_incoming, mutant, mutate_messages,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = turn_end_mutants();
    mutants.extend(other_mutants());
    mutants
}

fn turn_end_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/prompt-turn/31",
            "stop reason \"end_turn\"",
            "the agent ends a cancelled turn like any other turn",
            end_turn_normally(),
        ),
        mutant(
            "v1/prompt-turn/31",
            "error -32603",
            "the agent responds to a cancelled prompt with an error",
            fail_after_success("session/prompt"),
        ),
        mutant(
            "v1/prompt-turn/32",
            "after `session/cancel`",
            "the agent ignores `session/cancel`",
            drop_incoming("session/cancel", false),
        ),
        mutant(
            "v1/prompt-turn/33",
            "stop reason \"end_turn\"",
            "the agent treats the outcome `cancelled` as a rejection",
            end_turn_normally(),
        ),
        mutant(
            "v1/prompt-turn/34",
            "error -32603",
            "the agent passes on the error of a file request",
            fail_after_success("session/prompt"),
        ),
        mutant(
            "v1/prompt-turn/35",
            "error -32603",
            "the agent passes on the error of a terminal request",
            fail_after_success("session/prompt"),
        ),
        mutant(
            "v1/prompt-turn/36",
            "response to the cancelled prompt",
            "the agent sends updates after a cancelled turn has ended",
            send_update_after_response("session/prompt", message_chunk()),
        ),
        mutant(
            "v1/prompt-turn/37",
            "after a cancelled turn",
            "the agent accepts no prompt after a cancelled turn",
            reject_after_first("session/prompt"),
        ),
    ]
}

fn other_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/prompt-turn/38",
            "after a `session/cancel` without a running turn",
            "the agent applies a cancellation to the next turn",
            change_result("session/prompt", |result| {
                result["stopReason"] = json!("cancelled");
            }),
        ),
        mutant(
            "v1/prompt-turn/39",
            "got a response, but notifications must not get responses",
            "the agent responds to `session/cancel`",
            respond_to_notification("session/cancel"),
        ),
        mutant(
            "v1/prompt-turn/40",
            "the prompt that was cancelled twice got 2 responses",
            "the agent responds twice to a cancelled prompt",
            mutate_messages(|passing| {
                if passing.said && passing.answers && passing.method == "session/prompt" {
                    let again = passing.message.clone().map(LayerLine::Json);
                    passing.then.extend(again);
                }
            }),
        ),
        mutant(
            "v1/prompt-turn/41",
            "after cancelling a turn immediately after its prompt was sent:",
            "the agent ignores a cancellation right after the prompt",
            ignore_early_cancel,
        ),
        mutant(
            "v1/prompt-turn/42",
            "the turn in the other session",
            "the agent cancels the turns of all sessions",
            cancel_all_sessions,
        ),
        mutant(
            "v1/prompt-turn/43",
            "error -32603",
            "the agent uses a wrong error code for cancelled requests",
            mutate_messages(|passing| {
                if passing.said
                    && let Some(message) = passing.message
                    && message["error"]["code"] == -32800
                {
                    message["error"]["code"] = json!(-32603);
                }
            }),
        ),
        mutant(
            "v1/prompt-turn/44",
            "got a response, but notifications must not get responses",
            "the agent responds to `$/cancel_request`",
            respond_to_notification("$/cancel_request"),
        ),
        mutant(
            "v1/prompt-turn/45",
            "the turn did not end",
            "the agent says that the session is closed, but continues the turn",
            respond_instead("session/close", |_| true, json!({"result": {}})),
        ),
    ]
}

/// Ends every cancelled turn as if it had not been cancelled.
fn end_turn_normally() -> impl Fn() -> Mutation + Send + Sync {
    change_result("session/prompt", |result| {
        if result["stopReason"] == "cancelled" {
            result["stopReason"] = json!("end_turn");
        }
    })
}

/// Ignores a cancellation until the turn has produced output.
fn ignore_early_cancel() -> Mutation {
    let mut begun = false;
    Box::new(move |passing| {
        if passing.is_incoming("session/prompt") {
            begun = false;
        } else if passing.is_outgoing("session/update") {
            begun = true;
        } else if passing.is_incoming("session/cancel") && !begun {
            *passing.message = None;
        }
    })
}

/// Applies the cancellation of one session to all sessions.
fn cancel_all_sessions() -> Mutation {
    let mut sessions: HashMap<String, Value> = HashMap::new();
    Box::new(move |passing| {
        let Some(message) = &passing.message else {
            return;
        };
        let session = message["params"]["sessionId"].clone();
        if passing.is_incoming("session/prompt") {
            sessions.insert(session.to_string(), session);
        } else if passing.is_incoming("session/cancel") {
            for session in sessions.values() {
                let mut message = message.clone();
                message["params"]["sessionId"] = session.clone();
                passing.then.push(LayerLine::Json(message));
            }
        }
    })
}
