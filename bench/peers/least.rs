//! The smallest process that responds to `initialize`.

use std::io::{Read, Write};

const INITIALIZE_RESPONSE: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{}}}\n";

fn main() -> std::io::Result<()> {
    let mut line = Vec::new();
    let mut input = std::io::stdin().lock();
    let mut buffer = [0; 4096];
    while !line.ends_with(b"\n") {
        match input.read(&mut buffer)? {
            0 => return Ok(()),
            n => line.extend_from_slice(buffer.get(..n).unwrap_or_default()),
        }
    }
    let mut output = std::io::stdout().lock();
    output.write_all(INITIALIZE_RESPONSE)?;
    output.flush()?;
    // Until the client is gone.
    while input.read(&mut buffer)? > 0 {}
    Ok(())
}
