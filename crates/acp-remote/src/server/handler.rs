//! What handles connections.

use std::future::Future;
use std::net::SocketAddr;

use acp::Transport;
use http::{HeaderMap, Uri, Version};

use crate::CloseStatus;

/// A handler of connections: it serves an agent on each, or passes the bytes of each to a process. Functions
/// `async fn(ConnectionInfo, Transport)` are handlers.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Handles a connection. It runs as a task of its own. When it returns, or drops both halves of the transport,
    /// what was written is still sent, and the client is told the status.
    ///
    /// The transport's reader ends when the client closes the connection, or does not come back in time. The future is
    /// dropped when the endpoint is [shut down](super::AgentEndpoint::shut_down) and its time is over.
    fn handle(
        &self,
        info: ConnectionInfo,
        transport: Transport,
    ) -> impl Future<Output = CloseStatus> + Send;
}

impl<F, Fut> ConnectionHandler for F
where
    F: Fn(ConnectionInfo, Transport) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Into<CloseStatus>> + Send,
{
    async fn handle(&self, info: ConnectionInfo, transport: Transport) -> CloseStatus {
        self(info, transport).await.into()
    }
}

/// What is known of a connection when it starts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The connection's id (`Acp-Connection-Id`). It is random. Logs may have it: it is of no use without the token.
    pub id: String,
    /// The transport.
    pub kind: TransportKind,
    /// The version of HTTP.
    pub version: Version,
    /// The address of the client, or of the reverse proxy in front. `None` if the server was not told
    /// ([`PeerAddress`](super::PeerAddress)).
    pub peer: Option<SocketAddr>,
    /// The URI that was requested, without a token.
    pub uri: Uri,
    /// The headers of the first request, without those that carry secrets (`Authorization`, `X-Secret-Key`, `Cookie`).
    pub headers: HeaderMap,
}

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// WebSocket.
    WebSocket,
    /// Streamable HTTP.
    Http,
}

impl TransportKind {
    /// Returns a name for logs and metrics: `websocket` or `http`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Http => "http",
        }
    }
}
