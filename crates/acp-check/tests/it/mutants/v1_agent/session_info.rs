//! Wrong in sessions' titles.

use serde_json::json;

use crate::mutants::changes::send_update_after_response;
use crate::mutants::layer::{Mutant, change_update, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-info/1",
            "the session has title \"Another\"",
            "its list has titles of its own",
            change_update("session_info_update", |update| {
                update["title"] = json!("Another")
            }),
        ),
        mutant(
            "v1/session-info/2",
            "for a deleted session",
            "the agent goes on to give titles",
            send_update_after_response(
                "session/delete",
                json!({"sessionUpdate": "session_info_update", "title": "Gone"}),
            ),
        ),
    ]
}
