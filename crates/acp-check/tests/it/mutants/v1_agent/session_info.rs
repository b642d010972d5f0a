//! Mutants that report session titles incorrectly.

use serde_json::json;

use crate::mutants::changes::send_update_after_response;
use crate::mutants::layer::{Mutant, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-info/1",
            "the session's title is \"Another\"",
            "the agent lists another title than the one it has reported",
            change_update("session_info_update", |update| {
                update["title"] = json!("Another")
            }),
        ),
        mutant(
            "v1/session-info/2",
            "for a deleted session",
            "the agent sends the title of a deleted session",
            send_update_after_response(
                "session/delete",
                json!({"sessionUpdate": "session_info_update", "title": "Gone"}),
            ),
        ),
    ]
}
