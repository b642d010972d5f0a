//! Mutants that handle extensions wrongly.

use serde_json::json;

use crate::mutants::changes::pretend;
use crate::mutants::layer::{Mutant, ends_at, mutant, refuse, withhold};

const METHOD: &str = "_example.org/acp-check/unheard-of";

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/extensibility/101",
            "no response to request 0",
            "the client does not respond to unknown requests",
            withhold(METHOD, true),
        ),
        mutant(
            "v1/extensibility/102",
            "failed with error -32603; expected -32601",
            "the client uses one error code for everything",
            refuse(METHOD, -32603),
        ),
        mutant(
            "v1/extensibility/102",
            "succeeded with {}; expected an error",
            "the client returns a result for unknown methods",
            pretend(METHOD, json!({})),
        ),
        mutant(
            "v1/extensibility/103",
            "after an extension notification",
            "the client exits on an unknown extension notification",
            ends_at(|message| message["method"] == METHOD),
        ),
        mutant(
            "v1/extensibility/104",
            "after `_meta` everywhere",
            "the client exits on a list in `_meta`",
            ends_at(|message| !message["params"]["update"]["_meta"].is_null()),
        ),
        mutant(
            "v1/extensibility/105",
            "after an unknown notification",
            "the client exits on an unknown notification",
            ends_at(|message| message["method"] == "$/acp_check"),
        ),
    ]
}
