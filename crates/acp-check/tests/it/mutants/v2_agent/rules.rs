//! Agents that break the rules of a conversation.

use crate::mutants::layer::{LayerLine, Mutant, mutant, mutate_messages};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/rules/1",
            "request-answered-twice",
            "the agent answers `session/new` twice",
            mutate_messages(|passing| {
                if passing.said && passing.answers && passing.method == "session/new" {
                    let again = passing.message.clone().unwrap();
                    passing.then.push(LayerLine::Json(again));
                }
            }),
        )
        .seen_in("v2/prompt-lifecycle/1"),
    ]
}
