//! Mutants that respond to elicitation requests incorrectly.

use serde_json::json;

use crate::mutants::changes::respond_with;
use crate::mutants::layer::{
    Mutant, apply_both, change_call, change_result, drop_outgoing, end_when, mutant,
};

const CREATE_METHOD: &str = "elicitation/create";

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/elicitation/101",
            "unknown action in the response:",
            "the client responds with an unknown action",
            change_result(CREATE_METHOD, |result| result["action"] = json!("ok")),
        ),
        mutant(
            "v1/elicitation/102",
            "the form was submitted with invalid content:",
            "the client responds with text in a numeric field",
            change_result(CREATE_METHOD, |result| {
                result["content"]["days"] = json!("7")
            }),
        ),
        mutant(
            "v1/elicitation/102",
            "the response contains the field \"age\"",
            "the client's response has a field that the form does not have",
            change_result(CREATE_METHOD, |result| result["content"]["age"] = json!(30)),
        ),
        mutant(
            "v1/elicitation/103",
            "after `elicitation/complete` for an unknown elicitation",
            "the client exits when an unknown elicitation is completed",
            end_when(|message| message["method"] == "elicitation/complete"),
        ),
        mutant(
            "v1/elicitation/104",
            "`elicitation/create`, which the client does not support, succeeded with",
            "the client supports forms, but does not advertise them",
            apply_both(
                change_call("initialize", |params| {
                    let capabilities = params["clientCapabilities"].as_object_mut();
                    capabilities.unwrap().remove("elicitation");
                }),
                respond_with(CREATE_METHOD, json!({"action": "decline"})),
            ),
        ),
        mutant(
            "v1/elicitation/105",
            "no response to request 0",
            "the client does not respond to a form with a field of unknown type",
            drop_outgoing(CREATE_METHOD, true),
        ),
    ]
}
