//! Tools of a client's own, for the agents of the
//! [Agent Client Protocol](https://agentclientprotocol.com).
//!
//! An editor or another client may have tools that only it can run: ask the person, show something,
//! look into an unsaved buffer. Agents take tools from MCP servers, and every agent can start one that
//! speaks on stdin and stdout. So a [`ToolServer`] runs in the client's process, and what the agent
//! starts is a small proxy (`acp mcp-proxy`) that passes the bytes on to it.
//!
//! What the tools are is said with the official [`rmcp`]; what is between the agent and the tools
//! does not look at the bytes. How it is kept private and bounded:
//! `docs/decisions/0005-mcp-through-the-client.md`.
//!
//! ```
//! use acp::Client;
//! use acp::v1::McpServer;
//! use acp_mcp::rmcp::ServerHandler;
//! use acp_mcp::{ProxyCommand, ToolServer};
//!
//! /// The tools; a real one implements `list_tools` and `call_tool`, by hand or by rmcp's macros.
//! struct Tools;
//!
//! impl ServerHandler for Tools {}
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
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! // `ProxyCommand::acp()` where the `acp` command is installed.
//! let proxy = ProxyCommand::new("/usr/bin/acp", ["mcp-proxy"])?;
//! let editor = Editor { tools: ToolServer::start("editor", || Tools, proxy)? };
//!
//! // Every session that this client opens has the server now.
//! assert_eq!(editor.mcp_servers()[0].name(), Some("editor"));
//! # Ok(())
//! # }
//! ```

mod bounded;
pub mod proxy;
mod proxy_command;
mod tool_server;

pub use acp_local::{Endpoint, NotAToken, NotAnEndpoint, Token};
pub use bounded::Bounded;
pub use proxy::TOKEN_VAR;
pub use proxy_command::ProxyCommand;
pub use rmcp;
pub use tool_server::ToolServer;
