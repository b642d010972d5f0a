//! How a client connects.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;

use crate::server::config::setters;
use crate::{CloseStatus, Token};

/// How a client connects.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The token to send.
    pub token: Option<Token>,
    /// How the token is sent.
    pub token_style: TokenStyle,
    /// Further headers of all requests.
    pub headers: HeaderMap,
    /// Which certificates are trusted.
    pub trust: Trust,
    /// The version of HTTP to use.
    pub http_version: HttpVersion,
    /// How long connecting may take (20 s), and each POST until it is answered (as long as the server wants, if it
    /// answers pings).
    pub connect_timeout: Duration,
    /// How long the client tries to restore a connection that was cut. By default, for as long as the server says that
    /// it waits. Zero turns the extension off.
    pub reconnect_for: Option<Duration>,
    /// How much of each direction is buffered, in bytes (1 MiB).
    pub window: usize,
    /// The maximum length of a message over HTTP, in bytes (64 MiB).
    pub message: usize,
    /// How often an idle connection is probed (15 s).
    pub heartbeat: Duration,
    /// How long a server may be silent, in spite of pings, until it counts as dead (45 s).
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
    /// Sets a callback for changes of the connection: that it was cut, restored, or has ended. It must not block.
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
        // The headers may contain secrets.
        f.debug_struct("ConnectOptions")
            .field("token", &self.token)
            .field("trust", &self.trust)
            .field("http_version", &self.http_version)
            .finish_non_exhaustive()
    }
}

/// A change of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionStatus {
    /// The server has accepted the connection.
    Connected {
        /// The connection's id, if the server sent one.
        connection_id: Option<String>,
        /// Whether the connection survives cuts without loss, and how long the server then waits.
        resumes_within: Option<Duration>,
    },
    /// The connection was cut, and is being restored.
    Lost {
        /// What happened.
        reason: String,
    },
    /// The connection was restored. Nothing was lost.
    Restored,
    /// The server has closed the connection.
    Closed(CloseStatus),
}

/// How a token is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TokenStyle {
    /// `Authorization: Bearer TOKEN`.
    #[default]
    Bearer,
    /// `X-Secret-Key: TOKEN`, as goose expects it.
    SecretKey,
    /// `?token=TOKEN` in the URL. Logs of servers and proxies may show it.
    Query,
}

/// Which certificates of servers are trusted.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Trust {
    /// Those that the operating system trusts.
    #[default]
    System,
    /// Only the certificate with this SHA-256 fingerprint (of its DER form), whatever it says about names, times and
    /// issuers.
    Pinned([u8; 32]),
    /// What this configuration trusts. ALPN is set by the client.
    Config(Arc<rustls::ClientConfig>),
}

impl Trust {
    /// Reads a fingerprint: 64 hexadecimal digits, with or without `sha256:` in front and colons between.
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
    /// For HTTP: whatever TLS negotiates; without TLS HTTP/2, and HTTP/1.1 if the server does not understand that. For
    /// WebSocket: HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2. For WebSocket: extended CONNECT (RFC 8441).
    Http2,
}
