//! Mutants that list or delete sessions incorrectly.

use serde_json::{Value, json};

use super::session_load::hide_session_capability;
use crate::mutants::changes::{reject_if, respond_with, succeed_without_effect_if};
use crate::mutants::layer::{Mutant, change_incoming, change_result, mutant, reject_request};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-list/1",
            "the response has no `sessions` list:",
            "the agent omits an empty list",
            change_result("session/list", |result| {
                result.as_object_mut().unwrap().remove("sessions");
            }),
        ),
        mutant(
            "v1/session-list/2",
            "had a turn, but is not listed",
            "the agent lists no sessions",
            change_result("session/list", |result| result["sessions"] = json!([])),
        ),
        mutant(
            "v1/session-list/3",
            "requested sessions in",
            "the agent lists the sessions of all directories",
            change_incoming("session/list", |params| {
                params.as_object_mut().unwrap().remove("cwd");
            }),
        ),
        mutant(
            "v1/session-list/4",
            "failed with error -32002",
            "the agent returns an error for an empty list",
            reject_if("session/list", -32002, |params| {
                let cwd = params["cwd"].as_str();
                cwd.is_some_and(|cwd| cwd.ends_with("elsewhere"))
            }),
        ),
        mutant(
            "v1/session-list/4",
            "but the agent listed null",
            "the agent omits an empty list",
            change_result("session/list", |result| {
                if result["sessions"] == json!([]) {
                    result.as_object_mut().unwrap().remove("sessions");
                }
            }),
        ),
        mutant(
            "v1/session-list/5",
            "the agent accepted an unknown cursor",
            "the agent returns the first page for an unknown cursor",
            change_incoming("session/list", |params| {
                params.as_object_mut().unwrap().remove("cursor");
            }),
        ),
        mutant(
            "v1/session-list/6",
            "is listed twice",
            "the agent's second page repeats the end of the first page",
            change_incoming("session/list", |params| {
                if params["cursor"] == "2" {
                    params["cursor"] = json!("1");
                }
            }),
        ),
        mutant(
            "v1/session-list/7",
            "but is listed with working directory \"/\"",
            "the agent lists sessions with a wrong directory",
            change_result("session/list", |result| {
                for session in result["sessions"].as_array_mut().into_iter().flatten() {
                    session["cwd"] = json!("/");
                }
            }),
        ),
        mutant(
            "v1/session-list/8",
            "the agent does not support `session/list`, but the request succeeded",
            "the agent supports `session/list`, but does not advertise it",
            hide_session_capability("list"),
        ),
        mutant(
            "v1/session-list/9",
            "the returned title is \"Set by the check\", but the listed title is \"answer\"",
            "the agent forgets the title",
            respond_with("session/set_title", json!({"title": "Set by the check"})),
        ),
        mutant(
            "v1/session-list/10",
            "succeeded; expected an error",
            "the agent accepts an empty title",
            respond_with("session/set_title", json!({"title": ""})),
        ),
        mutant(
            "v1/session-list/11",
            "failed with error -32603 (",
            "the agent uses one error code for everything",
            reject_request("session/set_title", -32603),
        ),
        mutant(
            "v1/session-delete/1",
            "was deleted, but is still listed",
            "the agent accepts a request to delete a session, but does not delete it",
            succeed_without_effect_if("session/delete", |_: &Value| true),
        ),
        mutant(
            "v1/session-delete/2",
            "`session/delete` failed with error -32002: no",
            "the agent rejects deleting an unknown session",
            reject_request("session/delete", -32002),
        ),
        mutant(
            "v1/session-delete/3",
            "`session/delete` failed with error -32002: no",
            "the agent rejects deleting a session twice",
            crate::mutants::layer::reject_from_nth("session/delete", -32002, 2),
        ),
        mutant(
            "v1/session-delete/4",
            "the agent does not support `session/delete`, but the request succeeded",
            "the agent supports `session/delete`, but does not advertise it",
            hide_session_capability("delete"),
        ),
    ]
}
