//! Wrong in what is cancelled.

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
            "the agent hears no cancel",
            drop_incoming("session/cancel", false),
        ),
        mutant(
            "v2/prompt-lifecycle/32",
            "the turn was cancelled, but ended with stop reason \"end_turn\"",
            "the agent does not say that it was cancelled",
            change_update("state_update", set_end_turn),
        ),
        mutant(
            "v2/prompt-lifecycle/33",
            "was cancelled, too",
            "one cancel is for all that comes",
            cancel_all_later_turns,
        ),
        mutant(
            "v2/prompt-lifecycle/34",
            "a cancel sent before the prompt cancelled its turn",
            "a cancel is kept for the next prompt",
            cancel_all_later_turns,
        ),
        mutant(
            "v2/prompt-lifecycle/35",
            "waiting for a response to request 2",
            "a cancel for nobody is its end",
            fall_silent_after(|message| message["params"]["sessionId"] == "acp-check-nobodys"),
        ),
        mutant(
            "v2/prompt-lifecycle/36",
            "a cancel in another session",
            "the agent cancels what came first",
            cancel_first_session,
        ),
        mutant(
            "v2/prompt-lifecycle/37",
            "the turn was cancelled, but ended with stop reason \"end_turn\"",
            "the agent does not say that it was cancelled while it asked",
            change_update("state_update", set_end_turn),
        ),
        mutant(
            "v2/prompt-lifecycle/38",
            "`notes.txt` was changed anyway",
            "what was cancelled is allowed to it",
            allow_after_cancel,
        ),
        mutant(
            "v2/prompt-lifecycle/39",
            "waiting for a response to request 1",
            "the agent does not answer what was cancelled",
            drop_outgoing("_acp-check/cancelled", true),
        ),
        mutant(
            "v2/prompt-lifecycle/39",
            "expected -32800",
            "its code for what was cancelled is another",
            change_error_code("_acp-check/cancelled", -32603),
        ),
        mutant(
            "v2/prompt-lifecycle/40",
            "waiting for a response to request 2",
            "the cancel of nothing is its end",
            fall_silent_after(|message| message["params"]["requestId"] == "acp-check-nobodys"),
        ),
    ]
}

fn set_end_turn(update: &mut serde_json::Value) {
    if update["state"] == "idle" {
        update["stopReason"] = json!("end_turn");
    }
}

/// After one cancel every turn ends as cancelled.
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

/// Hears no cancel, and hears a yes where there was none.
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

/// Takes every cancel for one of the session that was prompted first.
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
