//! The benchmark's agent on the official Rust SDK.

use agent_client_protocol::{ConnectTo, Result, Stdio};

#[tokio::main]
async fn main() -> Result<()> {
    bench_official::agent().connect_to(Stdio::new()).await
}
