//! Endpoints: addresses where one program listens and another connects.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// The read half of a local connection.
pub type LocalReader = Box<dyn AsyncRead + Send + Unpin>;

/// The write half of a local connection.
pub type LocalWriter = Box<dyn AsyncWrite + Send + Unpin>;

/// A local connection, split into a read half and a write half. Dropping the writer ends the peer's input.
pub struct LocalStream {
    /// The half that reads from the peer.
    pub reader: LocalReader,
    /// The half that writes to the peer.
    pub writer: LocalWriter,
}

impl fmt::Debug for LocalStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStream").finish_non_exhaustive()
    }
}

/// An address where a program listens: `unix:/path/to/socket`, or `tcp:127.0.0.1:PORT` if Unix-domain sockets are not
/// available. Addresses on other machines are rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(EndpointKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum EndpointKind {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Endpoint {
    #[cfg(unix)]
    pub(crate) fn unix(path: PathBuf) -> Self {
        Self(EndpointKind::Unix(path))
    }

    #[cfg(any(not(unix), test))]
    pub(crate) fn tcp(address: SocketAddr) -> Self {
        Self(EndpointKind::Tcp(address))
    }

    /// Connects to the endpoint.
    ///
    /// # Errors
    /// No program listens on the endpoint, or this system does not support its kind of socket.
    pub async fn connect(&self) -> io::Result<LocalStream> {
        match &self.0 {
            #[cfg(unix)]
            EndpointKind::Unix(path) => Ok(tokio::net::UnixStream::connect(path).await?.into()),
            #[cfg(not(unix))]
            EndpointKind::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
            EndpointKind::Tcp(address) => TcpStream::connect(address).await?.try_into(),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            EndpointKind::Unix(path) => write!(f, "unix:{}", path.display()),
            EndpointKind::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl FromStr for Endpoint {
    type Err = ParseEndpointError;

    fn from_str(text: &str) -> Result<Self, ParseEndpointError> {
        let kind = match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => EndpointKind::Unix(path.into()),
            Some(("tcp", address)) => match address.parse::<SocketAddr>() {
                // The connection must never leave this machine.
                Ok(address) if address.ip().is_loopback() => EndpointKind::Tcp(address),
                _ => return Err(ParseEndpointError),
            },
            _ => return Err(ParseEndpointError),
        };
        Ok(Self(kind))
    }
}

/// The error for text that is not a valid [`Endpoint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected unix:PATH or tcp:127.0.0.1:PORT")]
pub struct ParseEndpointError;

#[cfg(unix)]
impl From<tokio::net::UnixStream> for LocalStream {
    fn from(stream: tokio::net::UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
        }
    }
}

impl TryFrom<TcpStream> for LocalStream {
    type Error = io::Error;

    fn try_from(stream: TcpStream) -> io::Result<Self> {
        // Messages are short, and the peer waits for them.
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_round_trips_through_its_text() {
        for text in [
            "unix:/tmp/acp-x/socket",
            "tcp:127.0.0.1:4000",
            "tcp:[::1]:4000",
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn remote_and_invalid_endpoints_are_rejected() {
        for text in [
            "",
            "unix",
            "unix:",
            "/tmp/acp-x/socket",
            "tcp:4000",
            "tcp:localhost:4000",
            "tcp:192.0.2.1:4000",
            "tcp:0.0.0.0:4000",
            "http://127.0.0.1:4000",
        ] {
            assert_eq!(text.parse::<Endpoint>(), Err(ParseEndpointError), "{text}");
        }
    }
}
