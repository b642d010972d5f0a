//! Mutants that request input wrongly.

use serde_json::json;

use crate::mutants::changes::only_once;
use crate::mutants::layer::{Mutant, call, hear, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/elicitation/1",
            "the agent called `elicitation/create`, which the client does not support",
            "the agent requests input from clients that do not support it",
            hear("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"form": {}});
            }),
        ),
        mutant(
            "v1/elicitation/2",
            "the agent used mode \"url\"",
            "the agent sends URLs to clients that support only forms",
            hear("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"url": {}});
            }),
        ),
        mutant(
            "v1/elicitation/3",
            "after a declined elicitation",
            "the agent fails after a declined elicitation",
            only_once("session/prompt"),
        ),
        mutant(
            "v1/elicitation/4",
            "`elicitation/complete` for unknown elicitation \"another\"",
            "the agent completes an elicitation that it has not sent",
            call("elicitation/complete", |params| {
                params["elicitationId"] = json!("another")
            }),
        ),
    ]
}
