//! Mutants that report a wrong authentication status.

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
            "the agent omits the state",
            change_result("auth/status", |result| set_field(result, "state", None)),
        ),
        mutant(
            "auth-status/1",
            "label` is missing",
            "the agent's accounts have no labels",
            change_result("auth/status", |result| {
                set_field(&mut result["accounts"][0], "label", None)
            }),
        ),
        mutant(
            "auth-status/2",
            "`auth/status` failed with error -32000",
            "the agent requires a login before it reports that a login is required",
            reject_request("auth/status", -32000),
        ),
        mutant(
            "auth-status/2",
            "after `logout`, `auth/status` failed with error -32000",
            "after a logout, the agent requires a login before it reports that",
            reject_after_logout,
        ),
        mutant(
            "auth-status/3",
            "after `logout`, the state is \"authenticated\"",
            "the agent always reports that the user is logged in",
            change_result("auth/status", |result| {
                result["state"] = json!("authenticated")
            }),
        ),
        mutant(
            "auth-status/4",
            "the state is \"not_required\", but `session/new` requires a login",
            "the agent requires a login, but reports that it does not",
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
            "the agent reports each change twice",
            report_after_logout(&[
                json!({"state": "unauthenticated"}),
                json!({"state": "unauthenticated"}),
            ]),
        ),
        mutant(
            "auth-status/6",
            "state` is missing",
            "the agent reports changes without the new state",
            report_after_logout(&[json!({})]),
        ),
        mutant(
            "auth-status/6",
            "the last reported state is \"unauthenticated\"",
            "the agent reports logouts only",
            report_after_logout(&[json!({"state": "unauthenticated"})]),
        ),
    ]
}

fn is_logout(method: &str) -> bool {
    matches!(method, "logout" | "auth/logout")
}

/// Requires a login for `auth/status` after a logout.
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

/// Reports these status changes after a logout.
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
