//! Mutants that handle extensions wrongly.

use serde_json::json;

use crate::mutants::changes::respond_with;
use crate::mutants::layer::{Mutant, drop_outgoing, end_when, mutant, reject_request};

const UNKNOWN_METHOD: &str = "_example.org/acp-check/unheard-of";

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/extensibility/101",
            "no response to request 0",
            "the client does not respond to unknown requests",
            drop_outgoing(UNKNOWN_METHOD, true),
        ),
        mutant(
            "v1/extensibility/102",
            "failed with error -32603; expected -32601",
            "the client uses one error code for everything",
            reject_request(UNKNOWN_METHOD, -32603),
        ),
        mutant(
            "v1/extensibility/102",
            "succeeded with {}; expected an error",
            "the client returns a result for unknown methods",
            respond_with(UNKNOWN_METHOD, json!({})),
        ),
        mutant(
            "v1/extensibility/103",
            "after an extension notification",
            "the client exits on an unknown extension notification",
            end_when(|message| message["method"] == UNKNOWN_METHOD),
        ),
        mutant(
            "v1/extensibility/104",
            "after `_meta` everywhere",
            "the client exits on a list in `_meta`",
            end_when(|message| !message["params"]["update"]["_meta"].is_null()),
        ),
        mutant(
            "v1/extensibility/105",
            "after an unknown notification",
            "the client exits on an unknown notification",
            end_when(|message| message["method"] == "$/acp_check"),
        ),
    ]
}
