//! What one side may ask of the other, for both sides: what is not offered is neither sent nor taken.

use acp_wire::v1::{ContentBlock, Implementation, McpCapabilities, McpServer, PromptCapabilities};

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
