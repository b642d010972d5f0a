//! Translates `initialize`: the request from version 1 to version 2, and the response from version 2 to version 1.

use acp_wire::{RawObject, v1};

use super::super::json::{to_object, to_raw_value};
use super::super::setup;
use crate::dialect;

/// The optional features that the version 1 client supports.
#[derive(Debug, Default)]
pub(in crate::bridge) struct V1ClientFeatures {
    pub(super) boolean_options: bool,
    pub(super) plans: bool,
    pub(super) notices: bool,
    pub(super) compaction: bool,
    pub(super) subagents: bool,
    terminal_auth: bool,
}

/// Translates the request to version 2, keeping the version 1 fields in case the agent supports only version 1. Also
/// returns the client's features.
pub(in crate::bridge) fn request_to_v2(mut params: RawObject) -> (RawObject, V1ClientFeatures) {
    let v1_capabilities = to_object(params.get("clientCapabilities"));
    let known: v1::ClientCapabilities = v1_capabilities.read().unwrap_or_default();
    let session = known.session.unwrap_or_default();
    let client = V1ClientFeatures {
        boolean_options: session.config_options.is_some_and(|o| o.boolean.is_some()),
        plans: known.plan.is_some(),
        notices: session.notices.is_some(),
        compaction: session.compaction.is_some(),
        subagents: known.subagents.is_some(),
        terminal_auth: known.auth.terminal,
    };

    let mut capabilities = object! {};
    if known.auth.terminal {
        let auth = object! { "terminal": object! {} };
        capabilities.push("auth".to_owned(), to_raw_value(&auth));
    }
    for (key, value) in v1_capabilities.iter() {
        let v1_only = matches!(
            key,
            "fs" | "terminal" | "session" | "plan" | "subagents" | "auth"
        );
        if !v1_only && value.get() != "null" {
            capabilities.push(key.to_owned(), value.to_owned());
        }
    }
    let mut info = to_object(params.get("clientInfo"));
    for (key, absent) in [("name", "client"), ("version", "unknown")] {
        if !info.has(key) {
            info.set(key, to_raw_value(absent));
        }
    }
    params.set("protocolVersion", to_raw_value(&2));
    params.set("info", to_raw_value(&info));
    params.set("capabilities", to_raw_value(&capabilities));
    (params, client)
}

/// Translates the response to version 1.
pub(in crate::bridge) fn response_to_v1(
    mut result: RawObject,
    client: &V1ClientFeatures,
) -> RawObject {
    let v2_capabilities = to_object(result.take("capabilities").as_deref());
    let capabilities = dialect::agent_from_v2(&v2_capabilities, result.has("authMethods"));
    result.set("protocolVersion", to_raw_value(&1));
    if let Some(info) = result.take("info") {
        result.set("agentInfo", info);
    }
    result.set("agentCapabilities", to_raw_value(&capabilities));
    setup::auth_methods_to_v1(&mut result, client.terminal_auth);
    result
}
