//! Wrong in the status of authentication.

use serde_json::{Value, json};

use crate::mutants::changes::set_field;
use crate::mutants::layer::{
    LayerLine, Mutant, Mutation, apply_both, change_result, mutant, mutate_messages, reject_request,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "auth-status/1",
            "state` is missing",
            "the agent does not say the state",
            change_result("auth/status", |result| set_field(result, "state", None)),
        ),
        mutant(
            "auth-status/1",
            "label` is missing",
            "its accounts have no labels",
            change_result("auth/status", |result| {
                set_field(&mut result["accounts"][0], "label", None)
            }),
        ),
        mutant(
            "auth-status/2",
            "`auth/status` failed with error -32000",
            "the agent wants a login before it says that it wants one",
            reject_request("auth/status", -32000),
        ),
        mutant(
            "auth-status/2",
            "after `logout`, `auth/status` failed with error -32000",
            "the agent wants a login, after a logout, before it says so",
            reject_after_logout,
        ),
        mutant(
            "auth-status/3",
            "after `logout`, the state is \"authenticated\"",
            "to it one is always logged in",
            change_result("auth/status", |result| {
                result["state"] = json!("authenticated")
            }),
        ),
        mutant(
            "auth-status/4",
            "the state is \"not_required\", but `session/new` requires a login",
            "the agent wants a login, and says that it does not",
            apply_both(
                change_result("auth/status", |result| {
                    result["state"] = json!("not_required")
                }),
                reject_request("session/new", -32000),
            ),
        ),
        mutant(
            "auth-status/5",
            "the agent sent the same status twice in a row:",
            "the agent tells each change twice",
            report_after_logout(&[
                json!({"state": "unauthenticated"}),
                json!({"state": "unauthenticated"}),
            ]),
        ),
        mutant(
            "auth-status/6",
            "state` is missing",
            "the agent tells of changes, and not of which",
            report_after_logout(&[json!({})]),
        ),
        mutant(
            "auth-status/6",
            "the last reported state is \"unauthenticated\"",
            "the agent tells of logouts alone",
            report_after_logout(&[json!({"state": "unauthenticated"})]),
        ),
    ]
}

fn is_logout(method: &str) -> bool {
    matches!(method, "logout" | "auth/logout")
}

/// Wants a login for `auth/status` once one has logged out.
fn reject_after_logout() -> Mutation {
    let mut outside = false;
    let mut refuse = reject_request("auth/status", -32000)();
    Box::new(move |passing| {
        outside |= is_logout(passing.method);
        if outside {
            refuse(passing);
        }
    })
}

/// Tells of these changes after a logout.
fn report_after_logout(told: &[Value]) -> impl Fn() -> Mutation + Send + Sync + use<> {
    let told = told.to_vec();
    mutate_messages(move |passing| {
        if passing.said && passing.answers && is_logout(passing.method) {
            for params in &told {
                let update =
                    json!({"jsonrpc": "2.0", "method": "auth/status_update", "params": params});
                passing.then.push(LayerLine::Json(update));
            }
        }
    })
}
