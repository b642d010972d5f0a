//! Wrong in setting modes and config options.

use serde_json::json;

use super::called;
use crate::mutants::layer::{Mutant, call, mutant, says_at};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-modes/101",
            "it set unknown mode \"code\"",
            "it sets a mode by its name",
            call("session/set_mode", |params| {
                params["modeId"] = json!("code")
            }),
        ),
        mutant(
            "v1/session-modes/104",
            "it set a mode of unknown session \"another\"",
            "it sets a mode elsewhere",
            call("session/set_mode", |params| {
                params["sessionId"] = json!("another")
            }),
        ),
        mutant(
            "v1/session-config-options/101",
            "it set \"mode\" to \"Code\"",
            "it sets an option to the name of a value",
            call("session/set_config_option", |params| {
                params["value"] = json!("Code")
            }),
        ),
        mutant(
            "v1/session-config-options/106",
            "it sent both `session/set_mode` and `session/set_config_option`",
            "it sets the mode in both ways",
            says_at(
                |passing| passing.answers && passing.method == "session/set_config_option",
                called(
                    "session/set_mode",
                    json!({"sessionId": "sess_check", "modeId": "code"}),
                ),
            ),
        ),
    ]
}
