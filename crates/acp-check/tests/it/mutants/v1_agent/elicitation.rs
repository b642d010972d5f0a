//! Wrong in asking the person.

use serde_json::json;

use crate::mutants::changes::only_once;
use crate::mutants::layer::{Mutant, call, hear, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/elicitation/1",
            "the agent called `elicitation/create`, which the client does not support",
            "the agent asks in every client",
            hear("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"form": {}});
            }),
        ),
        mutant(
            "v1/elicitation/2",
            "the agent used mode \"url\"",
            "the agent shows pages to clients that have forms",
            hear("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"url": {}});
            }),
        ),
        mutant(
            "v1/elicitation/3",
            "after a declined elicitation",
            "the agent does not get over a no",
            only_once("session/prompt"),
        ),
        mutant(
            "v1/elicitation/4",
            "`elicitation/complete` for unknown elicitation \"another\"",
            "the agent tells of a page that it has not shown",
            call("elicitation/complete", |params| {
                params["elicitationId"] = json!("another")
            }),
        ),
    ]
}
