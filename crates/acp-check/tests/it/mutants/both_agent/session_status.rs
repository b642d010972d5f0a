//! Wrong in the status of sessions.

use serde_json::json;

use crate::mutants::changes::{late, other_code, pretend, set};
use crate::mutants::layer::{Mutant, Mutation, answer, change, mutant};

pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "session-status/1",
            "the session is open, but its status is \"saved\"",
            "to it none is open",
            answer("session/status", |result| result["status"] = json!("saved")),
        ),
        mutant(
            "session-status/1",
            "status` is missing",
            "the agent answers with nothing",
            answer("session/status", |result| set(result, "status", None)),
        ),
        mutant(
            "session-status/2",
            "the session is closed, but its status is \"open\"",
            "to it all are open",
            answer("session/status", |result| result["status"] = json!("open")),
        ),
        mutant(
            "session-status/3",
            "`session/status` failed with error -32602 (no); expected -32002",
            "the agent has one error for all",
            other_code("session/status", -32602),
        ),
        mutant(
            "session-status/3",
            "`session/status` succeeded with",
            "what it does not know is saved to it",
            pretend("session/status", json!({"status": "saved"})),
        ),
        mutant(
            "session-status/3",
            "the error's data has no `sessionId`",
            "the agent does not say what it does not know",
            change(|passing| {
                if passing.said
                    && passing.method == "session/status"
                    && let Some(message) = passing.message
                    && message["error"].is_object()
                {
                    set(&mut message["error"], "data", None);
                }
            }),
        ),
        mutant(
            "session-status/4",
            "to \"open\"",
            "the agent opens what it is asked of",
            opens_when_asked,
        ),
        mutant(
            "session-status/4",
            "the agent sent \"session_info_update\"",
            "the agent tells of what it is asked of",
            late(
                "session/status",
                json!({"sessionUpdate": "session_info_update", "title": "Asked of"}),
            ),
        ),
    ];
    if version == "v2" {
        mutants.extend([
            mutant(
                "session-status/5",
                "the session is open, but `state` is missing:",
                "the agent leaves out the state",
                answer("session/status", |result| set(result, "state", None)),
            ),
            mutant(
                "session-status/6",
                "the state in the status is \"idle\"",
                "the agent is always idle",
                answer("session/status", |result| {
                    result["state"] = json!({"state": "idle"})
                }),
            ),
            mutant(
                "session-status/6",
                "the state in the status is \"running\"",
                "the agent is always at work",
                answer("session/status", |result| {
                    result["state"] = json!({"state": "running"})
                }),
            ),
        ]);
    }
    mutants
}

/// Once it was asked for the status of a session, twice of a closed one, that is open.
fn opens_when_asked() -> Mutation {
    let mut asked = 0;
    Box::new(move |passing| {
        if passing.said && passing.answers && passing.method == "session/status" {
            asked += 1;
            if asked > 2
                && let Some(message) = passing.message
            {
                message["result"]["status"] = json!("open");
            }
        }
    })
}
