//! The client on this library, with its agent at stdin and stdout. Its argument is the socket on which it receives
//! commands. It contains nothing of the network.

#[path = "ours/client.rs"]
mod client;

use client::{BenchClientError, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BenchClientError> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: bench-our-client SOCKET")?;
    run(&path, acp::transport::stdio()?, None).await
}
