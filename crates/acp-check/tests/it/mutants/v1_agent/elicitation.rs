//! Wrong in asking the person.

use serde_json::json;

use crate::mutants::changes::only_once;
use crate::mutants::layer::{Mutant, call, hear, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/elicitation/1",
            "it called `elicitation/create`, which the client does not support",
            "it asks in every client",
            hear("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"form": {}});
            }),
        ),
        mutant(
            "v1/elicitation/2",
            "it used mode \"url\"",
            "it shows pages to clients that have forms",
            hear("initialize", |params| {
                params["clientCapabilities"]["elicitation"] = json!({"url": {}});
            }),
        ),
        mutant(
            "v1/elicitation/3",
            "after a declined elicitation",
            "it does not get over a no",
            only_once("session/prompt"),
        ),
        mutant(
            "v1/elicitation/4",
            "`elicitation/complete` for unknown elicitation \"another\"",
            "it tells of a page that it has not shown",
            call("elicitation/complete", |params| {
                params["elicitationId"] = json!("another")
            }),
        ),
    ]
}
