//! A connection: a reader, a writer, and the requests in both directions.
//!
//! Guarantees:
//! - **Order.** Messages are handled one at a time, in the order in which they arrive.
//! - **Back-pressure.** The size of buffered outgoing messages is limited, and senders wait for capacity.
//! - **No deadlock.** The reader never waits for the writer, with one exception: if a peer keeps sending messages that
//!   need error responses, and does not read the responses.
//! - **Nothing left running.** At the end, every pending request fails with one error, and every task ends.
//!
//! The connection knows only one method by name, `$/cancel_request`, because this method is about the connection's own
//! table of requests in flight. All other special treatment depends on types: a [`TextResponse`] has a text that can be
//! large.
//!
//! See `docs/decisions/0002-order-and-back-pressure.md`.

mod driver;
pub(crate) mod frame;
mod incoming;
mod large_text;
mod limits;
mod outbox;
pub(crate) mod outline;
mod pending;
mod reader;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acp_wire::jsonrpc::{self, CancelRequestNotification, RequestId};
use acp_wire::{Notification, Request, TextResponse, read_result};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use self::driver::Driver;
pub(crate) use self::driver::{SpawnFn, timeout};
use self::driver::{SpawnedTask, Tasks};
use self::incoming::InFlightRequests;
pub(crate) use self::incoming::Responder;
pub use self::limits::Limits;
use self::outbox::Outbox;
use self::pending::{LargeText, PendingEntry, PendingFilter, PendingTable};
use crate::error::{CloseReason, Error, Result};
use crate::options::{NoiseHandler, Options};
use crate::transport::{Transport, TransportReader, TransportWriter};

/// How long a closing connection waits for the peer to read the messages already sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long to keep reading after a failed write.
const FINAL_READ_TIMEOUT: Duration = Duration::from_millis(200);

/// Counts of received lines that are not protocol messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Noise {
    /// Lines that are not JSON, such as log output.
    pub lines: u64,
    /// Responses that match no pending request.
    pub unmatched_responses: u64,
    /// Notifications that are invalid or whose method is unknown.
    pub unread_notifications: u64,
}

/// The counters from which [`Noise`] is read.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    lines: AtomicU64,
    unmatched_responses: AtomicU64,
    unread_notifications: AtomicU64,
}

impl Counters {
    /// Counts a notification that is invalid or whose method is unknown.
    pub(crate) fn count_unread_notification(&self) {
        self.unread_notifications.fetch_add(1, Ordering::Relaxed);
    }
}

/// A handler of incoming messages, implemented by each side of the protocol.
pub(crate) trait Handler: Send + Sync + 'static {
    /// A parsed notification, ready for delivery.
    type Event: Send;

    /// The policy for lines that are not messages.
    const NOISE: NoisePolicy;

    /// Starts the work on a request. Requests arrive here in the order in which they were received. This method must
    /// not block.
    fn handle_request(
        self: &Arc<Self>,
        method: &str,
        params: Option<&RawValue>,
        responder: Responder,
    );

    /// Handles a notification. Notifications arrive here in the order in which they were received. This method must not
    /// block, so slow work and application code belong in [`deliver`](Self::deliver).
    fn handle_notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Self::Event>;

    /// Handles a notification like [`handle_notification`](Self::handle_notification), except that `params` may be
    /// invalid JSON. Returns `None` if it is invalid, or to have the notification parsed in the usual way.
    fn handle_plain_notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: &str,
    ) -> Option<Option<Self::Event>> {
        let _ = (conn, method, params);
        None
    }

    /// Delivers an event to the application. The next message waits until this method returns.
    fn deliver(&self, event: Self::Event) -> impl Future<Output = ()> + Send;

    /// Handles the end of the connection.
    fn on_closed(&self, reason: &CloseReason) {
        let _ = reason;
    }
}

/// The policy for received lines that are not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoisePolicy {
    /// Responds with a parse error, as JSON-RPC requires.
    Respond,
    /// Counts the lines and passes them to the callback, because some agents print logs and banners to stdout. Lines
    /// that look like JSON still get a response.
    Skip,
}

/// One end of a connection. Clones are cheap and refer to the same end.
#[derive(Clone)]
pub struct Connection(pub(crate) Arc<ConnectionInner>);

/// The state shared by all clones of a connection.
pub(crate) struct ConnectionInner {
    pub(crate) outbox: Outbox,
    pub(crate) pending: PendingTable,
    pub(crate) in_flight: InFlightRequests,
    pub(crate) counters: Counters,
    pub(crate) limits: Limits,
    pub(crate) on_noise: Option<NoiseHandler>,
    /// Cancelled to stop the reader.
    stop_token: CancellationToken,
    /// Cancelled to abort the work in flight.
    pub(crate) abort_token: CancellationToken,
    /// The tasks that write to the transport and work on requests.
    pub(crate) tasks: Tasks,
    /// Why reading or writing failed, if it has.
    failure: OnceLock<CloseReason>,
    /// Why the connection ended, set once all its work has ended.
    close_reason: watch::Sender<Option<CloseReason>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Creates a connection and its driver.
    pub(crate) fn new<H: Handler>(
        transport: Transport,
        options: Options,
        handler: Arc<H>,
    ) -> (Self, Driver) {
        let Options {
            limits,
            on_noise,
            spawn_fn: spawn,
            ..
        } = options;
        let conn = Self(Arc::new(ConnectionInner {
            // Responses that cannot wait are small. They get four times as much capacity.
            outbox: Outbox::new(limits.outbox, 4 * limits.outbox),
            pending: PendingTable::default(),
            in_flight: InFlightRequests::default(),
            counters: Counters::default(),
            limits,
            on_noise,
            stop_token: CancellationToken::new(),
            abort_token: CancellationToken::new(),
            tasks: Tasks::new(spawn),
            failure: OnceLock::new(),
            close_reason: watch::Sender::new(None),
        }));
        let life = ConnectionTask {
            conn: conn.clone(),
            handler,
            close_reason: None,
        };
        let driver = Driver::new(conn.clone(), life.run(transport));
        (conn, driver)
    }

    /// Closes the outbox and stops the reader.
    fn shut_down(&self, reason: CloseReason) {
        if matches!(reason, CloseReason::Transport(_)) {
            let _ = self.0.failure.set(reason.clone());
        }
        // In this order: once the outbox is closed, the writer ends, and the peer may close its side. Neither must be taken
        // for the reason of the end.
        self.0.stop_token.cancel();
        self.0.outbox.close(reason);
    }

    /// Closes the connection. Messages that were already sent are still written, for up to two seconds.
    pub fn close(&self) {
        self.shut_down(CloseReason::Local);
    }

    /// Waits until the connection has ended and all its work is done, and returns the reason for the end. Work that was
    /// [spawned elsewhere](Options::spawn_work) and takes longer than two seconds may still be polled once more.
    pub async fn closed(&self) -> CloseReason {
        let mut closed = self.0.close_reason.subscribe();
        match closed.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(reason)) => reason.clone(),
            // Unreachable: `self` holds the sender, and the awaited value is a reason.
            Ok(None) | Err(_) => CloseReason::Local,
        }
    }

    /// Returns `true` if the connection is closed or being closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.stop_token.is_cancelled() || self.0.abort_token.is_cancelled()
    }

    /// Returns counts of the received lines that were not protocol messages.
    #[must_use]
    pub fn noise(&self) -> Noise {
        let counters = &self.0.counters;
        Noise {
            lines: counters.lines.load(Ordering::Relaxed),
            unmatched_responses: counters.unmatched_responses.load(Ordering::Relaxed),
            unread_notifications: counters.unread_notifications.load(Ordering::Relaxed),
        }
    }

    /// Sends a request and waits for its response. Dropping the future cancels the request (`$/cancel_request`).
    ///
    /// # Errors
    /// Fails if the peer responds with an error or an invalid result, the connection ends, or the params cannot be
    /// written as JSON. In an update handler, also fails if too many updates are waiting to be processed
    /// ([`Error::Backlog`]).
    pub async fn request<R: Request>(&self, params: &R) -> Result<R::Response> {
        self.request_with(params, RequestOptions::default(), |_| ())
            .await
    }

    /// Sends a request with any method, and returns its result unparsed. See "Custom Requests" on the specification's
    /// page "Extensibility".
    ///
    /// # Errors
    /// Same as for [`request`](Self::request).
    pub async fn request_raw<P: Serialize + Sync + ?Sized>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<Box<RawValue>> {
        self.request_any(method, params, RequestOptions::default(), |answer| {
            answer.map(ToOwned::to_owned)
        })
        .await
    }

    /// Sends a request like [`request`](Self::request). The outcome goes to `on_answer` even if the future was dropped.
    /// `on_answer` runs in the reader, before the next message is handled.
    pub(crate) async fn request_with<R: Request>(
        &self,
        params: &R,
        ask: RequestOptions,
        on_answer: impl FnOnce(Result<&R::Response, &Error>) + Send + 'static,
    ) -> Result<R::Response> {
        self.request_any(R::METHOD, params, ask, |answer| {
            let answer = answer.and_then(|raw| {
                read_result::<R::Response>(R::METHOD, raw)
                    .map_err(|error| Error::unreadable_response(R::METHOD, &error))
            });
            on_answer(answer.as_ref());
            answer
        })
        .await
    }

    /// Sends a request with any method. `read` runs in the reader and converts the response.
    pub(crate) async fn request_any<P: Serialize + ?Sized, T: Send + 'static>(
        &self,
        method: &str,
        params: &P,
        ask: RequestOptions,
        read: impl FnOnce(Result<&RawValue>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.send_request(method, params, ask, None, read).await
    }

    /// Sends a request like [`request`](Self::request), but decodes a large text in the response as it arrives, so that
    /// only one copy of it is in memory.
    pub(crate) async fn request_text<R: Request<Response: TextResponse>>(
        &self,
        params: &R,
    ) -> Result<R::Response> {
        let text = LargeText::for_request::<R>();
        let large = text.clone();
        let read = move |answer: Result<&RawValue>| {
            let mut response = read_result::<R::Response>(R::METHOD, answer?)
                .map_err(|error| Error::unreadable_response(R::METHOD, &error))?;
            if let Some(text) = large.take() {
                *response.text_mut() = text;
            }
            Ok(response)
        };
        let ask = RequestOptions::default();
        self.send_request(R::METHOD, params, ask, Some(text), read)
            .await
    }

    /// Sends a request and waits for its response. A large text in the response is stored in `text`.
    async fn send_request<P: Serialize + ?Sized, T: Send + 'static>(
        &self,
        method: &str,
        params: &P,
        ask: RequestOptions,
        text: Option<LargeText>,
        read: impl FnOnce(Result<&RawValue>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let waiting = PendingEntry {
            on_response: Box::new(move |answer| {
                // This fails if the future was dropped.
                let _ = sender.send(read(answer));
            }),
            is_ordered: ask.is_ordered,
            large_text: text,
        };
        let id = RequestId::Number(self.0.pending.add(waiting)?);
        let mut call = RequestGuard {
            conn: self,
            id,
            sent: false,
            cancel_on_drop: ask.cancel_on_drop,
        };
        self.0
            .outbox
            .push(|buf| jsonrpc::write_request(buf, &call.id, method, params))
            .await
            .map_err(Error::Closed)?
            .map_err(|e| Error::NotSerializable {
                method: method.to_owned(),
                reason: e.to_string(),
            })?;
        call.sent = true;
        receiver
            .await
            .unwrap_or(Err(Error::Closed(CloseReason::Local)))
    }

    /// Sends a notification. If the peer reads slowly, waits for capacity in the outbox.
    ///
    /// # Errors
    /// Fails if the connection has ended or the params cannot be written as JSON ([`Error::NotSerializable`]).
    pub async fn notify<N: Notification>(&self, params: &N) -> Result<()> {
        self.notify_raw(N::METHOD, params).await
    }

    /// Sends a notification with any method. See "Custom Notifications" on the specification's page "Extensibility".
    ///
    /// # Errors
    /// Same as for [`notify`](Self::notify).
    pub async fn notify_raw<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Result<()> {
        self.0
            .outbox
            .push(|buf| jsonrpc::write_notification(buf, method, params))
            .await
            .map_err(Error::Closed)?
            .map_err(|e| Error::NotSerializable {
                method: method.to_owned(),
                reason: e.to_string(),
            })
    }

    /// Sends the message that `write` produces, without waiting. If the peer has stopped reading, a task sends the
    /// message once there is capacity. The number of such messages is limited, because each one ends a request in
    /// flight, a turn or a terminal.
    fn send_without_waiting<T: Send>(
        &self,
        mut write: impl FnMut(&mut Vec<u8>) -> T + Send + 'static,
    ) {
        if self.0.outbox.push_now(&mut write).is_some() {
            return;
        }
        let conn = self.clone();
        self.spawn_until_aborted(Box::pin(async move {
            let _ = conn.0.outbox.push(write).await;
        }));
    }

    /// Starts a task that is dropped when the connection is aborted.
    pub(crate) fn spawn_until_aborted(&self, task: SpawnedTask) {
        let aborted = self.0.abort_token.clone();
        self.0.tasks.spawn(Box::pin(async move {
            tokio::select! {
                biased;
                () = aborted.cancelled() => {}
                () = task => {}
            }
        }));
    }

    /// Sends a notification without waiting.
    pub(crate) fn notify_now<N: Notification + Sync>(&self, params: N) {
        self.send_without_waiting(move |buf| jsonrpc::write_notification(buf, N::METHOD, &params));
    }

    /// Sends a request without waiting, and ignores its response.
    pub(crate) fn request_now<R: Request + Sync>(&self, params: R) {
        let waiting = PendingEntry {
            on_response: Box::new(|_| ()),
            is_ordered: false,
            large_text: None,
        };
        if let Ok(id) = self.0.pending.add(waiting) {
            self.0.pending.abandon(id);
            let id = RequestId::Number(id);
            self.send_without_waiting(move |buf| {
                jsonrpc::write_request(buf, &id, R::METHOD, &params)
            });
        }
    }
}

/// The task that runs a connection from start to end. Dropping it early ends the connection.
struct ConnectionTask<H: Handler> {
    conn: Connection,
    handler: Arc<H>,
    /// Why the connection ended, if it has.
    close_reason: Option<CloseReason>,
}

impl<H: Handler> ConnectionTask<H> {
    /// Runs the connection to its end, and returns the reason.
    async fn run(mut self, transport: Transport) -> CloseReason {
        let Transport {
            mut reader,
            writer,
            close_timeout,
        } = transport;
        let ends_process = !close_timeout.is_zero();
        let writing = self.spawn_writer(writer, ends_process);
        let (conn, handler) = (self.conn.clone(), Arc::clone(&self.handler));
        let inner = &*conn.0;
        let mut reading = Box::pin(reader::read_messages(&conn, &mut reader, &handler));
        let reason = tokio::select! {
            biased;
            () = inner.stop_token.cancelled() => {
                if inner.failure.get().is_some() {
                    // The peer no longer reads. Its earlier messages may explain why.
                    let _ = timeout(FINAL_READ_TIMEOUT, &mut reading).await;
                }
                CloseReason::Local
            }
            // The writer ends last, unless it panicked or its executor dropped it.
            () = writing.wait_until_closed() => {
                CloseReason::Transport(Arc::new(std::io::Error::other("the writer stopped unexpectedly")))
            }
            reason = &mut reading => reason,
        };
        let reason = inner.failure.get().cloned().unwrap_or(reason);
        // Nothing more arrives, so pending requests cannot get a response.
        self.fail_pending(&reason);
        if matches!(reason, CloseReason::Peer) {
            // Requests that the peer sent before it closed its side may finish.
            tokio::select! {
                () = inner.stop_token.cancelled() => {}
                // Wait for the tasks, not the responses: some continue after their response was sent.
                _ = timeout(inner.limits.linger, inner.tasks.wait()) => {}
            }
        }
        self.abort(reason.clone());
        drop(reading);
        let closing = async {
            // Do not wait longer for a peer that has stopped reading, or for a handler that blocks its thread.
            let ended = async {
                writing.wait_until_closed().await;
                inner.tasks.wait().await;
            };
            let ended = timeout(CLOSE_TIMEOUT, ended).await.is_some();
            if !ended && writing.is_written() {
                // Everything has been written. Give the peer time to exit by itself.
                let _ = timeout(close_timeout, writing.wait_until_closed()).await;
            }
        };
        tokio::select! {
            biased;
            () = closing => {}
            // Otherwise a process that prints more than its pipe holds could not exit.
            () = discard_input(reader), if ends_process => {}
        }
        reason
    }

    /// Starts the writer, which is shut down once everything is written. After a failed write, it is shut down only if
    /// doing so ends a process.
    fn spawn_writer(&self, mut writer: TransportWriter, ends_process: bool) -> WriterGuard {
        let writing = WriterGuard::default();
        let (written, given_up) = (writing.written.clone(), writing.abandoned.clone());
        let conn = self.conn.clone();
        // This is dropped even if the task is never polled.
        let ended = writing.closed.clone().drop_guard();
        self.conn.0.tasks.spawn_detached(async move {
            let _ended = ended;
            let failed = |e| conn.shut_down(CloseReason::Transport(Arc::new(e)));
            let writing = async {
                let drained = conn.0.outbox.drain(&mut writer).await;
                let closes = drained.is_ok() || ends_process;
                drained.unwrap_or_else(failed);
                written.cancel();
                if closes {
                    writer.shutdown().await.unwrap_or_else(failed);
                }
            };
            tokio::select! {
                biased;
                () = writing => {}
                () = given_up.cancelled() => {}
            }
        });
        writing
    }

    /// Fails all pending requests, and any sent from now on.
    fn fail_pending(&self, reason: &CloseReason) {
        let error = Error::Closed(reason.clone());
        self.conn.0.pending.close(&error);
        self.conn.0.pending.fail(&error, PendingFilter::All);
    }

    /// Aborts the work in flight and ends the connection.
    fn abort(&mut self, reason: CloseReason) {
        // Set this first, so that `drop` does not repeat the rest if something below panics.
        self.close_reason = Some(reason.clone());
        let inner = &*self.conn.0;
        inner.abort_token.cancel();
        inner.outbox.close(reason.clone());
        reader::catch_panic(|| self.handler.on_closed(&reason));
    }
}

impl<H: Handler> Drop for ConnectionTask<H> {
    fn drop(&mut self) {
        if self.close_reason.is_none() {
            // The driver was dropped.
            self.conn.shut_down(CloseReason::Local);
            self.fail_pending(&CloseReason::Local);
            self.abort(CloseReason::Local);
        }
    }
}

/// Reads and drops input that is no longer needed. Never returns, even at the end of the input, because the caller runs
/// it alongside another future.
async fn discard_input(mut reader: TransportReader) {
    let mut buf = vec![0; 16 * 1024];
    loop {
        match reader.read(&mut buf).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
        // A peer that prints without end must not starve the rest of the connection.
        tokio::task::yield_now().await;
    }
    std::future::pending().await
}

/// A guard for the writer's task. Dropping it aborts the task.
#[derive(Default)]
struct WriterGuard {
    /// Cancelled when everything has been written or a write has failed.
    written: CancellationToken,
    /// Cancelled when the writer has also been closed.
    closed: CancellationToken,
    /// Cancelled to abort the writer.
    abandoned: CancellationToken,
}

impl WriterGuard {
    fn is_written(&self) -> bool {
        self.written.is_cancelled()
    }

    /// Waits until the writer has been closed.
    async fn wait_until_closed(&self) {
        self.closed.cancelled().await;
    }
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

/// Options for sending a request and handling its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestOptions {
    /// Whether the response waits until all earlier updates have been handled, even if an update handler is slow.
    pub(crate) is_ordered: bool,
    /// Whether dropping the future sends `$/cancel_request`, rather than just ignoring the response.
    pub(crate) cancel_on_drop: bool,
}

impl Default for RequestOptions {
    fn default() -> Self {
        Self {
            is_ordered: false,
            cancel_on_drop: true,
        }
    }
}

/// A guard that cancels or abandons a pending request when its future is dropped.
struct RequestGuard<'a> {
    conn: &'a Connection,
    id: RequestId,
    sent: bool,
    cancel_on_drop: bool,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        if self.sent && !self.cancel_on_drop {
            if let RequestId::Number(id) = self.id {
                self.conn.0.pending.abandon(id);
            }
            return;
        }
        // `None` if the response has arrived.
        let Some(waiting) = self.conn.0.pending.take(&self.id) else {
            return;
        };
        if self.sent {
            self.conn
                .notify_now(CancelRequestNotification::new(self.id.clone()));
        }
        (waiting.on_response)(Err(Error::Cancelled));
    }
}
