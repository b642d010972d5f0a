//! Mutants that handle tool calls or permission requests wrongly.

use serde_json::{Value, json};

use crate::mutants::changes::{fall_silent_at, reject_if};
use crate::mutants::layer::{Mutant, change_result, mutant};

const PERMISSION_METHOD: &str = "session/request_permission";

pub(crate) fn mutants() -> Vec<Mutant> {
    let ends = [
        ("v2/tool-calls/101", "tool_call_update"),
        ("v2/tool-calls/102", "\"rawInput\":null"),
        ("v2/tool-calls/103", "tool_call_content_chunk"),
        ("v2/tool-calls/104", "_acp-check/asleep"),
        ("v2/tool-calls/105", "_acp-check/smell"),
        ("v2/tool-calls/106", "\"type\":\"diff\""),
        ("v2/tool-calls/107", "_acp-check/fold"),
        ("v2/tool-calls/108", "terminal_update"),
        ("v2/tool-calls/109", "/wD+"),
        ("v2/tool-calls/110", "\"exitStatus\":null"),
        ("v2/tool-calls/111", "\"exitStatus\":{}"),
    ];
    let ends = ends.map(|(check, at)| {
        let what = "the client stops responding after an unexpected update";
        mutant(check, "no response to request", what, fall_silent_at(at))
    });
    ends.into_iter().chain(permission_mutants()).collect()
}

fn subject_rejection_mutant(check: &'static str, subject: fn(&Value) -> bool) -> Mutant {
    let why = "the permission request failed with error";
    mutant(
        check,
        why,
        "the client rejects a permission request that it must accept",
        reject_if(PERMISSION_METHOD, -32603, subject),
    )
}

fn permission_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v2/tool-calls/121",
            "the client selected option \"nobodys\"",
            "the client selects an option that was not offered",
            change_result(PERMISSION_METHOD, |result| {
                result["outcome"]["optionId"] = json!("nobodys")
            }),
        ),
        mutant(
            "v2/tool-calls/121",
            "invalid outcome \"perhaps\"; expected `selected`, `cancelled` or a name starting with `_`",
            "the client's custom outcome does not start with `_`",
            change_result(PERMISSION_METHOD, |result| {
                result["outcome"]["outcome"] = json!("perhaps")
            }),
        ),
        subject_rejection_mutant("v2/tool-calls/127", |params| {
            params["sessionId"] == "acp-check-subagent"
        }),
        subject_rejection_mutant("v2/tool-calls/122", |params| params["subject"].is_null()),
        subject_rejection_mutant("v2/tool-calls/123", |params| {
            params["subject"]["type"] == "command"
        }),
        subject_rejection_mutant("v2/tool-calls/124", |params| {
            params["subject"]["type"] == "_acp-check/weather"
        }),
        subject_rejection_mutant("v2/tool-calls/125", |params| {
            params["options"][0]["kind"] == "_acp-check/maybe"
        }),
        subject_rejection_mutant("v2/tool-calls/126", |params| {
            params["subject"]["toolCall"]["toolCallId"] == "never-told-of"
        }),
    ]
}
