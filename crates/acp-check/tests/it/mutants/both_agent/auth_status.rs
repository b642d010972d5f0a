//! Mutants with a wrong authentication status.

use serde_json::{Value, json};

use crate::mutants::changes::set;
use crate::mutants::layer::{LayerLine, Mutant, Mutation, answer, both, change, mutant, refuse};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "auth-status/1",
            "state` is missing",
            "the agent omits the state",
            answer("auth/status", |result| set(result, "state", None)),
        ),
        mutant(
            "auth-status/1",
            "label` is missing",
            "the agent's accounts have no labels",
            answer("auth/status", |result| {
                set(&mut result["accounts"][0], "label", None)
            }),
        ),
        mutant(
            "auth-status/2",
            "`auth/status` failed with error -32000",
            "the agent requires a login before it reports that a login is required",
            refuse("auth/status", -32000),
        ),
        mutant(
            "auth-status/2",
            "after `logout`, `auth/status` failed with error -32000",
            "after a logout, the agent requires a login before it reports that",
            refuses_outside,
        ),
        mutant(
            "auth-status/3",
            "after `logout`, the state is \"authenticated\"",
            "the agent always reports that the user is logged in",
            answer("auth/status", |result| {
                result["state"] = json!("authenticated")
            }),
        ),
        mutant(
            "auth-status/4",
            "the state is \"not_required\", but `session/new` requires a login",
            "the agent requires a login, but reports that it does not",
            both(
                answer("auth/status", |result| {
                    result["state"] = json!("not_required")
                }),
                refuse("session/new", -32000),
            ),
        ),
        mutant(
            "auth-status/5",
            "the agent sent the same status twice in a row:",
            "the agent reports each change twice",
            tells(&[
                json!({"state": "unauthenticated"}),
                json!({"state": "unauthenticated"}),
            ]),
        ),
        mutant(
            "auth-status/6",
            "state` is missing",
            "the agent reports changes without the new state",
            tells(&[json!({})]),
        ),
        mutant(
            "auth-status/6",
            "the last reported state is \"unauthenticated\"",
            "the agent reports logouts only",
            tells(&[json!({"state": "unauthenticated"})]),
        ),
    ]
}

fn is_logout(method: &str) -> bool {
    matches!(method, "logout" | "auth/logout")
}

/// Requires a login for `auth/status` after a logout.
fn refuses_outside() -> Mutation {
    let mut outside = false;
    let mut refuse = refuse("auth/status", -32000)();
    Box::new(move |passing| {
        outside |= is_logout(passing.method);
        if outside {
            refuse(passing);
        }
    })
}

/// Reports these status changes after a logout.
fn tells(told: &[Value]) -> impl Fn() -> Mutation + Send + Sync + use<> {
    let told = told.to_vec();
    change(move |passing| {
        if passing.said && passing.answers && is_logout(passing.method) {
            for params in &told {
                let update =
                    json!({"jsonrpc": "2.0", "method": "auth/status_update", "params": params});
                passing.then.push(LayerLine::Json(update));
            }
        }
    })
}
