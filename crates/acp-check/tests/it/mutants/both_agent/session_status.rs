//! Mutants that report a wrong session status.

use serde_json::json;

use crate::mutants::changes::{
    change_error_code, respond_with, send_update_after_response, set_field,
};
use crate::mutants::layer::{Mutant, Mutation, change_result, mutant, mutate_messages};

pub(crate) fn mutants(version: &str) -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "session-status/1",
            "the session is open, but its status is \"saved\"",
            "the agent never reports the status `open`",
            change_result("session/status", |result| result["status"] = json!("saved")),
        ),
        mutant(
            "session-status/1",
            "status` is missing",
            "the agent returns no status",
            change_result("session/status", |result| set_field(result, "status", None)),
        ),
        mutant(
            "session-status/2",
            "the session is closed, but its status is \"open\"",
            "the agent always reports the status `open`",
            change_result("session/status", |result| result["status"] = json!("open")),
        ),
        mutant(
            "session-status/3",
            "`session/status` failed with error -32602 (no); expected -32002",
            "the agent uses one error code for everything",
            change_error_code("session/status", -32602),
        ),
        mutant(
            "session-status/3",
            "`session/status` succeeded with",
            "the agent reports the status `saved` for an unknown session",
            respond_with("session/status", json!({"status": "saved"})),
        ),
        mutant(
            "session-status/3",
            "the error's data does not contain the session's `sessionId`",
            "the agent's error does not name the unknown session",
            mutate_messages(|passing| {
                if passing.said
                    && passing.method == "session/status"
                    && let Some(message) = passing.message
                    && message["error"].is_object()
                {
                    set_field(&mut message["error"], "data", None);
                }
            }),
        ),
        mutant(
            "session-status/4",
            "to \"open\"",
            "the agent opens a session when its status is requested",
            open_on_status_request,
        ),
        mutant(
            "session-status/4",
            "the agent sent \"session_info_update\"",
            "the agent sends an update when the status of a session is requested",
            send_update_after_response(
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
                "the agent omits the state",
                change_result("session/status", |result| set_field(result, "state", None)),
            ),
            mutant(
                "session-status/6",
                "the state in the status is \"idle\"",
                "the agent always reports that it is idle",
                change_result("session/status", |result| {
                    result["state"] = json!({"state": "idle"})
                }),
            ),
            mutant(
                "session-status/6",
                "the state in the status is \"running\"",
                "the agent always reports that it is working",
                change_result("session/status", |result| {
                    result["state"] = json!({"state": "running"})
                }),
            ),
        ]);
    }
    mutants
}

/// Reports a session as open after its status has been requested more than twice.
fn open_on_status_request() -> Mutation {
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
