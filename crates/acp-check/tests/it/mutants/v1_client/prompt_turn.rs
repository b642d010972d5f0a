//! Mutants that mishandle turns.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};

use crate::mutants::layer::{
    Mutant, change_call, change_result, drop_outgoing, end_when, mutant, mutate_messages,
    send_twice,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/prompt-turn/101",
            "the client sent `session/prompt` while a turn was running",
            "the client sends every prompt twice",
            send_twice("session/prompt", false),
        ),
        mutant(
            "v1/prompt-turn/107",
            "the client sent a prompt to session \"another\", but its first prompt was for",
            "the client sends a prompt to another session",
            {
                let seen = Arc::new(AtomicBool::new(false));
                change_call("session/prompt", move |params| {
                    if seen.swap(true, Relaxed) {
                        params["sessionId"] = json!("another");
                    }
                })
            },
        ),
        mutant(
            "v1/prompt-turn/108",
            "the client cancelled session \"another\"",
            "the client cancels another session",
            change_call("session/cancel", |params| {
                params["sessionId"] = json!("another")
            }),
        ),
        mutant(
            "v1/prompt-turn/106",
            "after updates after the end of the turn",
            "the client stops responding after an update between turns",
            fall_silent_after_turn("session/update"),
        ),
        mutant(
            "v1/prompt-turn/111",
            "after the end of its turn",
            "the client responds only during turns",
            fall_silent_after_turn("_acp_check/alive"),
        ),
        mutant(
            "v1/prompt-turn/109",
            "instead of `cancelled`",
            "the client allows pending requests when it cancels the turn",
            change_result("session/request_permission", |result| {
                result["outcome"] = json!({"outcome": "selected", "optionId": "yes"});
            }),
        ),
        mutant(
            "v1/prompt-turn/109",
            "after `session/cancel`, no response to request 0",
            "the client does not respond to pending requests when it cancels the turn",
            drop_outgoing("session/request_permission", true),
        ),
        mutant(
            "v1/prompt-turn/110",
            "after a tool call update after `session/cancel`",
            "the client exits on an update after it has cancelled the turn",
            end_when(|message| message["params"]["update"]["status"] == "failed"),
        ),
    ]
}

/// Stops responding once `method` is received after a turn has ended.
fn fall_silent_after_turn(
    method: &'static str,
) -> impl Fn() -> crate::mutants::layer::Mutation + Send + Sync {
    let (ended, silent) = (AtomicBool::new(false), AtomicBool::new(false));
    let state = Arc::new((ended, silent));
    mutate_messages(move |passing| {
        let (ended, silent) = &*state;
        let ends = |message: &Value| !message["result"]["stopReason"].is_null();
        if !passing.said && passing.message.as_ref().is_some_and(ends) {
            ended.store(true, Relaxed);
        }
        if !passing.said && passing.method == method && ended.load(Relaxed) {
            silent.store(true, Relaxed);
        }
        if passing.said && silent.load(Relaxed) {
            *passing.message = None;
        }
    })
}
