//! The client's own MCP servers, which the agent gets with every session.

use std::sync::{Arc, Weak};

use acp_wire::v1::McpServer;

use super::Client;
use crate::session_setup::SessionSetup;

/// A function that returns the client's own MCP servers.
pub(crate) struct ClientMcpServers(Box<dyn Fn() -> Vec<McpServer> + Send + Sync>);

impl ClientMcpServers {
    /// Creates the function from a client. The function does not keep the client alive, because the client may own the
    /// connection, which owns the function.
    pub(crate) fn from_client<C: Client>(client: &Arc<C>) -> Self {
        let client = Arc::downgrade(client);
        Self(Box::new(move || {
            Weak::upgrade(&client).map_or_else(Vec::new, |client| client.mcp_servers())
        }))
    }

    /// Appends the client's own servers to a session setup, except for those that the agent does not support. A server
    /// whose name is already in use is left out, because agents identify servers by name.
    pub(crate) fn add_to(
        &self,
        mut setup: SessionSetup,
        takes: impl Fn(&McpServer) -> bool,
    ) -> SessionSetup {
        for server in (self.0)().into_iter().filter(takes) {
            let taken = server.name().is_some_and(|name| {
                let mut names = setup.mcp_servers.iter().filter_map(McpServer::name);
                names.any(|other| other == name)
            });
            if !taken {
                setup.mcp_servers.push(server);
            }
        }
        setup
    }
}
