//! Tools of a client's own, for the agents of the
//! [Agent Client Protocol](https://agentclientprotocol.com).
//!
//! An editor or another client may have tools that only it can run: ask the person, show something,
//! look into an unsaved buffer. Agents take tools from MCP servers, and every agent can start one that
//! speaks on stdin and stdout. So a [`ToolServer`] runs in the client's process, and what the agent
//! starts is a small proxy (`acp mcp-proxy`) that passes the bytes on to it.
//!
//! A few tools are closures ([`ToolServer::tools`]). The arguments of a call are a type, from which its JSON Schema is
//! derived; arguments that do not fit are answered so that the model can mend them.
//!
//! ```
//! use acp::Client;
//! use acp::v1::McpServer;
//! use acp_mcp::rmcp::schemars::{self, JsonSchema};
//! use acp_mcp::{NoArguments, ProxyCommand, ToolServer};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Show {
//!     /// The file to show, as an absolute path
//!     path: String,
//!     /// The line to start at
//!     line: Option<u32>,
//! }
//!
//! struct Editor {
//!     tools: ToolServer,
//! }
//!
//! impl Client for Editor {
//!     type State = ();
//!
//!     fn mcp_servers(&self) -> Vec<McpServer> {
//!         vec![self.tools.mcp_server()]
//!     }
//! }
//!
//! # fn show(path: &str, line: u32) -> std::io::Result<()> { Ok(()) }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! // `ProxyCommand::acp()` where the `acp` command is installed.
//! let proxy = ProxyCommand::new("/usr/bin/acp", ["mcp-proxy"])?;
//! let tools = ToolServer::tools("editor")
//!     .tool("show", "Show a file to the user", async |it: Show| {
//!         show(&it.path, it.line.unwrap_or(1))?;
//!         Ok("The file is shown")
//!     })
//!     .tool("selection", "Read what the user has selected", async |_: NoArguments| {
//!         Ok("let answer = 42;")
//!     })
//!     .start(proxy)?;
//! let editor = Editor { tools };
//!
//! // Now every session that this client opens has the server.
//! assert_eq!(editor.mcp_servers()[0].name(), Some("editor"));
//! # Ok(())
//! # }
//! ```
//!
//! Whatever else MCP has (resources, prompts, progress) is said with the official [`rmcp`]: [`ToolServer::start`] takes
//! its `ServerHandler`. What is between the agent and the tools does not look at the bytes. How it is kept private and
//! bounded: `docs/decisions/0005-mcp-through-the-client.md`.

mod bounded;
pub mod proxy;
mod proxy_command;
mod tool_server;
mod tools;

pub use acp_local::{Endpoint, LocalToken, ParseEndpointError, ParseTokenError};
pub use bounded::BoundedTransport;
pub use proxy::TOKEN_VAR;
pub use proxy_command::ProxyCommand;
pub use rmcp;
pub use tool_server::ToolServer;
pub use tools::{IntoToolResult, NoArguments, ToolError, Tools};
