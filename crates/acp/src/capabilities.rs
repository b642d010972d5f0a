//! Checks capabilities on both sides, so that unsupported methods are neither sent nor accepted.

use acp_wire::v1::{ContentBlock, Implementation, McpCapabilities, McpServer, PromptCapabilities};
use acp_wire::{Capability, Method};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// Returns the capabilities for `initialize`, derived from the methods that a side offers.
pub(crate) fn implemented_capabilities<T: DeserializeOwned + Default>(offered: &[&Method]) -> T {
    let mut all = Map::new();
    for capability in offered.iter().filter_map(|method| method.capability) {
        insert_capability(&mut all, capability);
    }
    serde_json::from_value(Value::Object(all)).unwrap_or_default()
}

/// Adds a capability, creating its enclosing objects if needed.
fn insert_capability(capabilities: &mut Map<String, Value>, capability: Capability) {
    let mut object = capabilities;
    let mut names = capability.path.split('.').peekable();
    while let Some(name) = names.next() {
        let is_flag = capability.is_flag && names.peek().is_none();
        let value = object.entry(name).or_insert_with(|| match is_flag {
            true => Value::Bool(true),
            false => Value::Object(Map::new()),
        });
        let Value::Object(inner) = value else { return };
        object = inner;
    }
}

/// Checks that a peer with the given capabilities supports a method. A method outside the table needs no capability.
///
/// # Errors
/// Returns the name of the missing capability.
pub(crate) fn check_offered(
    capabilities: &Value,
    method: Option<&'static Method>,
) -> Result<(), &'static str> {
    match method {
        Some(method) if !method.is_supported(capabilities) => Err(method
            .capability
            .map_or(method.name, |capability| capability.path)),
        _ => Ok(()),
    }
}

/// Returns the prompt capability that the content requires but the agent lacks, if any, by its version 1 name. See
/// "User Message" on the specification's page "Prompt Turn".
pub(crate) fn missing_prompt_capability(
    takes: &PromptCapabilities,
    content: &[ContentBlock],
) -> Option<&'static str> {
    content.iter().find_map(|block| match block {
        ContentBlock::Image(_) if !takes.image => Some("image"),
        ContentBlock::Audio(_) if !takes.audio => Some("audio"),
        ContentBlock::Resource(_) if !takes.embedded_context => Some("embeddedContext"),
        _ => None,
    })
}

/// Returns the MCP capability that a server requires and the agent lacks, if any. In version 1, every agent supports
/// `stdio`. See "MCP Servers" on the specification's page "Session Setup".
pub(crate) fn missing_mcp_capability(
    connects: &McpCapabilities,
    stdio: bool,
    server: &McpServer,
) -> Option<&'static str> {
    match server {
        McpServer::Http(_) if !connects.http => Some("http"),
        McpServer::Sse(_) if !connects.sse => Some("sse"),
        McpServer::Stdio(_) if !stdio => Some("stdio"),
        _ => None,
    }
}

/// Returns this library's name and version. Programs that do not set their own send these, because version 2 requires a
/// name and a version.
pub(crate) fn library_implementation() -> Implementation {
    Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
}

/// Creates the error for a capability that the agent does not support.
pub(crate) fn agent_capability_error(what: impl Into<String>) -> Error {
    Error::Unsupported {
        peer: "agent",
        what: what.into(),
    }
}
