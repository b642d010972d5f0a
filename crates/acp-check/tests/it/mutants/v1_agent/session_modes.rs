//! Mutants that mishandle session modes.

use serde_json::json;

use crate::mutants::changes::respond_instead;
use crate::mutants::layer::{Mutant, change_result, change_update, mutant, reject_request};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-modes/1",
            "the current mode \"lunch\" is not one of ask, code",
            "the agent's current mode is unavailable",
            change_result("session/new", |result| {
                result["modes"]["currentModeId"] = json!("lunch");
            }),
        ),
        mutant(
            "v1/session-modes/2",
            "duplicate mode id \"ask\"",
            "the agent's modes all have the same id",
            change_result("session/new", |result| {
                result["modes"]["availableModes"][1]["id"] = json!("ask");
            }),
        ),
        mutant(
            "v1/session-modes/3",
            "error -32603",
            "the agent does not allow setting a mode",
            reject_request("session/set_mode", -32603),
        ),
        mutant(
            "v1/session-modes/4",
            "the agent accepted the unavailable mode \"no-such-mode\"",
            "the agent accepts unavailable modes",
            respond_instead(
                "session/set_mode",
                |params| params["modeId"] == "no-such-mode",
                json!({"result": {}}),
            ),
        ),
        mutant(
            "v1/session-modes/5",
            "the mode is now \"lunch\"",
            "the agent changes to an unavailable mode",
            change_update("current_mode_update", |update| {
                update["currentModeId"] = json!("lunch");
            }),
        ),
        mutant(
            "v1/session-modes/6",
            "while the agent was working:",
            "the agent does not allow setting the mode during a turn",
            reject_request("session/set_mode", -32603),
        ),
        mutant(
            "v1/session-modes/7",
            "`session/set_mode` for an unknown session succeeded",
            "the agent sets the mode of unknown sessions",
            respond_instead(
                "session/set_mode",
                |params| params["sessionId"] == "sess_nobody_has_opened",
                json!({"result": {}}),
            ),
        ),
    ]
}
