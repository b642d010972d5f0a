//! The handler of an endpoint's connections.

use std::future::Future;
use std::net::SocketAddr;

use acp::Transport;
use http::{HeaderMap, Uri, Version};

use super::user::TokenUser;
use crate::CloseStatus;

/// Handles connections, for example by serving an agent on each, or by passing the bytes to a process. Every `async
/// fn(ConnectionInfo, Transport)` is a handler.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Handles a connection in its own task. After the handler returns, or drops both halves of the transport,
    /// everything already written is still sent, and the client gets the returned status.
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

/// Information about a new connection.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The random id of the connection (`Acp-Connection-Id`). It can be logged because it is useless without the token.
    pub id: String,
    /// The connection's transport: WebSocket or HTTP.
    pub kind: TransportKind,
    /// The version of HTTP that the client uses.
    pub version: Version,
    /// The address of the client, or of a reverse proxy. `None` if the request has no
    /// [`PeerAddress`](super::PeerAddress).
    pub peer: Option<SocketAddr>,
    /// The requested URI, without a token.
    pub uri: Uri,
    /// The headers of the first request, without those that contain secrets (`Authorization`, `X-Secret-Key`,
    /// `Cookie`).
    pub headers: HeaderMap,
    /// Who has opened the connection. Later requests with another user's token cannot use it.
    pub user: TokenUser,
}

/// The transport of a connection: WebSocket or HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportKind {
    /// The connection uses WebSockets.
    WebSocket,
    /// The connection uses streamable HTTP.
    Http,
}

impl TransportKind {
    /// Returns the transport's name for logs and metrics: `websocket` or `http`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WebSocket => "websocket",
            Self::Http => "http",
        }
    }
}
