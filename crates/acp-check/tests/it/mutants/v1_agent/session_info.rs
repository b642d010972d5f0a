//! Mutants that report session titles wrongly.

use serde_json::json;

use crate::mutants::changes::late;
use crate::mutants::layer::{Mutant, mutant, update};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-info/1",
            "the session has title \"Another\"",
            "the agent lists another title than the one it has reported",
            update("session_info_update", |update| {
                update["title"] = json!("Another")
            }),
        ),
        mutant(
            "v1/session-info/2",
            "for a deleted session",
            "the agent sends the title of a deleted session",
            late(
                "session/delete",
                json!({"sessionUpdate": "session_info_update", "title": "Gone"}),
            ),
        ),
    ]
}
