//! Agent mutants that break the protocol rules.

use crate::mutants::layer::{LayerLine, Mutant, mutant, mutate_messages};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/rules/1",
            "request-answered-twice",
            "the agent responds to `session/new` twice",
            mutate_messages(|passing| {
                if passing.said && passing.answers && passing.method == "session/new" {
                    let again = passing.message.clone().unwrap();
                    passing.then.push(LayerLine::Json(again));
                }
            }),
        )
        .sent_in_check("v2/prompt-lifecycle/1"),
    ]
}
