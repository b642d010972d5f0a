//! Mutants that set modes and config options incorrectly.

use serde_json::json;

use super::method_call;
use crate::mutants::layer::{Mutant, call_when, change_call, mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/session-modes/101",
            "the client set the unknown mode \"code\"",
            "the client sets a mode by its name instead of its id",
            change_call("session/set_mode", |params| {
                params["modeId"] = json!("code")
            }),
        ),
        mutant(
            "v1/session-modes/104",
            "the client set a mode for the unknown session \"another\"",
            "the client sets the mode of another session",
            change_call("session/set_mode", |params| {
                params["sessionId"] = json!("another")
            }),
        ),
        mutant(
            "v1/session-config-options/101",
            "the client set \"mode\" to \"Code\"",
            "the client sets an option to the name of a value",
            change_call("session/set_config_option", |params| {
                params["value"] = json!("Code")
            }),
        ),
        mutant(
            "v1/session-config-options/106",
            "the client sent both `session/set_mode` and `session/set_config_option`",
            "the client sets the mode with both methods",
            call_when(
                |passing| passing.answers && passing.method == "session/set_config_option",
                method_call(
                    "session/set_mode",
                    json!({"sessionId": "sess_check", "modeId": "code"}),
                ),
            ),
        ),
    ]
}
