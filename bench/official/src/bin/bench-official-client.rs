//! The benchmark's client on the official Rust SDK. Its argument is the socket on which it receives commands.

use agent_client_protocol::Stdio;
use bench_official::{OfficialBenchError, run_client};

#[tokio::main]
async fn main() -> Result<(), OfficialBenchError> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("usage: bench-official-client SOCKET")?;
    run_client(path, Stdio::new()).await
}
