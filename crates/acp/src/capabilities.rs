//! What one side may ask of the other, for both sides: what is not offered is neither sent nor taken.

use acp_wire::Capability;
use acp_wire::v1::{ContentBlock, Implementation, McpCapabilities, McpServer, PromptCapabilities};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// Capabilities that are offered, by their paths in the method tables.
#[derive(Debug, Default)]
pub(crate) struct OfferedCapabilities(Map<String, Value>);

impl OfferedCapabilities {
    /// Adds a capability, and those that it is part of.
    pub(crate) fn add(&mut self, capability: Capability) {
        let mut object = &mut self.0;
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

    /// The capabilities as a type.
    pub(crate) fn read<T: DeserializeOwned + Default>(self) -> T {
        serde_json::from_value(Value::Object(self.0)).unwrap_or_default()
    }
}

/// The prompt capability that some of this content needs and the agent has not, by its name in version 1:
/// Prompt turn, "User Message".
pub(crate) fn missing_for_prompt(
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
pub(crate) fn missing_for_server(
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
pub(crate) fn this_library() -> Implementation {
    Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
}

/// The error for what the agent did not say it can do.
pub(crate) fn not_offered_by_agent(what: impl Into<String>) -> Error {
    Error::NotOffered {
        peer: "agent",
        what: what.into(),
    }
}
