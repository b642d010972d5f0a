//! Agent mutants that break the protocol rules.

use serde_json::json;

use crate::mutants::layer::{LayerLine, Mutant, change_result, mutant, mutate_messages};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/rules/1",
            "request-answered-twice",
            "the agent responds to `initialize` twice",
            mutate_messages(|passing| {
                if passing.said && passing.answers && passing.method == "initialize" {
                    let again = passing.message.clone().unwrap();
                    passing.then.push(LayerLine::Json(again));
                }
            }),
        )
        .sent_in_check("v1/initialization/4"),
        mutant(
            "v1/rules/1",
            "boolean-option-not-offered",
            "the agent sends a boolean option to a client that does not support it",
            change_result("session/new", |result| {
                result["configOptions"] =
                    json!([{"id": "a", "name": "A", "type": "boolean", "currentValue": true}]);
            }),
        )
        .sent_in_check("v1/initialization/4"),
    ]
}
