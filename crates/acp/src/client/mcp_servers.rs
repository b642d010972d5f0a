//! MCP servers of the client's own, given to the agent with every session.

use std::sync::{Arc, Weak};

use acp_wire::v1::McpServer;

use super::Client;
use crate::session_setup::SessionSetup;

/// Where the client's own MCP servers are asked for.
pub(crate) struct ClientMcpServers(Box<dyn Fn() -> Vec<McpServer> + Send + Sync>);

impl ClientMcpServers {
    /// Those of this client. It is not kept alive: a client may hold the connection that holds this.
    pub(crate) fn from_client<C: Client>(client: &Arc<C>) -> Self {
        let client = Arc::downgrade(client);
        Self(Box::new(move || {
            Weak::upgrade(&client).map_or_else(Vec::new, |client| client.mcp_servers())
        }))
    }

    /// Puts those that the agent takes behind the servers that are there. Agents tell servers apart by
    /// their names, so of two with one name the first stays.
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
