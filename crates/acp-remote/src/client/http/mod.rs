//! A streamable HTTP client, which sends messages with POST and receives them from streams.

mod acknowledge;
mod exchange;
mod routes;
mod send;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use acp::Transport;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::acknowledge::Acknowledgements;
use self::exchange::HttpExchange;
use self::routes::Routes;
use super::error::ConnectError;
use super::options::ConnectionStatus;
use super::target::Target;
use crate::CloseStatus;
use crate::header::{self, ResumeTerms};
use crate::pipe::{DroppedHalves, IncomingPipe, OutgoingPipe, pipe_transport};

/// How long to wait at the end of a connection for the streams to end and for the response to DELETE.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to keep retrying a request that could not be sent, if the server does not support the extension.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The streams by session id. The connection's own stream has an empty key.
type StreamHandles = HashMap<String, StreamHandle>;

/// A handle to a stream that is open or being opened.
#[derive(Clone)]
struct StreamHandle {
    state: watch::Receiver<StreamState>,
    /// A token that is cancelled to close the stream.
    closed: CancellationToken,
}

/// The state of a stream, as far as it matters for sending messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    Opening,
    Open,
    /// The server refused to open the stream, because it does not know the session yet.
    Refused,
    Ended,
}

/// A client's connection over HTTP.
struct HttpClient {
    target: Arc<Target>,
    exchange: HttpExchange,
    incoming: Arc<IncomingPipe>,
    outgoing: Arc<OutgoingPipe>,
    gone: Arc<DroppedHalves>,
    work: Arc<Notify>,
    /// A lock that ensures that only one stream at a time passes on a message.
    turn: tokio::sync::Mutex<()>,
    routes: Mutex<Routes>,
    streams: Mutex<StreamHandles>,
    acknowledgements: Acknowledgements,
    /// The connection's id and the terms of the extension, once the server has responded to `initialize`.
    established: OnceLock<EstablishedConnection>,
    /// A token that is cancelled once the connection has ended.
    ended: CancellationToken,
    /// The first failure. The transport reports it to its reader.
    failure: Mutex<Option<ConnectError>>,
    /// Wakes the task that is waiting for the responses to all requests.
    answered: Notify,
    /// Whether the last attempt to reach the server failed.
    is_cut: AtomicBool,
    tasks: TaskTracker,
}

/// The connection's id and the terms of the extension, both known after `initialize`.
struct EstablishedConnection {
    id: HeaderValue,
    terms: Option<ResumeTerms>,
}

/// Creates the transport for a new connection. Sending the first message opens the connection.
pub(super) fn connect(target: Target) -> Transport {
    let target = Arc::new(target);
    let work = Arc::new(Notify::new());
    let gone = Arc::new(DroppedHalves::default());
    let window = target.options.window;
    let incoming = Arc::new(IncomingPipe::new(
        window,
        Arc::clone(&work),
        Arc::clone(&gone),
    ));
    let outgoing = Arc::new(OutgoingPipe::new(
        window,
        false,
        true,
        Arc::clone(&work),
        Arc::clone(&gone),
    ));
    let transport = pipe_transport(Arc::clone(&incoming), Arc::clone(&outgoing));
    let client = Arc::new(HttpClient {
        exchange: HttpExchange::new(Arc::clone(&target)),
        target,
        incoming,
        outgoing,
        gone,
        work,
        turn: tokio::sync::Mutex::default(),
        routes: Mutex::default(),
        streams: Mutex::default(),
        acknowledgements: Acknowledgements::default(),
        established: OnceLock::new(),
        ended: CancellationToken::new(),
        failure: Mutex::default(),
        answered: Notify::new(),
        is_cut: AtomicBool::new(false),
        tasks: TaskTracker::new(),
    });
    tokio::spawn(client.run());
    transport
}

impl HttpClient {
    fn lock_routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_streams(&self) -> MutexGuard<'_, StreamHandles> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resume_terms(&self) -> Option<ResumeTerms> {
        self.established
            .get()
            .and_then(|established| established.terms)
    }

    /// Returns how long to keep trying to restore a connection that was cut, or `None` if messages would be lost.
    fn reconnect_timeout(&self) -> Option<Duration> {
        let terms = self.resume_terms()?;
        Some(self.target.options.reconnect_for.unwrap_or(terms.grace))
    }

    /// Ends the connection. `failure` is `None` if the server has closed it normally.
    fn end_connection(&self, failure: Option<ConnectError>) {
        if !self.ended.is_cancelled() {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
            self.ended.cancel();
        }
    }

    /// Ends the connection because the server has closed it.
    fn close_by_server(&self, status: CloseStatus) {
        self.target
            .options
            .report(&ConnectionStatus::Closed(status.clone()));
        self.end_connection((!status.is_normal()).then_some(ConnectError::Closed(status)));
    }

    /// Reports that the server cannot be reached, unless this has already been reported.
    fn report_cut(&self, reason: &str) {
        if !self.is_cut.swap(true, Ordering::Relaxed) {
            let reason = reason.to_owned();
            self.target
                .options
                .report(&ConnectionStatus::Lost { reason });
        }
    }

    /// Reports that the server can be reached again, unless this has already been reported.
    fn report_restored(&self) {
        if self.is_cut.swap(false, Ordering::Relaxed) {
            self.target.options.report(&ConnectionStatus::Restored);
        }
    }

    /// Runs the connection until it ends.
    async fn run(self: Arc<Self>) {
        let abandoned = async {
            self.gone.wait_for_both_drops().await;
            tokio::time::sleep(CLOSE_TIMEOUT).await;
        };
        let is_local = tokio::select! {
            biased;
            () = self.ended.cancelled() => false,
            sent = self.send_all() => {
                let is_local = sent.is_ok();
                self.end_connection(sent.err());
                is_local
            }
            () = self.acknowledge_all() => false,
            () = abandoned => true,
        };
        if is_local {
            // If this fails, the server ends the connection by itself later.
            let _ = timeout(CLOSE_TIMEOUT, self.send_delete()).await;
        }
        self.ended.cancel();
        // Messages that have already arrived are read before the failure.
        let failure = self
            .failure
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        self.outgoing.close_after(failure.clone().map(Into::into));
        self.incoming.finish(failure.map(Into::into));
        self.tasks.close();
    }

    /// Tells the server that the connection has ended.
    async fn send_delete(&self) {
        if let Some(headers) = self.headers(None) {
            // The response makes no difference.
            let _ = self
                .exchange
                .send(Method::DELETE, headers, Bytes::new())
                .await;
        }
    }

    /// Returns the headers that identify the connection and, if given, the session. Returns `None` before the
    /// connection is established, or if the session id cannot be sent in a header.
    fn headers(&self, session: Option<&str>) -> Option<HeaderMap> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION_ID, self.established.get()?.id.clone());
        if let Some(session) = session.filter(|session| !session.is_empty()) {
            headers.insert(header::SESSION_ID, HeaderValue::from_str(session).ok()?);
        }
        Some(headers)
    }
}
