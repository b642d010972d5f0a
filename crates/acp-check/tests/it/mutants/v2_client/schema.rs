//! Client mutants whose messages do not match the schema.

use acp_check::SchemaVersion;
use serde_json::json;

use crate::mutants::changes::{find_shape_id, set_field};
use crate::mutants::layer::{
    Mutant, Mutation, change_call, change_result, mutant, mutate_messages,
};
use crate::mutants::v2_agent::schema::{remove_error_message, set_old_jsonrpc_version};

type ClientMutationFn = Box<dyn Fn() -> Mutation + Send + Sync>;

/// Removes a field from every `method` call.
fn drop_call_field(method: &'static str, field: &'static str) -> ClientMutationFn {
    Box::new(change_call(method, move |params| {
        set_field(params, field, None)
    }))
}

/// Puts invalid metadata in `method` calls. For params that have no required fields.
fn invalidate_call_meta(method: &'static str) -> ClientMutationFn {
    Box::new(change_call(method, |params| {
        set_field(params, "_meta", Some(json!(5)))
    }))
}

const INVALID_META: &str = "`params._meta` must be an object";
const MISSING_SESSION_ID: &str = "`params.sessionId` is missing";
const SESSION_ID_CHECK: &str = "v2/session-setup/106";

pub(crate) fn mutants() -> Vec<Mutant> {
    let checks = acp_check::client_checks(SchemaVersion::V2);
    let outcome: ClientMutationFn =
        Box::new(change_result("session/request_permission", |result| {
            set_field(result, "outcome", None);
        }));
    let action: ClientMutationFn = Box::new(change_result("elicitation/create", |result| {
        set_field(result, "action", None)
    }));
    let messages = [
        (
            "JSON-RPC",
            "jsonrpc",
            "v2/initialization/101",
            Box::new(mutate_messages(set_old_jsonrpc_version)) as ClientMutationFn,
        ),
        (
            "Error",
            "`error.message` is missing",
            "v2/overview/101",
            Box::new(mutate_messages(remove_error_message)),
        ),
        (
            "InitializeRequest",
            "`params.info` is missing",
            "v2/initialization/101",
            drop_call_field("initialize", "info"),
        ),
        (
            "LoginAuthRequest",
            "`params.methodId` is missing",
            "v2/authentication/103",
            drop_call_field("auth/login", "methodId"),
        ),
        (
            "LogoutAuthRequest",
            INVALID_META,
            SESSION_ID_CHECK,
            invalidate_call_meta("auth/logout"),
        ),
        (
            "NewSessionRequest",
            "`params.cwd` is missing",
            "v2/session-setup/101",
            drop_call_field("session/new", "cwd"),
        ),
        (
            "ResumeSessionRequest",
            "`params.cwd` is missing",
            SESSION_ID_CHECK,
            drop_call_field("session/resume", "cwd"),
        ),
        (
            "ListSessionsRequest",
            INVALID_META,
            SESSION_ID_CHECK,
            invalidate_call_meta("session/list"),
        ),
        (
            "DeleteSessionRequest",
            MISSING_SESSION_ID,
            SESSION_ID_CHECK,
            drop_call_field("session/delete", "sessionId"),
        ),
        (
            "CloseSessionRequest",
            MISSING_SESSION_ID,
            SESSION_ID_CHECK,
            drop_call_field("session/close", "sessionId"),
        ),
        (
            "SetSessionConfigOptionRequest",
            "`params.configId` is missing",
            SESSION_ID_CHECK,
            drop_call_field("session/set_config_option", "configId"),
        ),
        (
            "PromptRequest",
            "`params.prompt` is missing",
            "v2/overview/101",
            drop_call_field("session/prompt", "prompt"),
        ),
        (
            "CancelNotification",
            MISSING_SESSION_ID,
            "v2/prompt-lifecycle/131",
            drop_call_field("session/cancel", "sessionId"),
        ),
        (
            "CancelRequestNotification",
            "`params.requestId` is missing",
            SESSION_ID_CHECK,
            drop_call_field("$/cancel_request", "requestId"),
        ),
        (
            "RequestPermissionResponse",
            "`result.outcome` is missing",
            "v2/tool-calls/121",
            outcome,
        ),
        (
            "CreateElicitationResponse",
            "`result.action` is missing",
            "v2/elicitation/101",
            action,
        ),
    ];
    let mutants = messages.into_iter().map(|(shape, why, seen_in, change)| {
        mutant(
            find_shape_id(&checks, shape, None),
            why,
            "a message has the wrong shape",
            change,
        )
        .sent_in_check(seen_in)
    });
    mutants.collect()
}
