//! Mutants that report usage incorrectly.

use serde_json::json;

use crate::mutants::layer::{Mutant, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/usage/1",
            "tokens used, but the context size is 1",
            "the agent reports more tokens than fit into its context",
            change_update("usage_update", |update| update["size"] = json!(1)),
        ),
        mutant(
            "v1/usage/2",
            "the session's cost decreased from 99 to 98",
            "the agent reports the rest of a budget as the cost",
            change_update("usage_update", |update| {
                let cost = update["cost"]["amount"].as_f64().unwrap();
                update["cost"]["amount"] = json!(100.0 - cost);
            }),
        ),
    ]
}
