//! Client mutants whose messages do not match the schema.

use serde_json::{Value, json};

use crate::mutants::layer::{Mutant, change_call, change_result, mutant, mutate_messages};

/// Returns a mutant that adds a custom field to every `method` request.
fn request_with_unknown_field(
    kills: &'static str,
    method: &'static str,
    seen_in: &'static str,
) -> Mutant {
    let change = change_call(method, |params| params["mood"] = json!("good"));
    let what = "the client's request has a custom field";
    mutant(
        kills,
        "`params.mood` is not in the specification; custom fields belong in `_meta`",
        what,
        change,
    )
    .sent_in_check(seen_in)
}

/// Returns a mutant that adds a custom field to every `method` response.
fn response_with_unknown_field(
    kills: &'static str,
    method: &'static str,
    seen_in: &'static str,
) -> Mutant {
    let change = change_result(method, |result| result["mood"] = json!("good"));
    let what = "the client's response has a custom field";
    mutant(
        kills,
        "`result.mood` is not in the specification; custom fields belong in `_meta`",
        what,
        change,
    )
    .sent_in_check(seen_in)
}

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = vec![
        mutant(
            "v1/schema/JSON-RPC",
            "jsonrpc",
            "the client sends another version of JSON-RPC",
            mutate_messages(|passing| {
                if passing.said
                    && let Some(message) = passing.message
                {
                    message["jsonrpc"] = json!("1.0");
                }
            }),
        )
        .sent_in_check("v1/initialization/101"),
        mutant(
            "v1/schema/Error",
            "`error.message` is missing",
            "the client's errors are numbers",
            mutate_messages(|passing| {
                if passing.said
                    && passing.answers
                    && let Some(error) = passing.message.as_mut().and_then(|m| m.get_mut("error"))
                    && let Value::Object(error) = error
                {
                    error.remove("message");
                }
            }),
        )
        .sent_in_check("v1/overview/105"),
    ];
    let old = "v1/session-setup/113";
    mutants.extend([
        request_with_unknown_field(
            "v1/schema/InitializeRequest",
            "initialize",
            "v1/initialization/101",
        ),
        request_with_unknown_field(
            "v1/schema/AuthenticateRequest",
            "authenticate",
            "v1/authentication/102",
        ),
        request_with_unknown_field("v1/schema/LogoutRequest", "logout", old),
        request_with_unknown_field(
            "v1/schema/NewSessionRequest",
            "session/new",
            "v1/session-setup/101",
        ),
        request_with_unknown_field("v1/schema/LoadSessionRequest", "session/load", old),
        request_with_unknown_field("v1/schema/ListSessionsRequest", "session/list", old),
        request_with_unknown_field("v1/schema/DeleteSessionRequest", "session/delete", old),
        request_with_unknown_field("v1/schema/ResumeSessionRequest", "session/resume", old),
        request_with_unknown_field("v1/schema/CloseSessionRequest", "session/close", old),
        request_with_unknown_field(
            "v1/schema/SetSessionModeRequest",
            "session/set_mode",
            "v1/session-modes/101",
        ),
        request_with_unknown_field(
            "v1/schema/SetSessionConfigOptionRequest",
            "session/set_config_option",
            "v1/session-config-options/101",
        ),
        request_with_unknown_field(
            "v1/schema/PromptRequest",
            "session/prompt",
            "v1/prompt-turn/101",
        ),
        response_with_unknown_field(
            "v1/schema/RequestPermissionResponse",
            "session/request_permission",
            "v1/tool-calls/121",
        ),
        response_with_unknown_field(
            "v1/schema/WriteTextFileResponse",
            "fs/write_text_file",
            "v1/file-system/107",
        ),
        response_with_unknown_field(
            "v1/schema/ReadTextFileResponse",
            "fs/read_text_file",
            "v1/file-system/101",
        ),
        response_with_unknown_field(
            "v1/schema/CreateTerminalResponse",
            "terminal/create",
            "v1/terminals/105",
        ),
        response_with_unknown_field(
            "v1/schema/TerminalOutputResponse",
            "terminal/output",
            "v1/terminals/104",
        ),
        response_with_unknown_field(
            "v1/schema/ReleaseTerminalResponse",
            "terminal/release",
            "v1/terminals/105",
        ),
        response_with_unknown_field(
            "v1/schema/WaitForTerminalExitResponse",
            "terminal/wait_for_exit",
            "v1/terminals/105",
        ),
        response_with_unknown_field(
            "v1/schema/KillTerminalResponse",
            "terminal/kill",
            "v1/terminals/108",
        ),
        response_with_unknown_field(
            "v1/schema/CreateElicitationResponse",
            "elicitation/create",
            "v1/elicitation/101",
        ),
        request_with_unknown_field(
            "v1/schema/CancelNotification",
            "session/cancel",
            "v1/prompt-turn/108",
        ),
        request_with_unknown_field(
            "v1/schema/CancelRequestNotification",
            "$/cancel_request",
            "v1/cancellation/104",
        ),
    ]);
    mutants
}
