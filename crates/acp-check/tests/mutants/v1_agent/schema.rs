//! Messages of the wrong shape.

use serde_json::json;

use crate::layer::{Mutant, change, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/schema/1",
            "jsonrpc",
            "it says another version of JSON-RPC",
            change(|passing| {
                if passing.said
                    && let Some(message) = passing.message
                {
                    message["jsonrpc"] = json!("1.0");
                }
            }),
        )
        .seen_in("v1/initialization/1"),
    ]
}
