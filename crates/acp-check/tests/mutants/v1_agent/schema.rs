//! Messages of the wrong shape.

use serde_json::{Value, json};

use crate::layer::{Mutant, answer, call, change, mutant, update};

pub(crate) fn mutants() -> Vec<Mutant> {
    let mut mutants = envelopes();
    for (check, seen_in, method, wrong, field) in ANSWERS {
        let change = answer(method, move |result| set(result, field));
        mutants.push(mutant(check, wrong, "it answers in another shape", change).seen_in(seen_in));
    }
    for (check, seen_in, method, wrong, field) in CALLS {
        let change = call(method, move |params| set(params, field));
        mutants.push(mutant(check, wrong, "it calls in another shape", change).seen_in(seen_in));
    }
    for (check, seen_in, kind, wrong, field) in UPDATES {
        let change = update(kind, move |update| set(update, field));
        mutants.push(mutant(check, wrong, "it reports in another shape", change).seen_in(seen_in));
    }
    mutants
}

/// Gives a field a value that none has: a list of a number.
fn set(of: &mut Value, field: &str) {
    of[field] = json!([7]);
}

fn envelopes() -> Vec<Mutant> {
    vec![
        mutant(
            "v1/schema/1",
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
        .seen_in("v1/initialization/1"),
        mutant(
            "v1/schema/1",
            "params.update.sessionUpdate",
            "it sends updates of a kind that there is not",
            update("agent_thought_chunk", |update| {
                update["sessionUpdate"] = json!("agent_mood");
            }),
        )
        .seen_in("v1/prompt-turn/1"),
        mutant(
            "v1/schema/2",
            "error.code",
            "its errors have names for codes",
            change(|passing| {
                if passing.said
                    && let Some(error) = passing.message.as_mut().and_then(|m| m.get_mut("error"))
                {
                    error["code"] = json!("not_found");
                }
            }),
        )
        .seen_in("v1/prompt-turn/10"),
    ]
}

/// The check, the one in which the message comes, its method or kind, the place that is told, and the field.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const ANSWERS: [Row; 12] = [
    (
        "v1/schema/4",
        "v1/authentication/4",
        "authenticate",
        "result.done",
        "done",
    ),
    (
        "v1/schema/5",
        "v1/authentication/5",
        "logout",
        "result.done",
        "done",
    ),
    (
        "v1/schema/3",
        "v1/initialization/1",
        "initialize",
        "result.agentInfo",
        "agentInfo",
    ),
    (
        "v1/schema/6",
        "v1/session-modes/1",
        "session/new",
        "result.modes",
        "modes",
    ),
    (
        "v1/schema/7",
        "v1/session-config-options/18",
        "session/load",
        "result.modes",
        "modes",
    ),
    (
        "v1/schema/8",
        "v1/session-info/1",
        "session/list",
        "result.nextCursor",
        "nextCursor",
    ),
    (
        "v1/schema/9",
        "v1/session-info/2",
        "session/delete",
        "result.done",
        "done",
    ),
    (
        "v1/schema/10",
        "v1/session-config-options/19",
        "session/resume",
        "result.modes",
        "modes",
    ),
    (
        "v1/schema/11",
        "v1/prompt-turn/45",
        "session/close",
        "result.done",
        "done",
    ),
    (
        "v1/schema/12",
        "v1/session-modes/3",
        "session/set_mode",
        "result.done",
        "done",
    ),
    (
        "v1/schema/13",
        "v1/session-config-options/4",
        "session/set_config_option",
        "result.configOptions",
        "configOptions",
    ),
    (
        "v1/schema/14",
        "v1/prompt-turn/1",
        "session/prompt",
        "result.stopReason",
        "stopReason",
    ),
];

const CALLS: [Row; 11] = [
    (
        "v1/schema/15",
        "v1/tool-calls/34",
        "session/request_permission",
        "params.options",
        "options",
    ),
    (
        "v1/schema/16",
        "v1/tool-calls/35",
        "fs/write_text_file",
        "params.content",
        "content",
    ),
    (
        "v1/schema/17",
        "v1/file-system/4",
        "fs/read_text_file",
        "params.line",
        "line",
    ),
    (
        "v1/schema/18",
        "v1/terminals/2",
        "terminal/create",
        "params.args",
        "args",
    ),
    (
        "v1/schema/19",
        "v1/terminals/2",
        "terminal/output",
        "params.terminalId",
        "terminalId",
    ),
    (
        "v1/schema/20",
        "v1/terminals/2",
        "terminal/release",
        "params.terminalId",
        "terminalId",
    ),
    (
        "v1/schema/21",
        "v1/terminals/2",
        "terminal/wait_for_exit",
        "params.terminalId",
        "terminalId",
    ),
    (
        "v1/schema/22",
        "v1/terminals/3",
        "terminal/kill",
        "params.terminalId",
        "terminalId",
    ),
    (
        "v1/schema/23",
        "v1/elicitation/3",
        "elicitation/create",
        "params.message",
        "message",
    ),
    (
        "v1/schema/24",
        "v1/elicitation/4",
        "elicitation/complete",
        "params.elicitationId",
        "elicitationId",
    ),
    (
        "v1/schema/25",
        "v1/prompt-turn/34",
        "$/cancel_request",
        "params.requestId",
        "requestId",
    ),
];

const UPDATES: [Row; 11] = [
    (
        "v1/schema/26",
        "v1/session-config-options/18",
        "user_message_chunk",
        "params.update.content",
        "content",
    ),
    (
        "v1/schema/27",
        "v1/prompt-turn/1",
        "agent_message_chunk",
        "params.update.content",
        "content",
    ),
    (
        "v1/schema/28",
        "v1/prompt-turn/1",
        "agent_thought_chunk",
        "params.update.content",
        "content",
    ),
    (
        "v1/schema/29",
        "v1/tool-calls/1",
        "tool_call",
        "params.update.title",
        "title",
    ),
    (
        "v1/schema/30",
        "v1/tool-calls/1",
        "tool_call_update",
        "params.update.status",
        "status",
    ),
    (
        "v1/schema/31",
        "v1/agent-plan/1",
        "plan",
        "params.update.entries",
        "entries",
    ),
    (
        "v1/schema/32",
        "v1/slash-commands/1",
        "available_commands_update",
        "params.update.availableCommands",
        "availableCommands",
    ),
    (
        "v1/schema/33",
        "v1/session-modes/5",
        "current_mode_update",
        "params.update.currentModeId",
        "currentModeId",
    ),
    (
        "v1/schema/34",
        "v1/session-config-options/9",
        "config_option_update",
        "params.update.configOptions",
        "configOptions",
    ),
    (
        "v1/schema/35",
        "v1/session-info/1",
        "session_info_update",
        "params.update.title",
        "title",
    ),
    (
        "v1/schema/36",
        "v1/usage/1",
        "usage_update",
        "params.update.used",
        "used",
    ),
];
