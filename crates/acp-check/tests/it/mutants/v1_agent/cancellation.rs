//! Mutants that handle cancelled turns wrongly.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::prompt_turn::chunk;
use crate::mutants::changes::{answered, fails, instead, late, only_once};
use crate::mutants::layer::{LayerLine, Mutant, Mutation, answer, change, mutant, unheard};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = endings();
    mutants.extend(others());
    mutants
}

fn endings() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/prompt-turn/31",
            "stop reason \"end_turn\"",
            "the agent ends a cancelled turn like any other turn",
            end_turn(),
        ),
        mutant(
            "v1/prompt-turn/31",
            "error -32603",
            "the agent responds to a cancelled prompt with an error",
            fails("session/prompt"),
        ),
        mutant(
            "v1/prompt-turn/32",
            "after `session/cancel`",
            "the agent ignores `session/cancel`",
            unheard("session/cancel", false),
        ),
        mutant(
            "v1/prompt-turn/33",
            "stop reason \"end_turn\"",
            "the agent treats the outcome `cancelled` as a rejection",
            end_turn(),
        ),
        mutant(
            "v1/prompt-turn/34",
            "error -32603",
            "the agent passes on the error of a file request",
            fails("session/prompt"),
        ),
        mutant(
            "v1/prompt-turn/35",
            "error -32603",
            "the agent passes on the error of a terminal request",
            fails("session/prompt"),
        ),
        mutant(
            "v1/prompt-turn/36",
            "response to the cancelled prompt",
            "the agent sends updates after a cancelled turn has ended",
            late("session/prompt", chunk()),
        ),
        mutant(
            "v1/prompt-turn/37",
            "after a cancelled turn",
            "the agent accepts no prompt after a cancelled turn",
            only_once("session/prompt"),
        ),
    ]
}

fn others() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/prompt-turn/38",
            "after a `session/cancel` without a turn",
            "the agent applies a cancellation to the next turn",
            answer("session/prompt", |result| {
                result["stopReason"] = json!("cancelled");
            }),
        ),
        mutant(
            "v1/prompt-turn/39",
            "got a response, but notifications never do",
            "the agent responds to `session/cancel`",
            answered("session/cancel"),
        ),
        mutant(
            "v1/prompt-turn/40",
            "the prompt cancelled twice got 2 responses",
            "the agent responds twice to a cancelled prompt",
            change(|passing| {
                if passing.said && passing.answers && passing.method == "session/prompt" {
                    let again = passing.message.clone().map(LayerLine::Json);
                    passing.then.extend(again);
                }
            }),
        ),
        mutant(
            "v1/prompt-turn/41",
            "cancelled immediately after its prompt:",
            "the agent ignores a cancellation right after the prompt",
            deaf_at_first,
        ),
        mutant(
            "v1/prompt-turn/42",
            "the turn of the other session",
            "the agent cancels the turns of all sessions",
            cancels_all,
        ),
        mutant(
            "v1/prompt-turn/43",
            "error -32603",
            "the agent uses a wrong error code for cancelled requests",
            change(|passing| {
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
            "got a response, but notifications never do",
            "the agent responds to `$/cancel_request`",
            answered("$/cancel_request"),
        ),
        mutant(
            "v1/prompt-turn/45",
            "the turn did not end",
            "the agent says that the session is closed, but continues the turn",
            instead("session/close", |_| true, json!({"result": {}})),
        ),
    ]
}

/// Ends every cancelled turn as if it had not been cancelled.
fn end_turn() -> impl Fn() -> Mutation + Send + Sync {
    answer("session/prompt", |result| {
        if result["stopReason"] == "cancelled" {
            result["stopReason"] = json!("end_turn");
        }
    })
}

/// Ignores a cancellation until the turn has produced output.
fn deaf_at_first() -> Mutation {
    let mut begun = false;
    Box::new(move |passing| {
        if passing.hears("session/prompt") {
            begun = false;
        } else if passing.says("session/update") {
            begun = true;
        } else if passing.hears("session/cancel") && !begun {
            *passing.message = None;
        }
    })
}

/// Applies the cancellation of one session to all sessions.
fn cancels_all() -> Mutation {
    let mut sessions: HashMap<String, Value> = HashMap::new();
    Box::new(move |passing| {
        let Some(message) = &passing.message else {
            return;
        };
        let session = message["params"]["sessionId"].clone();
        if passing.hears("session/prompt") {
            sessions.insert(session.to_string(), session);
        } else if passing.hears("session/cancel") {
            for session in sessions.values() {
                let mut message = message.clone();
                message["params"]["sessionId"] = session.clone();
                passing.then.push(LayerLine::Json(message));
            }
        }
    })
}
