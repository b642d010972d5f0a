//! Mutants that request user input incorrectly.

use serde_json::json;

use crate::mutants::changes::reject_after_first;
use crate::mutants::layer::{Mutant, change_call, change_incoming, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/elicitation/1",
            "the agent called `elicitation/create`, which the client does not support",
            "the agent requests input from clients that do not support it",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"form": {}});
            }),
        ),
        mutant(
            "v1/elicitation/2",
            "the agent used mode \"url\"",
            "the agent sends URLs to clients that support only forms",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"url": {}});
            }),
        ),
        mutant(
            "v1/elicitation/3",
            "after a declined elicitation",
            "the agent fails after a declined elicitation",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/elicitation/4",
            "`elicitation/complete` for unknown elicitation \"another\"",
            "the agent completes an elicitation that it has not sent",
            change_call("elicitation/complete", |params| {
                params["elicitationId"] = json!("another")
            }),
        ),
    ]
}
