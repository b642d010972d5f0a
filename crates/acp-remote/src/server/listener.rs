//! Accepts TCP connections, with or without TLS, and passes their requests to a service.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

/// The address of a client, which [`serve`] adds to each request as an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

/// The options for serving sockets.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The TLS configuration, which [`TlsIdentity`](super::TlsIdentity) can create. Without one, sockets are not
    /// encrypted.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// The maximum number of open sockets (1024). Further clients wait.
    pub sockets: usize,
    /// The time limit for receiving a request's headers, and for a TLS handshake (10 s).
    pub header_time: Duration,
    /// The maximum total size of a request's headers, in bytes (16 KiB). Larger headers get status 431.
    pub header_bytes: usize,
    /// The maximum number of requests and streams on one HTTP/2 socket (256).
    pub streams: u32,
    /// Cancel this token to stop accepting sockets. [`serve`] then returns when the open sockets have ended.
    pub shutdown: CancellationToken,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            tls: None,
            sockets: 1024,
            header_time: Duration::from_secs(10),
            header_bytes: 16 * 1024,
            streams: 256,
            shutdown: CancellationToken::new(),
        }
    }
}

super::config::setters! { ServeOptions:
    tls: Option<Arc<rustls::ServerConfig>>,
    sockets: usize,
    header_time: Duration,
    header_bytes: usize,
    streams: u32,
    shutdown: CancellationToken,
}

impl fmt::Debug for ServeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeOptions").finish_non_exhaustive()
    }
}

/// Serves an [`AgentEndpoint`](super::AgentEndpoint), or an axum router that contains one, on all sockets of a
/// listener. Accepts HTTP/1.1 and HTTP/2 (by ALPN, or with prior knowledge), with WebSocket over each.
///
/// Returns when [`ServeOptions::shutdown`] is cancelled and all sockets have ended. Dropping the future does not close
/// open sockets.
///
/// # Errors
/// The listener fails. A lack of file descriptors is not an error: the function waits until there are some.
pub async fn serve<S, B>(listener: TcpListener, service: S, options: ServeOptions) -> io::Result<()>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let sockets = Arc::new(Semaphore::new(options.sockets));
    let tasks = TaskTracker::new();
    loop {
        let accepted = async {
            let permit = Arc::clone(&sockets).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            biased;
            () = options.shutdown.cancelled() => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let serving = serve_socket(stream, peer, service.clone(), options.clone());
                tasks.spawn(async move {
                    let _permit = permit;
                    if let Err(error) = serving.await {
                        tracing::debug!(%peer, %error, "a connection failed");
                    }
                });
            }
            Err(error) if is_temporary(&error) => {
                tracing::warn!(%error, "cannot accept a connection; trying again");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return Err(error),
        }
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Returns `true` if a later `accept` may succeed. The error may affect only one client, or file descriptors may have
/// run out.
fn is_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, InvalidInput};
    !matches!(error.kind(), InvalidInput)
        && (matches!(
            error.kind(),
            ConnectionAborted | ConnectionReset | Interrupted
        ) || error.raw_os_error().is_some())
}

async fn serve_socket<S, B>(
    stream: TcpStream,
    peer: SocketAddr,
    service: S,
    options: ServeOptions,
) -> Result<(), Box<dyn StdError + Send + Sync>>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    crate::socket::configure_socket(&stream)?;
    let Some(tls) = options.tls.clone() else {
        return serve_stream(stream, Some(peer), service, options).await;
    };
    let shaken = timeout(options.header_time, TlsAcceptor::from(tls).accept(stream)).await??;
    serve_stream(shaken, Some(peer), service, options).await
}

/// Runs a service on one stream, such as a Unix-domain socket or a connection whose TLS was terminated elsewhere.
/// Ignores [`ServeOptions::tls`].
///
/// # Errors
/// The stream fails, or the client violates HTTP.
pub async fn serve_stream<S, B>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Option<SocketAddr>,
    service: S,
    options: ServeOptions,
) -> Result<(), Box<dyn StdError + Send + Sync>>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let service = PeerAddressService { service, peer };
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_time)
        .max_buf_size(options.header_bytes.max(8192))
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(options.header_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(options.streams)
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(1024 * 1024)
        .max_send_buf_size(64 * 1024)
        .keep_alive_interval(Duration::from_secs(15))
        .keep_alive_timeout(Duration::from_secs(30))
        .enable_connect_protocol();
    let serving = builder
        .serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(serving);
    tokio::select! {
        biased;
        served = serving.as_mut() => return served,
        () = options.shutdown.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    serving.await
}

/// A service that adds the client's address to each request.
#[derive(Clone)]
struct PeerAddressService<S> {
    service: S,
    peer: Option<SocketAddr>,
}

impl<S: Service<Request<Incoming>>> Service<Request<Incoming>> for PeerAddressService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(
        &mut self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Incoming>) -> S::Future {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(PeerAddress(peer));
        }
        self.service.call(request)
    }
}
