//! Wrong with extensions.

use serde_json::json;

use crate::mutants::changes::pretend;
use crate::mutants::layer::{Mutant, ends_at, mutant, refuse, withhold};

const METHOD: &str = "_example.org/acp-check/unheard-of";

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/extensibility/101",
            "no response to request 0",
            "the client says nothing to what it does not know",
            withhold(METHOD, true),
        ),
        mutant(
            "v1/extensibility/102",
            "failed with error -32603; expected -32601",
            "the client has one error for everything",
            refuse(METHOD, -32603),
        ),
        mutant(
            "v1/extensibility/102",
            "succeeded with {}; expected an error",
            "the client has a result for everything",
            pretend(METHOD, json!({})),
        ),
        mutant(
            "v1/extensibility/103",
            "after an extension notification",
            "the client ends at a notification that it does not know",
            ends_at(|message| message["method"] == METHOD),
        ),
        mutant(
            "v1/extensibility/104",
            "after `_meta` everywhere",
            "the client wants no list in `_meta`",
            ends_at(|message| !message["params"]["update"]["_meta"].is_null()),
        ),
        mutant(
            "v1/extensibility/105",
            "after an unknown notification",
            "the client ends at an unknown notification",
            ends_at(|message| message["method"] == "$/acp_check"),
        ),
    ]
}
