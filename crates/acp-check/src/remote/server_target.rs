//! Defines a server under test, and how to reach it.

use std::fmt;
use std::sync::Arc;

use acp_remote::Token;
use acp_remote::client::{TokenStyle, Trust};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use url::Url;

/// A server of the remote transport. All checks use the same server.
#[derive(Debug, Clone)]
pub struct RemoteServer {
    host: String,
    port: u16,
    is_tls: bool,
    url: Url,
    token: Option<(Token, TokenStyle)>,
    trust: Trust,
    cwd: Option<String>,
}

/// Formats the URL without its query, which may contain a token.
impl fmt::Display for RemoteServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url[..url::Position::AfterPath])
    }
}

/// The error for an invalid server URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidServerUrl(String);

impl fmt::Display for InvalidServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid URL: {}", self.0)
    }
}

impl std::error::Error for InvalidServerUrl {}

/// The transports that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferedTransports {
    /// Streamable HTTP.
    pub http: bool,
    /// Streamable HTTP over HTTP/2.
    pub http2: bool,
    /// WebSocket.
    pub websocket: bool,
}

/// A connection to a server, with or without TLS.
pub(crate) trait ServerSocket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ServerSocket for T {}

/// The ALPN names of the HTTP versions.
pub(crate) const ALPN_HTTP_1: &[u8] = b"http/1.1";
pub(crate) const ALPN_HTTP_2: &[u8] = b"h2";

impl RemoteServer {
    /// Creates a target from a URL: `http://`, `https://`, `ws://` or `wss://`. The WebSocket schemes are equivalent to
    /// the HTTP schemes, because both transports use the same endpoint. A fingerprint after `#` identifies the
    /// certificate to trust.
    ///
    /// # Errors
    /// The URL is invalid.
    pub fn new(url: &str) -> Result<Self, InvalidServerUrl> {
        let invalid = |why: &str| InvalidServerUrl(why.to_owned());
        let (scheme, rest) = url
            .split_once(':')
            .ok_or_else(|| invalid("the scheme is missing"))?;
        let is_tls = match scheme {
            "http" | "ws" => false,
            "https" | "wss" => true,
            _ => return Err(invalid("expected http, https, ws or wss")),
        };
        let scheme = if is_tls { "https" } else { "http" };
        let mut url =
            Url::parse(&format!("{scheme}:{rest}")).map_err(|e| invalid(&e.to_string()))?;
        let trust = match url.fragment() {
            None => Trust::System,
            Some(text) => Trust::from_pin(text).ok_or_else(|| {
                invalid("expected the SHA-256 fingerprint of a certificate after #")
            })?,
        };
        url.set_fragment(None);
        let host = url
            .host_str()
            .ok_or_else(|| invalid("the host is missing"))?;
        let port = url.port_or_known_default();
        Ok(Self {
            host: host.to_owned(),
            port: port.ok_or_else(|| invalid("the port is missing"))?,
            is_tls,
            url,
            token: None,
            trust,
            cwd: None,
        })
    }

    /// Sets the token to send with each request, and whether to send it as a bearer token or in `X-Secret-Key`. To send
    /// it in the query instead, put it in the target's URL.
    #[must_use]
    pub fn token(mut self, token: Token, style: TokenStyle) -> Self {
        self.token = Some((token, style));
        self
    }

    /// Sets which certificates to trust.
    #[must_use]
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Sets the working directory for sessions. By default, it is a temporary directory on this machine.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    pub(crate) fn session_cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// Returns the name and value of the header that contains the token.
    pub(crate) fn token_header(&self) -> Option<(&'static str, String)> {
        let (token, style) = self.token.as_ref()?;
        Some(match style {
            TokenStyle::SecretKey => ("X-Secret-Key", token.expose().to_owned()),
            _ => ("Authorization", format!("Bearer {}", token.expose())),
        })
    }

    /// Returns the URL scheme to send in HTTP/2 requests.
    pub(crate) fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// Returns the host, with the port if it is not the default port.
    pub(crate) fn authority(&self) -> &str {
        &self.url[url::Position::BeforeHost..url::Position::AfterPort]
    }

    /// Returns the path and the query, which may contain a token.
    pub(crate) fn path_and_query(&self) -> &str {
        &self.url[url::Position::BeforePath..]
    }

    /// Returns the path without the query, for display.
    pub(crate) fn path(&self) -> &str {
        self.url.path()
    }

    /// Connects to the server. Returns the socket, and whether TLS negotiated HTTP/2.
    pub(crate) async fn dial(
        &self,
        alpn: &[&[u8]],
    ) -> Result<(Box<dyn ServerSocket>, bool), String> {
        let address = format!("{}:{}", self.host, self.port);
        let cannot = |why: &dyn fmt::Display| format!("cannot connect to {address}: {why}");
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, self.port))
            .await
            .map_err(|e| cannot(&e))?;
        stream.set_nodelay(true).map_err(|e| cannot(&e))?;
        if !self.is_tls {
            return Ok((Box::new(stream), false));
        }
        let config = self.trust.client_config(alpn).map_err(|e| cannot(&e))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|e| cannot(&e))?;
        let stream = TlsConnector::from(Arc::clone(&config))
            .connect(name, stream)
            .await
            .map_err(|e| cannot(&e))?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(ALPN_HTTP_2);
        Ok((Box::new(stream), is_http2))
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.is_tls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_both_transports_refer_to_the_same_endpoint() {
        let server = RemoteServer::new("wss://[::1]:7180/acp?token=t").unwrap();
        assert_eq!(server.scheme(), "https");
        assert_eq!(server.authority(), "[::1]:7180");
        assert_eq!(server.path_and_query(), "/acp?token=t");
        assert_eq!(server.path(), "/acp");
        let pinned = format!("wss://host/acp#sha256:{}", "0a".repeat(32));
        let pinned = RemoteServer::new(&pinned).unwrap();
        assert!(matches!(pinned.trust, Trust::Pinned(_)));
        for wrong in ["/acp", "ftp://a", "http://", "http://a#pin"] {
            assert!(RemoteServer::new(wrong).is_err(), "{wrong}");
        }
    }
}
