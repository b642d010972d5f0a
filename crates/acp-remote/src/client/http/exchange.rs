//! Exchanges requests and responses over HTTP/2 or HTTP/1.1.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tower_service::Service;

use crate::client::dial::{ALPN_H2, ALPN_HTTP_1, PooledSocket, dial};
use crate::client::error::{ConnectError, error_chain};
use crate::client::options::HttpVersion;
use crate::client::target::Target;

type Pool = Client<Dialer, Full<Bytes>>;

/// A client that uses as few sockets as possible for its HTTP requests.
pub(super) struct HttpExchange {
    target: Arc<Target>,
    /// The connection pool for HTTP/2 without TLS. Used once the server is known to support it.
    h2: Pool,
    /// The connection pool for everything else: HTTP/1.1, or the version that TLS negotiates.
    other: Pool,
    /// The connection pool to use, as one of the constants below.
    choice: AtomicU8,
}

/// It is not yet known whether the server speaks HTTP/2 without TLS.
const POOL_UNDECIDED: u8 = 0;
const POOL_H2: u8 = 1;
const POOL_OTHER: u8 = 2;

/// The error for a request that received no response.
#[derive(Debug)]
pub(super) struct NoResponse {
    pub(super) error: ConnectError,
    /// Whether it is certain that the server did not receive the request.
    pub(super) was_not_sent: bool,
}

impl HttpExchange {
    pub(super) fn new(target: Arc<Target>) -> Self {
        let (choice, alpn): (u8, &'static [&'static [u8]]) = match target.options.http_version {
            HttpVersion::Http1 => (POOL_OTHER, &[ALPN_HTTP_1]),
            HttpVersion::Http2 => (POOL_H2, &[ALPN_H2]),
            HttpVersion::Auto if target.is_tls => (POOL_OTHER, &[ALPN_H2, ALPN_HTTP_1]),
            HttpVersion::Auto => (POOL_UNDECIDED, &[]),
        };
        Self {
            h2: build_pool(&target, alpn, true),
            other: build_pool(&target, alpn, false),
            choice: AtomicU8::new(choice),
            target,
        }
    }

    /// Sends a request, and returns the response once its headers have arrived.
    pub(super) async fn send(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, NoResponse> {
        let uri = self.target.uri().map_err(|error| NoResponse {
            error: ConnectError::Protocol(error),
            was_not_sent: true,
        })?;
        self.target.add_headers(&mut headers);
        let request = || {
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            *request.uri_mut() = uri.clone();
            *request.headers_mut() = headers.clone();
            request
        };
        let choice = self.choice.load(Ordering::Relaxed);
        let pool = if choice == POOL_OTHER {
            &self.other
        } else {
            &self.h2
        };
        let mut sent = pool.request(request()).await;
        if choice == POOL_UNDECIDED {
            let speaks_h2 = match &sent {
                Ok(_) => true,
                // No server is listening, which says nothing about HTTP/2.
                Err(error) if find_dial_error(error).is_some() => false,
                // The server did not understand the first bytes of HTTP/2, so it has not handled the request.
                Err(_) => {
                    sent = self.other.request(request()).await;
                    if sent.is_ok() {
                        self.choice.store(POOL_OTHER, Ordering::Relaxed);
                    }
                    false
                }
            };
            if speaks_h2 {
                self.choice.store(POOL_H2, Ordering::Relaxed);
            }
        }
        match sent {
            Ok(response) => {
                self.target.store_cookies(response.headers());
                Ok(response)
            }
            Err(error) => Err(self.no_response(&error)),
        }
    }

    fn no_response(&self, error: &Error) -> NoResponse {
        let to = self.target.address();
        let dial_error = find_dial_error(error);
        let error = match dial_error {
            Some(ConnectError::Tls { reason, .. }) => ConnectError::Tls {
                to,
                reason: reason.clone(),
            },
            Some(ConnectError::Unreachable { reason, .. }) => ConnectError::Unreachable {
                to,
                reason: reason.clone(),
            },
            _ => ConnectError::Unreachable {
                to,
                reason: error_chain(error),
            },
        };
        NoResponse {
            error,
            was_not_sent: dial_error.is_some(),
        }
    }
}

/// Returns the error from opening a socket, if that caused `error`.
fn find_dial_error(error: &Error) -> Option<&ConnectError> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        match error.downcast_ref::<ConnectError>() {
            Some(error) => return Some(error),
            None => cause = error.source(),
        }
    }
    None
}

fn build_pool(target: &Arc<Target>, alpn: &'static [&'static [u8]], only_h2: bool) -> Pool {
    let options = &target.options;
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_only(only_h2)
        .http2_initial_stream_window_size(512 * 1024)
        .http2_initial_connection_window_size(4 * 1024 * 1024)
        .http2_keep_alive_interval(options.heartbeat)
        .http2_keep_alive_timeout(options.dead_after)
        .http2_keep_alive_while_idle(false)
        .build(Dialer {
            target: Arc::clone(target),
            alpn,
        })
}

/// Opens sockets for a connection pool.
#[derive(Clone)]
struct Dialer {
    target: Arc<Target>,
    alpn: &'static [&'static [u8]],
}

impl Service<Uri> for Dialer {
    type Response = PooledSocket;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<PooledSocket, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let Self { target, alpn } = self.clone();
        Box::pin(async move {
            let socket = dial(&target, alpn).await?;
            Ok(PooledSocket(TokioIo::new(socket)))
        })
    }
}
