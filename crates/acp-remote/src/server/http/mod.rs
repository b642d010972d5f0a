//! Serves streamable HTTP. Handles POST, GET and DELETE requests, and runs the task of each connection.

mod events;
mod get;
mod initialize;
mod post;
mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub(super) use self::events::EventStream;
use self::streams::Streams;
use super::access::Refusal;
use super::body::ResponseBody;
use super::config::ServerConfig;
use super::handler::{ConnectionHandler, ConnectionInfo};
use super::registry::{Registry, ServedConnection, UNKNOWN_CONNECTION, increment};
use super::responses::text_response;
use crate::CloseStatus;
use crate::header;
use crate::pipe::{DroppedHalves, IncomingPipe, pipe_transport};

pub(super) use self::get::get;
pub(super) use self::post::{PERMIT_BYTES, handle_post};

/// How long a handler may keep running after its client is gone.
const LINGER_TIME: Duration = Duration::from_secs(30);

/// The server's side of an HTTP connection.
pub(super) struct HttpConnection {
    pub(super) incoming: Arc<IncomingPipe>,
    pub(super) streams: Arc<Streams>,
    /// A lock that lets only one POST at a time write its messages to `incoming`. Its value is the position after the
    /// last message.
    pub(super) inbox: Mutex<u64>,
    rate: std::sync::Mutex<RateLimiter>,
    /// The number of POSTs that are being received.
    posts: AtomicUsize,
    /// Cancelled when the client ends the connection.
    ended: CancellationToken,
}

impl HttpConnection {
    fn new(config: &ServerConfig, resumes: Option<usize>) -> Self {
        let limits = &config.limits;
        // Responses to POSTs acknowledge what was read.
        let work = Arc::new(Notify::new());
        let gone = Arc::new(DroppedHalves::default());
        Self {
            incoming: Arc::new(IncomingPipe::new(limits.window, work, gone)),
            streams: Arc::new(Streams::new(limits, resumes)),
            inbox: Mutex::new(0),
            rate: std::sync::Mutex::new(RateLimiter::new(limits.request_rate)),
            posts: AtomicUsize::new(0),
            ended: CancellationToken::new(),
        }
    }

    /// Counts a POST as being received until the returned guard is dropped.
    fn begin_post(self: &Arc<Self>) -> PostInProgress {
        self.posts.fetch_add(1, Ordering::Relaxed);
        PostInProgress(Arc::clone(self))
    }

    /// Returns `true` if the client has no open stream and is not sending anything.
    fn is_client_away(&self) -> bool {
        self.posts.load(Ordering::Relaxed) == 0 && !self.streams.is_any_open()
    }

    /// Counts a request. Returns `false` if it exceeds the limit on requests per second.
    fn is_within_rate(&self) -> bool {
        let limiter = self.rate.lock();
        limiter
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take()
    }
}

/// A guard that counts a POST as being received until it is dropped.
struct PostInProgress(Arc<HttpConnection>);

impl Drop for PostInProgress {
    fn drop(&mut self) {
        self.0.posts.fetch_sub(1, Ordering::Relaxed);
        self.0.streams.touch();
    }
}

/// A token bucket that limits the number of requests per second.
#[derive(Debug)]
struct RateLimiter {
    per_second: f64,
    left: f64,
    since: Instant,
}

impl RateLimiter {
    /// The maximum size of a burst, as a multiple of the number of requests allowed per second.
    const BURST_SIZE: f64 = 10.0;

    fn new(per_second: u32) -> Self {
        let per_second = f64::from(per_second);
        Self {
            per_second,
            left: per_second * Self::BURST_SIZE,
            since: Instant::now(),
        }
    }

    fn take(&mut self) -> bool {
        let now = Instant::now();
        let refill = now.duration_since(self.since).as_secs_f64() * self.per_second;
        self.since = now;
        self.left = (self.left + refill).min(self.per_second * Self::BURST_SIZE);
        let is_allowed = self.left >= 1.0;
        if is_allowed {
            self.left -= 1.0;
        }
        is_allowed
    }
}

/// Finds the connection that a request refers to.
pub(super) fn find_connection(
    registry: &Registry,
    headers: &HeaderMap,
) -> Result<(String, Arc<HttpConnection>), Refusal> {
    let Some(id) = headers.get(header::CONNECTION_ID) else {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "the Acp-Connection-Id header is missing",
        ));
    };
    let id = id.to_str().unwrap_or_default();
    match registry.get(id) {
        Some(ServedConnection::Http(connection)) => Ok((id.to_owned(), connection)),
        _ => Err(Refusal::new(StatusCode::NOT_FOUND, UNKNOWN_CONNECTION)),
    }
}

/// Returns the session id from the request headers, if there is one.
fn parse_session_header(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = headers.get(header::SESSION_ID) else {
        return Ok(None);
    };
    match std::str::from_utf8(value.as_bytes()) {
        Ok(session) if !session.is_empty() && session.len() <= 1024 => Ok(Some(session.to_owned())),
        _ => Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "the Acp-Session-Id header is invalid",
        )),
    }
}

/// Responds to DELETE, which ends a connection.
pub(super) fn delete_connection(
    registry: &Registry,
    headers: &HeaderMap,
) -> Response<ResponseBody> {
    match find_connection(registry, headers) {
        Ok((id, connection)) => {
            registry.remove(&id);
            connection.ended.cancel();
            text_response(StatusCode::ACCEPTED, "")
        }
        Err(refused) => refused.into(),
    }
}

/// Runs the handler of a connection until it has ended and the client has been notified.
async fn run_connection<H: ConnectionHandler>(
    handler: Arc<H>,
    registry: Arc<Registry>,
    info: ConnectionInfo,
    connection: Arc<HttpConnection>,
    grace: Duration,
) {
    let (incoming, streams) = (&connection.incoming, &connection.streams);
    let transport = pipe_transport(Arc::clone(incoming), Arc::clone(streams));
    let handling = handler.handle(info.clone(), transport);
    let watching = watch_client(&connection, grace);
    let draining = async {
        registry.draining.cancelled().await;
        incoming.finish(None);
        std::future::pending::<()>().await;
    };
    tokio::pin!(handling, watching, draining);
    let going_away = || CloseStatus::new(CloseStatus::GOING_AWAY, "the server is shutting down");
    let linger = |is_abandoned: bool| {
        if is_abandoned {
            increment(&registry.counters.abandoned);
        }
        registry.remove(&info.id);
        incoming.finish(None);
    };
    let status = tokio::select! {
        status = &mut handling => Some(status),
        () = connection.ended.cancelled() => {
            linger(false);
            None
        }
        () = &mut watching => {
            linger(true);
            None
        }
        () = registry.killed.cancelled() => Some(going_away()),
        () = &mut draining => None,
    };
    match status {
        Some(status) => {
            let is_draining = registry.draining.is_cancelled() && status.is_normal();
            streams.close(if is_draining { going_away() } else { status });
            tokio::select! {
                // The client reads the rest, and can come back for it.
                () = streams.wait_until_drained() => {}
                () = connection.ended.cancelled() => {}
                () = &mut watching => {}
                () = registry.killed.cancelled() => {
                    let _ = timeout(Duration::from_secs(1), streams.wait_until_drained()).await;
                }
            }
        }
        None => {
            // Nobody reads any more, so writing must not wait for a reader.
            streams.close(CloseStatus::normal());
            streams.discard();
            tokio::select! {
                _ = timeout(LINGER_TIME, &mut handling) => {}
                () = registry.killed.cancelled() => {}
            }
        }
    }
    streams.discard();
    registry.remove(&info.id);
    tracing::debug!(id = info.id, "connection ended");
}

/// Waits until the client has been away for too long.
async fn watch_client(connection: &HttpConnection, grace: Duration) {
    // With the extension off, a client still needs time between `initialize` and its first stream.
    let grace = grace.max(Duration::from_secs(5));
    loop {
        let away = connection.streams.idle_time();
        if !connection.is_client_away() {
            tokio::time::sleep(grace / 4).await;
        } else if away >= grace {
            return;
        } else {
            tokio::time::sleep((grace - away).min(grace / 4)).await;
        }
    }
}
