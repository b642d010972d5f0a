//! Translates `initialize`: the request from version 2 to version 1, and the response from version 1 to version 2.

use acp_wire::{RawObject, v1};

use super::super::json::{to_object, to_raw_value};
use super::super::setup;
use crate::dialect;

/// Translates the request to version 1, keeping the version 2 fields in case the agent supports only version 2.
pub(in crate::bridge) fn request_to_v1(mut params: RawObject) -> RawObject {
    let v2_capabilities = to_object(params.get("capabilities"));
    let auth = to_object(v2_capabilities.get("auth"));
    let auth = object! { "terminal": auth.has("terminal") };
    let none = object! {};
    let mut v1_capabilities = object! {
        "fs": object! { "readTextFile": false, "writeTextFile": false },
        "terminal": false,
        "session": object! { "configOptions": object! { "boolean": none } },
        "plan": none,
        "subagents": none,
        "auth": auth,
    };
    for (key, value) in v2_capabilities.iter() {
        if v1_capabilities.get(key).is_none() && value.get() != "null" {
            v1_capabilities.push(key.to_owned(), value.to_owned());
        }
    }
    // Agents report their own terminals to clients that set this.
    let mut meta = to_object(v1_capabilities.get("_meta"));
    meta.set("terminal_output", to_raw_value(&true));
    v1_capabilities.set("_meta", to_raw_value(&meta));

    params.set("protocolVersion", to_raw_value(&1));
    if let Some(info) = params.get("info").map(ToOwned::to_owned) {
        params.set("clientInfo", info);
    }
    params.set("clientCapabilities", to_raw_value(&v1_capabilities));
    params
}

/// Translates the response to version 2, and also returns the agent's capabilities in their original form.
pub(in crate::bridge) fn response_to_v2(
    mut result: RawObject,
) -> (RawObject, v1::AgentCapabilities) {
    let theirs = to_object(result.take("agentCapabilities").as_deref());
    let capabilities = dialect::agent_to_v2(&theirs, true);
    let info = to_object(result.take("agentInfo").as_deref());
    let mut named = object! {};
    for (key, absent) in [("name", "agent"), ("version", "unknown")] {
        let value = info.get(key).filter(|_| info.has(key));
        named.push(
            key.to_owned(),
            value.map_or_else(|| to_raw_value(absent), ToOwned::to_owned),
        );
    }
    for (key, value) in info.iter() {
        if named.get(key).is_none() {
            named.push(key.to_owned(), value.to_owned());
        }
    }
    result.set("protocolVersion", to_raw_value(&2));
    result.set("info", to_raw_value(&named));
    result.set("capabilities", to_raw_value(&capabilities));
    setup::auth_methods_to_v2(&mut result);
    (result, theirs.read().unwrap_or_default())
}
