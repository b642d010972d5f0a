//! Options for a client's connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;

use crate::server::config::setters;
use crate::{CloseStatus, Token};

/// Options for a client's connection.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The token to send with each request.
    pub token: Option<Token>,
    /// How to send the token: in a header or in the URL.
    pub token_style: TokenStyle,
    /// Additional headers to send with each request.
    pub headers: HeaderMap,
    /// The server certificates to trust.
    pub trust: Trust,
    /// The version of HTTP to use.
    pub http_version: HttpVersion,
    /// The maximum time for connecting (20 s). A POST waits for its response as long as the server answers pings.
    pub connect_timeout: Duration,
    /// How long to keep trying to restore a connection that was cut. The default is as long as the server waits for the
    /// client. Zero turns the extension off.
    pub reconnect_for: Option<Duration>,
    /// The size of the buffer for each direction, in bytes (1 MiB).
    pub window: usize,
    /// The maximum length of a message over HTTP, in bytes (64 MiB).
    pub message: usize,
    /// The time between probes on an idle connection (15 s).
    pub heartbeat: Duration,
    /// How long a server may leave pings unanswered before it is considered dead (45 s).
    pub dead_after: Duration,
    pub(crate) on_status: Option<StatusHandler>,
}

pub(crate) type StatusHandler = Arc<dyn Fn(&ConnectionStatus) + Send + Sync>;

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            token: None,
            token_style: TokenStyle::Bearer,
            headers: HeaderMap::new(),
            trust: Trust::System,
            http_version: HttpVersion::Auto,
            connect_timeout: Duration::from_secs(20),
            reconnect_for: None,
            window: 1024 * 1024,
            message: 64 * 1024 * 1024,
            heartbeat: Duration::from_secs(15),
            dead_after: Duration::from_secs(45),
            on_status: None,
        }
    }
}

setters! { ConnectOptions:
    token: Option<Token>,
    token_style: TokenStyle,
    headers: HeaderMap,
    trust: Trust,
    http_version: HttpVersion,
    connect_timeout: Duration,
    reconnect_for: Option<Duration>,
    window: usize,
    message: usize,
    heartbeat: Duration,
    dead_after: Duration,
}

impl ConnectOptions {
    /// Sets a callback for when the connection is cut, restored or closed. It must not block.
    #[must_use]
    pub fn on_status(
        mut self,
        on_status: impl Fn(&ConnectionStatus) + Send + Sync + 'static,
    ) -> Self {
        self.on_status = Some(Arc::new(on_status));
        self
    }

    pub(crate) fn report(&self, status: &ConnectionStatus) {
        tracing::debug!(?status, "remote connection");
        if let Some(on_status) = &self.on_status {
            on_status(status);
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The headers can contain secrets.
        f.debug_struct("ConnectOptions")
            .field("token", &self.token)
            .field("trust", &self.trust)
            .field("http_version", &self.http_version)
            .finish_non_exhaustive()
    }
}

/// A change in a connection's status.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionStatus {
    /// The server has accepted the connection.
    Connected {
        /// The connection's id, if the server sent one.
        connection_id: Option<String>,
        /// How long the server waits for the client if the connection is cut, or `None` if it cannot be resumed.
        resumes_within: Option<Duration>,
    },
    /// The connection was cut and is being restored.
    Lost {
        /// The reason why the connection was cut.
        reason: String,
    },
    /// The connection was restored, and nothing was lost.
    Restored,
    /// The server closed the connection with this status.
    Closed(CloseStatus),
}

/// How to send a token: in a header or in the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TokenStyle {
    /// In the header `Authorization: Bearer TOKEN`.
    #[default]
    Bearer,
    /// In the header `X-Secret-Key: TOKEN`, as expected by goose.
    SecretKey,
    /// In the URL, as `?token=TOKEN`. The token may appear in the logs of servers and proxies.
    Query,
}

/// The server certificates to trust.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Trust {
    /// Certificates that the operating system trusts.
    #[default]
    System,
    /// Only the certificate with this SHA-256 fingerprint, computed over its DER form. Its names, dates and issuer are
    /// not checked.
    Pinned([u8; 32]),
    /// The certificates that this configuration trusts. The client sets ALPN.
    Config(Arc<rustls::ClientConfig>),
}

impl Trust {
    /// Parses a fingerprint: 64 hexadecimal digits, optionally prefixed with `sha256:` and separated by colons.
    #[must_use]
    pub fn from_pin(text: &str) -> Option<Self> {
        let text = text.strip_prefix("sha256:").unwrap_or(text);
        let digits: Vec<u8> = text
            .chars()
            .filter(|c| *c != ':')
            .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
            .collect::<Option<_>>()?;
        let (pairs, []) = digits.as_chunks::<2>() else {
            return None;
        };
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high * 16 + low).collect();
        bytes.try_into().ok().map(Self::Pinned)
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "System",
            Self::Pinned(_) => "Pinned",
            Self::Config(_) => "Config",
        })
    }
}

/// The version of HTTP that a client uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum HttpVersion {
    /// HTTP/1.1 for WebSocket. Streamable HTTP uses the version that TLS negotiates or, without TLS, HTTP/2 if the
    /// server supports it and HTTP/1.1 otherwise.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only. WebSocket connections use extended CONNECT (RFC 8441).
    Http2,
}
