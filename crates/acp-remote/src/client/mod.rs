//! The client: connects to an agent by URL.

mod error;
mod options;

pub use error::ConnectError;
pub use options::{ConnectOptions, ConnectionStatus, HttpVersion, TokenStyle, Trust};

/// Connects to the agent at a URL, and returns the transport.
///
/// | URL | transport |
/// |---|---|
/// | `ws://`, `wss://` | WebSocket |
/// | `http://`, `https://` | streamable HTTP |
/// | `tcp://HOST:PORT`, `unix:PATH` | lines over a plain socket |
///
/// Over HTTP, the first request is sent with the first message, so problems are reported by the transport.
///
/// # Errors
/// The URL is invalid, the server cannot be reached, or rejects the connection.
pub async fn connect(url: &str, options: ConnectOptions) -> Result<acp::Transport, ConnectError> {
    let _ = options;
    Err(ConnectError::InvalidUrl {
        url: url.to_owned(),
        reason: "not supported yet".to_owned(),
    })
}
