//! The benchmark's client on the official Rust SDK, over HTTP/2 or WebSocket. Its arguments are the socket on which it
//! receives commands, and the URL of the agent.

use agent_client_protocol_http::HttpClient;
use bench_official::{OfficialBenchError, run_client};

#[tokio::main]
async fn main() -> Result<(), OfficialBenchError> {
    let mut args = std::env::args().skip(1);
    let (path, url) = args
        .next()
        .zip(args.next())
        .ok_or("usage: bench-official-remote-client SOCKET URL")?;
    let is_http = url.starts_with("http");
    let client = HttpClient::builder_with_endpoint(&url)
        .configure_http(|http| {
            let http = http.no_proxy();
            // As the draft requires.
            if is_http { http.http2_prior_knowledge() } else { http }
        })
        .build()?;
    run_client(path, client).await
}
