//! Wrong in asking the person.

use serde_json::json;

use crate::mutants::changes::reject_after_first;
use crate::mutants::layer::{Mutant, change_call, change_incoming, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/elicitation/1",
            "the agent called `elicitation/create`, which the client does not support",
            "the agent asks in every client",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"form": {}});
            }),
        ),
        mutant(
            "v1/elicitation/2",
            "the agent used mode \"url\"",
            "the agent shows pages to clients that have forms",
            change_incoming("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"url": {}});
            }),
        ),
        mutant(
            "v1/elicitation/3",
            "after a declined elicitation",
            "the agent does not get over a no",
            reject_after_first("session/prompt"),
        ),
        mutant(
            "v1/elicitation/4",
            "`elicitation/complete` for unknown elicitation \"another\"",
            "the agent tells of a page that it has not shown",
            change_call("elicitation/complete", |params| {
                params["elicitationId"] = json!("another")
            }),
        ),
    ]
}
