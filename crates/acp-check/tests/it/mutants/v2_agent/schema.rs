//! Agent mutants whose messages do not match the schema.

use acp_check::SchemaVersion;
use serde_json::{Value, json};

use crate::mutants::changes::{find_shape_id, set_field};
use crate::mutants::layer::{
    Mutant, Mutation, change_call, change_result, change_update, mutant, mutate_messages,
};

type AgentMutationFn = Box<dyn Fn() -> Mutation + Send + Sync>;

/// Puts invalid metadata in `method` responses. For results that have no required fields.
fn invalidate_response_meta(method: &'static str) -> AgentMutationFn {
    Box::new(change_result(method, |result| {
        set_field(result, "_meta", Some(json!(5)))
    }))
}

/// Removes a field from every `method` response.
fn drop_response_field(method: &'static str, field: &'static str) -> AgentMutationFn {
    Box::new(change_result(method, move |result| {
        set_field(result, field, None)
    }))
}

/// Removes a field from every `method` call.
fn drop_call_field(method: &'static str, field: &'static str) -> AgentMutationFn {
    Box::new(change_call(method, move |params| {
        set_field(params, field, None)
    }))
}

const INVALID_META: &str = "`result._meta` must be an object";

pub(crate) fn mutants() -> Vec<Mutant> {
    let checks = acp_check::agent_checks(SchemaVersion::V2);
    let messages = [
        (
            "JSON-RPC",
            "jsonrpc",
            "v2/initialization/1",
            Box::new(mutate_messages(set_old_jsonrpc_version)) as AgentMutationFn,
        ),
        (
            "Error",
            "`error.message` is missing",
            "v2/overview/1",
            Box::new(mutate_messages(remove_error_message)),
        ),
        (
            "RequestPermissionRequest",
            "`params.title` is missing",
            "v2/tool-calls/41",
            drop_call_field("session/request_permission", "title"),
        ),
        (
            "CreateElicitationRequest",
            "`params.message` is missing",
            "v2/elicitation/1",
            drop_call_field("elicitation/create", "message"),
        ),
        (
            "CompleteElicitationNotification",
            "`params.elicitationId` is missing",
            "v2/elicitation/2",
            drop_call_field("elicitation/complete", "elicitationId"),
        ),
        (
            "CancelRequestNotification",
            "`params.requestId` is missing",
            "v2/prompt-lifecycle/37",
            drop_call_field("$/cancel_request", "requestId"),
        ),
        (
            "InitializeResponse",
            "`result.info` is missing",
            "v2/initialization/1",
            drop_response_field("initialize", "info"),
        ),
        (
            "LoginAuthResponse",
            INVALID_META,
            "v2/authentication/2",
            invalidate_response_meta("auth/login"),
        ),
        (
            "LogoutAuthResponse",
            INVALID_META,
            "v2/authentication/2",
            invalidate_response_meta("auth/logout"),
        ),
        (
            "NewSessionResponse",
            "`result.sessionId` is missing",
            "v2/session-setup/1",
            drop_response_field("session/new", "sessionId"),
        ),
        (
            "ResumeSessionResponse",
            INVALID_META,
            "v2/session-setup/4",
            invalidate_response_meta("session/resume"),
        ),
        (
            "ListSessionsResponse",
            "`result.sessions` is missing",
            "v2/session-list/1",
            drop_response_field("session/list", "sessions"),
        ),
        (
            "DeleteSessionResponse",
            INVALID_META,
            "v2/session-list/5",
            invalidate_response_meta("session/delete"),
        ),
        (
            "CloseSessionResponse",
            INVALID_META,
            "v2/session-setup/6",
            invalidate_response_meta("session/close"),
        ),
        (
            "SetSessionConfigOptionResponse",
            "`result.configOptions` is missing",
            "v2/session-config-options/4",
            drop_response_field("session/set_config_option", "configOptions"),
        ),
        (
            "PromptResponse",
            INVALID_META,
            "v2/prompt-lifecycle/1",
            invalidate_response_meta("session/prompt"),
        ),
    ];
    let messages = messages.into_iter().map(|(shape, why, seen_in, change)| {
        mutant(
            find_shape_id(&checks, shape, None),
            why,
            "a message has the wrong shape",
            change,
        )
        .sent_in_check(seen_in)
    });
    let updates = [
        ("user_message_chunk", "messageId", "v2/session-setup/21"),
        ("user_message", "messageId", "v2/prompt-lifecycle/6"),
        ("agent_message_chunk", "messageId", "v2/prompt-lifecycle/3"),
        ("agent_message", "messageId", "v2/prompt-lifecycle/3"),
        ("agent_thought_chunk", "content", "v2/prompt-lifecycle/3"),
        ("agent_thought", "messageId", "v2/prompt-lifecycle/3"),
        ("state_update", "state", "v2/prompt-lifecycle/3"),
        ("tool_call_content_chunk", "content", "v2/tool-calls/3"),
        ("tool_call_update", "toolCallId", "v2/tool-calls/1"),
        ("terminal_update", "terminalId", "v2/tool-calls/4"),
        ("terminal_output_chunk", "data", "v2/tool-calls/4"),
        ("plan_update", "plan", "v2/agent-plan/1"),
        (
            "available_commands_update",
            "availableCommands",
            "v2/prompt-lifecycle/3",
        ),
        (
            "config_option_update",
            "configOptions",
            "v2/prompt-lifecycle/3",
        ),
        ("usage_update", "used", "v2/prompt-lifecycle/3"),
    ];
    let updates = updates.into_iter().map(|(kind, field, seen_in)| {
        let why = format!("`params.update.{field}` is missing").leak();
        let change = change_update(kind, move |update| set_field(update, field, None));
        let check = find_shape_id(&checks, "SessionUpdate", Some(kind));
        mutant(check, why, "an update has the wrong shape", change).sent_in_check(seen_in)
    });
    let info = find_shape_id(&checks, "SessionUpdate", Some("session_info_update"));
    let info = mutant(
        info,
        "`params.update.title` must be",
        "an update has the wrong shape",
        change_update("session_info_update", |update| update["title"] = json!(5)),
    );
    messages
        .chain(updates)
        .chain([info.sent_in_check("v2/prompt-lifecycle/3")])
        .collect()
}

/// Sets the JSON-RPC version of an outgoing message to 1.0.
pub(crate) fn set_old_jsonrpc_version(passing: &mut crate::mutants::layer::InterceptedMessage<'_>) {
    if let Some(message) = passing.message
        && passing.said
    {
        message["jsonrpc"] = json!("1.0");
    }
}

/// Removes the `message` field from an error response.
pub(crate) fn remove_error_message(passing: &mut crate::mutants::layer::InterceptedMessage<'_>) {
    if let Some(message) = passing.message
        && passing.said
        && message["error"].is_object()
    {
        set_field(&mut message["error"], "message", None::<Value>);
    }
}
