//! The benchmark's agent on the official Rust SDK, over HTTP and WebSocket. Its argument is the address to listen on.

use agent_client_protocol_http::AcpHttpServer;
use axum::serve::ListenerExt;
use bench_official::OfficialBenchError;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), OfficialBenchError> {
    let address = std::env::args()
        .nth(1)
        .ok_or("usage: bench-official-remote-agent ADDRESS")?;
    let router = AcpHttpServer::new(bench_official::agent).into_router();
    let listener = TcpListener::bind(address).await?.tap_io(|stream| {
        // Without it, small messages wait for the client's acknowledgements. Setting it does not fail.
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, router).await?;
    Ok(())
}
