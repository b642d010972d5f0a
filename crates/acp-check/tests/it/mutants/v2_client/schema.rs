//! Client mutants whose messages do not match the schema.

use acp_check::SchemaVersion;
use serde_json::json;

use crate::mutants::changes::{set, shape_id};
use crate::mutants::layer::{Mutant, Mutation, answer, call, change, mutant};
use crate::mutants::v2_agent::schema::{mute, old};

type ClientMutationFn = Box<dyn Fn() -> Mutation + Send + Sync>;

/// Removes a field from the calls of `method`.
fn lacks(method: &'static str, field: &'static str) -> ClientMutationFn {
    Box::new(call(method, move |params| set(params, field, None)))
}

/// Gives the calls of `method` invalid metadata, for params without required fields.
fn strange(method: &'static str) -> ClientMutationFn {
    Box::new(call(method, |params| set(params, "_meta", Some(json!(5)))))
}

const META: &str = "`params._meta` must be an object";
const SESSION: &str = "`params.sessionId` is missing";
const LATER: &str = "v2/session-setup/106";

pub(crate) fn mutants() -> Vec<Mutant> {
    let checks = acp_check::client_checks(SchemaVersion::V2);
    let outcome: ClientMutationFn = Box::new(answer("session/request_permission", |result| {
        set(result, "outcome", None);
    }));
    let action: ClientMutationFn = Box::new(answer("elicitation/create", |result| {
        set(result, "action", None)
    }));
    let messages = [
        (
            "JSON-RPC",
            "jsonrpc",
            "v2/initialization/101",
            Box::new(change(old)) as ClientMutationFn,
        ),
        (
            "Error",
            "`error.message` is missing",
            "v2/overview/101",
            Box::new(change(mute)),
        ),
        (
            "InitializeRequest",
            "`params.info` is missing",
            "v2/initialization/101",
            lacks("initialize", "info"),
        ),
        (
            "LoginAuthRequest",
            "`params.methodId` is missing",
            "v2/authentication/103",
            lacks("auth/login", "methodId"),
        ),
        ("LogoutAuthRequest", META, LATER, strange("auth/logout")),
        (
            "NewSessionRequest",
            "`params.cwd` is missing",
            "v2/session-setup/101",
            lacks("session/new", "cwd"),
        ),
        (
            "ResumeSessionRequest",
            "`params.cwd` is missing",
            LATER,
            lacks("session/resume", "cwd"),
        ),
        ("ListSessionsRequest", META, LATER, strange("session/list")),
        (
            "DeleteSessionRequest",
            SESSION,
            LATER,
            lacks("session/delete", "sessionId"),
        ),
        (
            "CloseSessionRequest",
            SESSION,
            LATER,
            lacks("session/close", "sessionId"),
        ),
        (
            "SetSessionConfigOptionRequest",
            "`params.configId` is missing",
            LATER,
            lacks("session/set_config_option", "configId"),
        ),
        (
            "PromptRequest",
            "`params.prompt` is missing",
            "v2/overview/101",
            lacks("session/prompt", "prompt"),
        ),
        (
            "CancelNotification",
            SESSION,
            "v2/prompt-lifecycle/131",
            lacks("session/cancel", "sessionId"),
        ),
        (
            "CancelRequestNotification",
            "`params.requestId` is missing",
            LATER,
            lacks("$/cancel_request", "requestId"),
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
            shape_id(&checks, shape, None),
            why,
            "a message has the wrong shape",
            change,
        )
        .seen_in(seen_in)
    });
    mutants.collect()
}
