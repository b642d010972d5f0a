//! Agent mutants whose messages do not match the schema.

use serde_json::{Value, json};

use crate::mutants::layer::{
    Mutant, change_call, change_result, change_update, mutant, mutate_messages,
};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = envelope_mutants();
    for (check, seen_in, method, wrong, field) in RESPONSE_ROWS {
        let change = change_result(method, move |result| set_invalid_value(result, field));
        mutants.push(
            mutant(check, wrong, "the agent answers in another shape", change)
                .sent_in_check(seen_in),
        );
    }
    for (check, seen_in, method, wrong, field) in CALL_ROWS {
        let change = change_call(method, move |params| set_invalid_value(params, field));
        mutants.push(
            mutant(check, wrong, "the agent calls in another shape", change).sent_in_check(seen_in),
        );
    }
    for (check, seen_in, kind, wrong, field) in UPDATE_ROWS {
        let change = change_update(kind, move |update| set_invalid_value(update, field));
        mutants.push(
            mutant(check, wrong, "the agent reports in another shape", change)
                .sent_in_check(seen_in),
        );
    }
    mutants
}

/// Sets a field to a value that is invalid everywhere: a list that contains a number.
fn set_invalid_value(of: &mut Value, field: &str) {
    of[field] = json!([7]);
}

fn envelope_mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/schema/JSON-RPC",
            "jsonrpc",
            "the agent sends another version of JSON-RPC",
            mutate_messages(|passing| {
                if passing.said
                    && let Some(message) = passing.message
                {
                    message["jsonrpc"] = json!("1.0");
                }
            }),
        )
        .sent_in_check("v1/initialization/1"),
        mutant(
            "v1/schema/JSON-RPC",
            "params.update.sessionUpdate",
            "the agent sends updates of an unknown type",
            change_update("agent_thought_chunk", |update| {
                update["sessionUpdate"] = json!("agent_mood");
            }),
        )
        .sent_in_check("v1/prompt-turn/1"),
        mutant(
            "v1/schema/Error",
            "error.code",
            "the agent's error codes are names",
            mutate_messages(|passing| {
                if passing.said
                    && let Some(error) = passing.message.as_mut().and_then(|m| m.get_mut("error"))
                {
                    error["code"] = json!("not_found");
                }
            }),
        )
        .sent_in_check("v1/prompt-turn/10"),
    ]
}

/// A mutant of a response: the check that must catch it, the check in which the response is sent, the method, the
/// fault, and the field.
type AnswerRow = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const RESPONSE_ROWS: [AnswerRow; 12] = [
    (
        "v1/schema/AuthenticateResponse",
        "v1/authentication/4",
        "authenticate",
        "result.done",
        "done",
    ),
    (
        "v1/schema/LogoutResponse",
        "v1/authentication/5",
        "logout",
        "result.done",
        "done",
    ),
    (
        "v1/schema/InitializeResponse",
        "v1/initialization/1",
        "initialize",
        "result.agentInfo",
        "agentInfo",
    ),
    (
        "v1/schema/NewSessionResponse",
        "v1/session-modes/1",
        "session/new",
        "result.modes",
        "modes",
    ),
    (
        "v1/schema/LoadSessionResponse",
        "v1/session-config-options/18",
        "session/load",
        "result.modes",
        "modes",
    ),
    (
        "v1/schema/ListSessionsResponse",
        "v1/session-info/1",
        "session/list",
        "result.nextCursor",
        "nextCursor",
    ),
    (
        "v1/schema/DeleteSessionResponse",
        "v1/session-info/2",
        "session/delete",
        "result.done",
        "done",
    ),
    (
        "v1/schema/ResumeSessionResponse",
        "v1/session-config-options/19",
        "session/resume",
        "result.modes",
        "modes",
    ),
    (
        "v1/schema/CloseSessionResponse",
        "v1/prompt-turn/45",
        "session/close",
        "result.done",
        "done",
    ),
    (
        "v1/schema/SetSessionModeResponse",
        "v1/session-modes/3",
        "session/set_mode",
        "result.done",
        "done",
    ),
    (
        "v1/schema/SetSessionConfigOptionResponse",
        "v1/session-config-options/4",
        "session/set_config_option",
        "result.configOptions",
        "configOptions",
    ),
    (
        "v1/schema/PromptResponse",
        "v1/prompt-turn/1",
        "session/prompt",
        "result.stopReason",
        "stopReason",
    ),
];

const CALL_ROWS: [AnswerRow; 11] = [
    (
        "v1/schema/RequestPermissionRequest",
        "v1/tool-calls/34",
        "session/request_permission",
        "params.options",
        "options",
    ),
    (
        "v1/schema/WriteTextFileRequest",
        "v1/tool-calls/35",
        "fs/write_text_file",
        "params.content",
        "content",
    ),
    (
        "v1/schema/ReadTextFileRequest",
        "v1/file-system/4",
        "fs/read_text_file",
        "params.line",
        "line",
    ),
    (
        "v1/schema/CreateTerminalRequest",
        "v1/terminals/2",
        "terminal/create",
        "params.args",
        "args",
    ),
    (
        "v1/schema/TerminalOutputRequest",
        "v1/terminals/2",
        "terminal/output",
        "params.terminalId",
        "terminalId",
    ),
    (
        "v1/schema/ReleaseTerminalRequest",
        "v1/terminals/2",
        "terminal/release",
        "params.terminalId",
        "terminalId",
    ),
    (
        "v1/schema/WaitForTerminalExitRequest",
        "v1/terminals/2",
        "terminal/wait_for_exit",
        "params.terminalId",
        "terminalId",
    ),
    (
        "v1/schema/KillTerminalRequest",
        "v1/terminals/3",
        "terminal/kill",
        "params.terminalId",
        "terminalId",
    ),
    (
        "v1/schema/CreateElicitationRequest",
        "v1/elicitation/3",
        "elicitation/create",
        "params.message",
        "message",
    ),
    (
        "v1/schema/CompleteElicitationNotification",
        "v1/elicitation/4",
        "elicitation/complete",
        "params.elicitationId",
        "elicitationId",
    ),
    (
        "v1/schema/CancelRequestNotification",
        "v1/prompt-turn/34",
        "$/cancel_request",
        "params.requestId",
        "requestId",
    ),
];

const UPDATE_ROWS: [AnswerRow; 11] = [
    (
        "v1/schema/SessionUpdate.user_message_chunk",
        "v1/session-config-options/18",
        "user_message_chunk",
        "params.update.content",
        "content",
    ),
    (
        "v1/schema/SessionUpdate.agent_message_chunk",
        "v1/prompt-turn/1",
        "agent_message_chunk",
        "params.update.content",
        "content",
    ),
    (
        "v1/schema/SessionUpdate.agent_thought_chunk",
        "v1/prompt-turn/1",
        "agent_thought_chunk",
        "params.update.content",
        "content",
    ),
    (
        "v1/schema/SessionUpdate.tool_call",
        "v1/tool-calls/1",
        "tool_call",
        "params.update.title",
        "title",
    ),
    (
        "v1/schema/SessionUpdate.tool_call_update",
        "v1/tool-calls/1",
        "tool_call_update",
        "params.update.status",
        "status",
    ),
    (
        "v1/schema/SessionUpdate.plan",
        "v1/agent-plan/1",
        "plan",
        "params.update.entries",
        "entries",
    ),
    (
        "v1/schema/SessionUpdate.available_commands_update",
        "v1/slash-commands/1",
        "available_commands_update",
        "params.update.availableCommands",
        "availableCommands",
    ),
    (
        "v1/schema/SessionUpdate.current_mode_update",
        "v1/session-modes/5",
        "current_mode_update",
        "params.update.currentModeId",
        "currentModeId",
    ),
    (
        "v1/schema/SessionUpdate.config_option_update",
        "v1/session-config-options/9",
        "config_option_update",
        "params.update.configOptions",
        "configOptions",
    ),
    (
        "v1/schema/SessionUpdate.session_info_update",
        "v1/session-info/1",
        "session_info_update",
        "params.update.title",
        "title",
    ),
    (
        "v1/schema/SessionUpdate.usage_update",
        "v1/usage/1",
        "usage_update",
        "params.update.used",
        "used",
    ),
];
