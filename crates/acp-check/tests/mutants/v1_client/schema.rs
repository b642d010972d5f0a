//! Messages of the wrong shape.

use serde_json::{Value, json};

use crate::layer::{Mutant, answer, call, change, mutant};

/// Says a field in its calls that is not part of the specification.
fn asks_oddly(kills: &'static str, method: &'static str, seen_in: &'static str) -> Mutant {
    let change = call(method, |params| params["mood"] = json!("good"));
    let what = "it has a field of its own in what it asks";
    mutant(kills, "`params.mood` is not part of", what, change).seen_in(seen_in)
}

/// Says one in its answers.
fn answers_oddly(kills: &'static str, method: &'static str, seen_in: &'static str) -> Mutant {
    let change = answer(method, |result| result["mood"] = json!("good"));
    let what = "it has a field of its own in what it answers";
    mutant(kills, "`result.mood` is not part of", what, change).seen_in(seen_in)
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "v1/schema/101",
            "jsonrpc",
            "it says another version of JSON-RPC",
            change(|passing| {
                if passing.said
                    && let Some(message) = passing.message
                {
                    message["jsonrpc"] = json!("1.0");
                }
            }),
        )
        .seen_in("v1/initialization/101"),
        mutant(
            "v1/schema/102",
            "`error.message` is missing",
            "its errors are numbers",
            change(|passing| {
                if passing.said
                    && passing.answers
                    && let Some(error) = passing.message.as_mut().and_then(|m| m.get_mut("error"))
                    && let Value::Object(error) = error
                {
                    error.remove("message");
                }
            }),
        )
        .seen_in("v1/overview/105"),
    ];
    let old = "v1/session-setup/113";
    mutants.extend([
        asks_oddly("v1/schema/103", "initialize", "v1/initialization/101"),
        asks_oddly("v1/schema/104", "authenticate", "v1/authentication/102"),
        asks_oddly("v1/schema/105", "logout", old),
        asks_oddly("v1/schema/106", "session/new", "v1/session-setup/101"),
        asks_oddly("v1/schema/107", "session/load", old),
        asks_oddly("v1/schema/108", "session/list", old),
        asks_oddly("v1/schema/109", "session/delete", old),
        asks_oddly("v1/schema/110", "session/resume", old),
        asks_oddly("v1/schema/111", "session/close", old),
        asks_oddly("v1/schema/112", "session/set_mode", "v1/session-modes/101"),
        asks_oddly(
            "v1/schema/113",
            "session/set_config_option",
            "v1/session-config-options/101",
        ),
        asks_oddly("v1/schema/114", "session/prompt", "v1/prompt-turn/101"),
        answers_oddly(
            "v1/schema/115",
            "session/request_permission",
            "v1/tool-calls/121",
        ),
        answers_oddly("v1/schema/116", "fs/write_text_file", "v1/file-system/107"),
        answers_oddly("v1/schema/117", "fs/read_text_file", "v1/file-system/101"),
        answers_oddly("v1/schema/118", "terminal/create", "v1/terminals/105"),
        answers_oddly("v1/schema/119", "terminal/output", "v1/terminals/104"),
        answers_oddly("v1/schema/120", "terminal/release", "v1/terminals/105"),
        answers_oddly(
            "v1/schema/121",
            "terminal/wait_for_exit",
            "v1/terminals/105",
        ),
        answers_oddly("v1/schema/122", "terminal/kill", "v1/terminals/108"),
        answers_oddly("v1/schema/123", "elicitation/create", "v1/elicitation/101"),
        asks_oddly("v1/schema/124", "session/cancel", "v1/prompt-turn/108"),
        asks_oddly("v1/schema/125", "$/cancel_request", "v1/cancellation/104"),
    ]);
    mutants
}
