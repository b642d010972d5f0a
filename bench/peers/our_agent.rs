//! The agent on this library, at stdin and stdout. It contains nothing of the network.

#[path = "ours/agent.rs"]
mod agent;

use agent::{BenchAgent, options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    acp::agent::serve_with(acp::transport::stdio()?, BenchAgent, options()).await
}
