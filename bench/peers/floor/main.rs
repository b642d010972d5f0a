//! The floor: the smallest program that can do the work. It has one thread and uses blocking reads and writes. It
//! supports only the messages that occur. Each message is read in one pass into a type that owns its text, and written
//! directly into the output buffer.
//!
//! `bench-floor agent`, `bench-floor client SOCKET`. With an address as a further argument, the agent serves one client
//! there over WebSocket; with a URL, the client connects to it. With `--each` before it, the agent writes each chunk by itself. With
//! `--raw` in front of both, nothing is made of the chunks: the agent writes the same bytes again and again,
//! each by itself, and the client counts lines.

mod agent;
mod client;
mod websocket;
mod wire;

use crate::wire::stdio;

/// An error to show to the user.
type FloorError = Box<dyn std::error::Error>;

/// How chunks are written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkMode {
    /// Serialized from a type, and written together with others.
    Buffered,
    /// Serialized from a type, with one write per chunk.
    Unbuffered,
    /// As raw bytes.
    Raw,
}

fn main() -> Result<(), FloorError> {
    let mut args = std::env::args().skip(1).peekable();
    let how = match args.peek().map(String::as_str) {
        Some("--each") => ChunkMode::Unbuffered,
        Some("--raw") => ChunkMode::Raw,
        _ => ChunkMode::Buffered,
    };
    if how != ChunkMode::Buffered {
        args.next();
    }
    match (args.next().as_deref(), args.next(), args.next()) {
        (Some("agent"), None, None) => agent::run(how, stdio()?),
        (Some("agent"), Some(address), None) => agent::run(how, websocket::accept(&address)?),
        (Some("client"), Some(socket), None) => client::run(how, &socket, stdio()?),
        (Some("client"), Some(socket), Some(url)) => {
            client::run(how, &socket, websocket::connect(&url)?)
        }
        _ => Err("usage: bench-floor [--each|--raw] agent [ADDRESS] | client SOCKET [URL]".into()),
    }
}
