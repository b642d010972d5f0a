//! Clients that break the rules of a conversation.

use serde_json::json;

use crate::mutants::layer::{Mutant, change_call, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/rules/101",
            "session-not-set-up",
            "the client sends a prompt in a session that nobody has opened",
            change_call("session/prompt", |params| {
                params["sessionId"] = json!("other");
            }),
        )
        .seen_in("v2/prompt-lifecycle/101"),
    ]
}
