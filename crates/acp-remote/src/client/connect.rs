//! Connects to an agent by its URL.

use std::sync::Arc;

use acp::Transport;
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

use super::error::ConnectError;
use super::options::ConnectOptions;
use super::target::Target;
use super::{http, websocket};

/// Connects to the agent at a URL, and returns the transport.
///
/// | URL | transport |
/// |---|---|
/// | `ws://`, `wss://` | WebSocket |
/// | `http://`, `https://` | streamable HTTP |
/// | `tcp://HOST:PORT`, `unix:PATH` | lines over a plain socket |
///
/// When this function returns, a WebSocket is open. Over HTTP, the first request is sent with the first message, so the
/// transport reports problems: reading fails with a [`ConnectError`] inside an [`std::io::Error`].
///
/// # Errors
/// The URL is invalid, the server cannot be reached, or it rejects the connection.
pub async fn connect(url: &str, options: ConnectOptions) -> Result<Transport, ConnectError> {
    if let Some(path) = url.strip_prefix("unix:") {
        return connect_unix(path.strip_prefix("//").unwrap_or(path)).await;
    }
    let invalid = |reason: &str| ConnectError::InvalidUrl {
        url: strip_query(url).to_owned(),
        reason: reason.to_owned(),
    };
    let parsed = Url::parse(url).map_err(|error| invalid(&error.to_string()))?;
    if parsed.scheme() == "tcp" {
        return connect_tcp(&parsed, &options).await;
    }
    let target = Target::new(&parsed, options).map_err(|reason| invalid(&reason))?;
    match parsed.scheme() {
        "ws" | "wss" => websocket::connect(Arc::new(target)).await,
        _ => Ok(http::connect(target)),
    }
}

/// Returns a URL without its query, which can contain a token.
fn strip_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

async fn connect_tcp(url: &Url, options: &ConnectOptions) -> Result<Transport, ConnectError> {
    let invalid = |reason: &str| ConnectError::InvalidUrl {
        url: strip_query(url.as_str()).to_owned(),
        reason: reason.to_owned(),
    };
    let host = url
        .host_str()
        .filter(|host| !host.is_empty())
        .ok_or_else(|| invalid("the host is missing"))?;
    let port = url.port().ok_or_else(|| invalid("the port is missing"))?;
    let to = format!("{host}:{port}");
    let unreachable = |reason: String| ConnectError::Unreachable {
        to: to.clone(),
        reason,
    };
    let stream = timeout(options.connect_timeout, TcpStream::connect(&to))
        .await
        .map_err(|_| unreachable("timed out".to_owned()))?
        .and_then(|stream| crate::socket::configure_socket(&stream).map(|()| stream))
        .map_err(|error| unreachable(error.to_string()))?;
    let (reader, writer) = stream.into_split();
    Ok(Transport::new(reader, writer))
}

#[cfg(unix)]
async fn connect_unix(path: &str) -> Result<Transport, ConnectError> {
    let stream = tokio::net::UnixStream::connect(path).await;
    let stream = stream.map_err(|error| ConnectError::Unreachable {
        to: path.to_owned(),
        reason: error.to_string(),
    })?;
    let (reader, writer) = stream.into_split();
    Ok(Transport::new(reader, writer))
}

#[cfg(not(unix))]
async fn connect_unix(path: &str) -> Result<Transport, ConnectError> {
    Err(ConnectError::InvalidUrl {
        url: format!("unix:{path}"),
        reason: "this system does not have Unix-domain sockets".to_owned(),
    })
}
