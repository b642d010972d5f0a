//! The agent on this library, served over the network. Its argument is the address to listen on.

#[path = "ours/agent.rs"]
mod agent;

use std::io;

use acp_remote::server::{
    AgentEndpoint, ConnectionInfo, ServeOptions, ServerConfig, ServerLimits, serve,
};
use agent::{BenchAgent, options};
use tokio::net::TcpListener;

/// The maximum number of connections that the benchmark needs.
const CONNECTIONS: usize = 2000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let usage = || io::Error::other("usage: bench-our-remote-agent ADDRESS");
    let address = std::env::args().nth(1).ok_or_else(usage)?;
    let handler = async |_: ConnectionInfo, transport| {
        // An error means that the client has left.
        let _ = acp::agent::serve_with(transport, BenchAgent, options()).await;
    };
    let limits = ServerLimits::new().connections(CONNECTIONS);
    let endpoint = AgentEndpoint::new(ServerConfig::new().limits(limits), handler);
    let listener = TcpListener::bind(address).await?;
    serve(listener, endpoint, ServeOptions::new().sockets(CONNECTIONS)).await
}
