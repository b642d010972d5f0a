//! The client on this library, with an agent that is served over the network. Its arguments are the socket on which it
//! receives commands, and the agent's URL.

#[path = "ours/client.rs"]
mod client;

use acp::Transport;
use acp_remote::client::{ConnectOptions, connect};
use client::{BenchClientError, run};

async fn dial(url: &str) -> Result<Transport, BenchClientError> {
    Ok(connect(url, ConnectOptions::new()).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BenchClientError> {
    let mut args = std::env::args().skip(1);
    let (Some(path), Some(url)) = (args.next(), args.next()) else {
        return Err("usage: bench-our-remote-client SOCKET URL".into());
    };
    let transport = dial(&url).await?;
    let connector = Box::new(move || {
        let url = url.clone();
        Box::pin(async move { dial(&url).await }) as _
    });
    run(&path, transport, Some(connector)).await
}
