//! What one side may ask of the other, for both sides: what is not offered is neither sent nor taken.

use acp_wire::v1::{
    self, ContentBlock, Implementation, McpCapabilities, McpServer, PromptCapabilities,
};
use acp_wire::{Capability, Sender};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// The capabilities that a side tells of itself: those that allow the methods of version 1 which it offers. `sender` is
/// the other side.
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

/// Adds a capability, and those that it is part of.
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

/// The prompt capability that some of this content needs and the agent has not, by its name in version 1:
/// Prompt turn, "User Message".
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

/// The MCP capability that a server needs and the agent has not: Session setup, "MCP Servers". `stdio` is
/// taken for granted in version 1.
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

/// Who speaks, where its author does not say and version 2 must know.
pub(crate) fn library_implementation() -> Implementation {
    Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
}

/// The error for what the agent did not say it can do.
pub(crate) fn agent_capability_error(what: impl Into<String>) -> Error {
    Error::Unsupported {
        peer: "agent",
        what: what.into(),
    }
}
