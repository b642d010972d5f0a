//! Mutants that report plans incorrectly.

use serde_json::json;

use crate::mutants::layer::{Mutant, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/agent-plan/1",
            "entry \"Look again\" is missing from one plan update, but present in the updates before and after it",
            "the agent reports only the changed entries of a plan",
            change_update("plan", |plan| {
                if plan["entries"][1]["status"] == "in_progress"
                    && let Some(entries) = plan["entries"].as_array_mut()
                {
                    entries.truncate(2);
                }
            }),
        ),
        mutant(
            "v1/agent-plan/2",
            "a plan entry has no text",
            "the agent's plan entries have no text",
            change_update("plan", |plan| plan["entries"][0]["content"] = json!(" ")),
        ),
    ]
}
