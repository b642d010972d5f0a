//! Client mutants that break the protocol rules.

use serde_json::json;

use crate::mutants::layer::{Mutant, change_call, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/rules/101",
            "session-not-set-up",
            "the client sends a prompt to a session that is not open",
            change_call("session/prompt", |params| {
                params["sessionId"] = json!("other");
            }),
        )
        .sent_in_check("v1/initialization/104"),
    ]
}
