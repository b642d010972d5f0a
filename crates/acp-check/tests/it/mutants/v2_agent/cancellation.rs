//! Mutants that handle cancellation wrongly.

use serde_json::json;

use crate::mutants::changes::{change_error_code, fall_silent_after};
use crate::mutants::layer::{
    Mutant, Mutation, change_update, drop_incoming, drop_outgoing, mutant,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/prompt-lifecycle/31",
            "no `state_update` with `idle` within",
            "the agent ignores `session/cancel`",
            drop_incoming("session/cancel", false),
        ),
        mutant(
            "v2/prompt-lifecycle/32",
            "the turn was cancelled, but ended with stop reason \"end_turn\"",
            "the agent does not report that the turn was cancelled",
            change_update("state_update", set_end_turn),
        ),
        mutant(
            "v2/prompt-lifecycle/33",
            "was cancelled too",
            "the agent cancels all later turns",
            cancel_all_later_turns,
        ),
        mutant(
            "v2/prompt-lifecycle/34",
            "the turn was cancelled by a `session/cancel` that was sent before its prompt",
            "the agent applies a cancellation to the next turn",
            cancel_all_later_turns,
        ),
        mutant(
            "v2/prompt-lifecycle/35",
            "waiting for a response to request 2",
            "the agent stops responding after a cancellation for an unknown session",
            fall_silent_after(|message| message["params"]["sessionId"] == "acp-check-nobodys"),
        ),
        mutant(
            "v2/prompt-lifecycle/36",
            "a `session/cancel` for another session",
            "the agent cancels the session that was prompted first",
            cancel_first_session,
        ),
        mutant(
            "v2/prompt-lifecycle/37",
            "the turn was cancelled, but ended with stop reason \"end_turn\"",
            "the agent does not report that a turn was cancelled during a permission request",
            change_update("state_update", set_end_turn),
        ),
        mutant(
            "v2/prompt-lifecycle/38",
            "`notes.txt` was changed anyway",
            "the agent executes a cancelled tool call",
            allow_after_cancel,
        ),
        mutant(
            "v2/prompt-lifecycle/39",
            "waiting for a response to request 1",
            "the agent does not respond to a cancelled request",
            drop_outgoing("_acp-check/cancelled", true),
        ),
        mutant(
            "v2/prompt-lifecycle/39",
            "expected -32800",
            "the agent uses a wrong error code for a cancelled request",
            change_error_code("_acp-check/cancelled", -32603),
        ),
        mutant(
            "v2/prompt-lifecycle/40",
            "waiting for a response to request 2",
            "the agent stops responding after an unknown request was cancelled",
            fall_silent_after(|message| message["params"]["requestId"] == "acp-check-nobodys"),
        ),
    ]
}

fn set_end_turn(update: &mut serde_json::Value) {
    if update["state"] == "idle" {
        update["stopReason"] = json!("end_turn");
    }
}

/// After the first cancellation, reports every turn as cancelled.
fn cancel_all_later_turns() -> Mutation {
    let mut cancelled = false;
    Box::new(move |passing| {
        cancelled |= passing.is_incoming("session/cancel");
        if let Some(message) = passing.message
            && cancelled
            && message["params"]["update"]["state"] == "idle"
        {
            message["params"]["update"]["stopReason"] = json!("cancelled");
        }
    })
}

/// Ignores cancellations, and allows tool calls whose permission requests were cancelled.
fn allow_after_cancel() -> Mutation {
    Box::new(|passing| {
        if passing.is_incoming("session/cancel") {
            *passing.message = None;
        }
        if let Some(message) = passing.message
            && !passing.said
            && passing.answers
            && passing.method == "session/request_permission"
        {
            message["result"] = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
        }
    })
}

/// Applies every cancellation to whichever session was prompted first.
fn cancel_first_session() -> Mutation {
    let mut first = None;
    Box::new(move |passing| {
        let (prompted, cancelled) = (
            passing.is_incoming("session/prompt"),
            passing.is_incoming("session/cancel"),
        );
        let Some(message) = passing.message else {
            return;
        };
        let session = &mut message["params"]["sessionId"];
        match &first {
            None if prompted => first = Some(session.clone()),
            Some(first) if cancelled => *session = first.clone(),
            _ => {}
        }
    })
}
