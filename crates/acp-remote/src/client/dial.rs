//! Opens sockets to servers.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::ConnectError;
use super::target::Target;
use super::tls::client_config;

/// The ALPN names of HTTP/2 and HTTP/1.1.
pub(super) const ALPN_H2: &[u8] = b"h2";
pub(super) const ALPN_HTTP_1: &[u8] = b"http/1.1";

/// A socket to a server, with or without TLS.
pub(super) enum Socket {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Returns `true` if HTTP/2 was negotiated.
    pub(super) fn is_h2(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol() == Some(ALPN_H2),
        }
    }
}

/// Opens a socket. `alpn` lists the protocols that may be used on it.
pub(super) async fn dial(target: &Target, alpn: &[&[u8]]) -> Result<Socket, ConnectError> {
    let dialing = async {
        let to = || target.address();
        let unreachable = |error: std::io::Error| ConnectError::Unreachable {
            to: to(),
            reason: error.to_string(),
        };
        let host = target.host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, target.port))
            .await
            .map_err(unreachable)?;
        crate::socket::configure_socket(&stream).map_err(unreachable)?;
        if !target.is_tls {
            return Ok(Socket::Plain(stream));
        }
        let failed = |reason: String| ConnectError::Tls { to: to(), reason };
        let config =
            client_config(&target.options.trust, alpn).map_err(|e| failed(e.to_string()))?;
        let name = ServerName::try_from(host.to_owned()).map_err(|e| failed(e.to_string()))?;
        let stream = TlsConnector::from(config).connect(name, stream).await;
        Ok(Socket::Tls(Box::new(
            stream.map_err(|e| failed(e.to_string()))?,
        )))
    };
    timeout(target.options.connect_timeout, dialing)
        .await
        .unwrap_or_else(|_| {
            Err(ConnectError::Unreachable {
                to: target.address(),
                reason: "timed out".to_owned(),
            })
        })
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A socket in the form that hyper-util's connection pool requires.
pub(super) struct PooledSocket(pub(super) TokioIo<Socket>);

impl Connection for PooledSocket {
    fn connected(&self) -> Connected {
        if self.0.inner().is_h2() {
            Connected::new().negotiated_h2()
        } else {
            Connected::new()
        }
    }
}

impl hyper::rt::Read for PooledSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: hyper::rt::ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buf)
    }
}

impl hyper::rt::Write for PooledSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
