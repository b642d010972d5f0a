//! Provides a client's own tools to [Agent Client Protocol](https://agentclientprotocol.com) agents.
//!
//! An editor or another client can have tools that only it can run, such as asking the user, showing a file or reading
//! an unsaved buffer. Agents get tools from MCP servers, and every agent can start one that uses stdin and stdout. A
//! [`ToolServer`] runs in the client's process, and the agent starts a small proxy (`acp mcp-proxy`) that forwards the
//! bytes to it.
//!
//! Tools can be closures ([`ToolServer::tools`]). The JSON Schema of a tool is derived from the type of its arguments.
//! Invalid arguments are reported so that the model can correct them.
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
//! All other features of MCP (resources, prompts, progress) work with the official [`rmcp`]: [`ToolServer::start`]
//! accepts its `ServerHandler`. Nothing between the agent and the tools interprets the bytes. For how the connection is
//! private and limited in size, see `docs/decisions/0005-mcp-through-the-client.md`.

mod bounded;
pub mod proxy;
mod proxy_command;
mod tool_server;
mod tools;

pub use acp_local::{Endpoint, LocalToken, ParseEndpointError, ParseTokenError};
pub use bounded::BoundedTransport;
pub use proxy::TOKEN_VARIABLE;
pub use proxy_command::ProxyCommand;
pub use rmcp;
pub use tool_server::ToolServer;
pub use tools::{IntoToolResult, NoArguments, ToolError, Tools};
