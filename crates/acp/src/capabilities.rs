//! Capability checks for both sides. Unsupported methods are neither sent nor accepted.

use acp_wire::v1::{
    self, ContentBlock, Implementation, McpCapabilities, McpServer, PromptCapabilities,
};
use acp_wire::{Capability, Sender};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// Returns the capabilities to report in `initialize`: those that `sender`, the other side, needs for the optional
/// version 1 methods that this side implements.
pub(crate) fn offered_capabilities<T: DeserializeOwned + Default>(
    sender: Sender,
    is_offered: impl Fn(&str) -> bool,
) -> T {
    let mut all = Map::new();
    let methods = v1::METHODS.iter().filter(|method| method.sender == sender);
    for method in methods {
        if let Some(capability) = method.capability
            && is_offered(method.name)
        {
            insert_capability(&mut all, capability);
        }
    }
    serde_json::from_value(Value::Object(all)).unwrap_or_default()
}

/// Adds a capability, and the objects around it that do not exist yet.
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

/// Returns the version 1 name of the prompt capability that this content requires and the agent lacks, if any. See the
/// specification's page "Prompt Turn", "User Message".
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

/// Returns the MCP capability that this server requires and the agent lacks, if any. In version 1, every agent supports
/// `stdio`. See the specification's page "Session Setup", "MCP Servers".
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

/// Returns the name and version of this library. They are reported for programs that do not set their own, because
/// version 2 requires both.
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
