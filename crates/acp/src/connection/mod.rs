//! The connection: one reader, one writer, one table of requests that wait for an answer.
//!
//! What it promises:
//! - **Order.** Messages are looked at in the order they arrived, one after the other.
//! - **Back-pressure.** What is to be sent is bounded in bytes; who sends waits for room.
//! - **No deadlock between the two.** The reader never waits for the writer, except for room to
//!   answer a peer that floods it with what must be answered and reads none of the answers.
//! - **Nothing left behind.** At the end every waiting request fails with one error, and every task
//!   ends.
//!
//! See `docs/decisions/0002-order-and-back-pressure.md`.

mod driver;
pub(crate) mod frame;
mod incoming;
mod large_text;
mod limits;
pub(crate) mod memory;
mod outbox;
pub(crate) mod outline;
mod pending;
mod reader;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acp_wire::jsonrpc::{self, CancelRequestNotification, RequestId};
use acp_wire::v1::{ReadTextFileRequest, ReadTextFileResponse};
use acp_wire::{Notification, Request, read_result};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

pub use self::driver::Driver;
use self::driver::Tasks;
pub(crate) use self::driver::{SpawnFn, timeout};
use self::incoming::InFlightRequests;
pub(crate) use self::incoming::Responder;
pub use self::limits::Limits;
use self::outbox::Outbox;
use self::pending::{LargeText, PendingEntry, PendingFilter, PendingTable};
use crate::error::{CloseReason, Error, Result};
use crate::options::{NoiseHandler, Options};
use crate::transport::{Transport, TransportReader, TransportWriter};

/// How long the end of a connection waits for the peer to take what was sent before.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long what a peer has said is still read once nothing can be written to it any more.
const LAST_READ: Duration = Duration::from_millis(200);

/// What a connection has seen that is no message of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Noise {
    /// Lines that are not JSON, such as log output.
    pub lines: u64,
    /// Answers to nothing that was asked.
    pub unmatched_responses: u64,
    /// Notifications that could not be read or are unknown.
    pub unread_notifications: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    lines: AtomicU64,
    unmatched_responses: AtomicU64,
    unread_notifications: AtomicU64,
}

impl Counters {
    pub(crate) fn count_unread(&self) {
        self.unread_notifications.fetch_add(1, Ordering::Relaxed);
    }
}

/// A side of the protocol: what is done with what arrives.
pub(crate) trait Handler: Send + Sync + 'static {
    /// A notification that has been read and waits to be delivered.
    type Event: Send;

    /// What to do with lines that are no messages.
    const NOISE: NoisePolicy;

    /// Looks at a request, in the order of the wire, and starts working on it. Must not block.
    fn request(self: &Arc<Self>, method: &str, params: Option<&RawValue>, responder: Responder);

    /// Looks at a notification, in the order of the wire. Must not block. What takes time, or is the
    /// user's code, goes into the event.
    fn notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Self::Event>;

    /// As [`notification`](Self::notification), for one whose params are this text, of which is not known yet
    /// whether it is JSON. `None` if it is not, or if they are better looked at as those of any other.
    fn plain_notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: &str,
    ) -> Option<Option<Self::Event>> {
        let _ = (conn, method, params);
        None
    }

    /// Delivers an event. The next message is looked at when this is done.
    fn deliver(&self, event: Self::Event) -> impl Future<Output = ()> + Send;

    /// The connection is over.
    fn closed(&self, reason: &CloseReason) {
        let _ = reason;
    }
}

/// What to do with lines that are not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoisePolicy {
    /// Answer with a parse error, as JSON-RPC says.
    Respond,
    /// Count and show them: agents are known to print logs and banners to stdout. What looks like
    /// JSON is answered all the same.
    Skip,
}

/// One end of a connection. Cloning it is cheap; all clones are the same end.
#[derive(Clone)]
pub struct Connection(pub(crate) Arc<ConnectionInner>);

pub(crate) struct ConnectionInner {
    pub(crate) outbox: Outbox,
    pub(crate) pending: PendingTable,
    pub(crate) in_flight: InFlightRequests,
    pub(crate) counters: Counters,
    pub(crate) limits: Limits,
    pub(crate) on_noise: Option<NoiseHandler>,
    /// The reader is to stop.
    stop_token: CancellationToken,
    /// What is being worked on is to be dropped.
    pub(crate) abort_token: CancellationToken,
    /// Writing, and the work on the peer's requests.
    pub(crate) tasks: Tasks,
    /// How reading or writing failed, if it did.
    failure: OnceLock<CloseReason>,
    /// Why it ended, once everything has.
    close_reason: watch::Sender<Option<CloseReason>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection, and what moves it.
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
            // An answer that cannot wait is small; what is kept for them is four times as much.
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
        let life = ConnectionLife {
            conn: conn.clone(),
            handler,
            close_reason: None,
        };
        let driver = Driver::new(conn.clone(), life.run(transport));
        (conn, driver)
    }

    fn shut_down(&self, reason: CloseReason) {
        if matches!(reason, CloseReason::Transport(_)) {
            let _ = self.0.failure.set(reason.clone());
        }
        self.0.outbox.close(reason);
        self.0.stop_token.cancel();
    }

    /// Closes the connection. What has been sent before is still written, for two seconds at most.
    pub fn close(&self) {
        self.shut_down(CloseReason::Local);
    }

    /// Waits until the connection has ended and nothing of it runs any more, and tells why it did. Work that was
    /// [spawned elsewhere](Options::spawn_work) may have one poll to go, if it did not end in two seconds.
    pub async fn closed(&self) -> CloseReason {
        let mut closed = self.0.close_reason.subscribe();
        match closed.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(reason)) => reason.clone(),
            // Both are impossible: the sender is here, and what is waited for is a reason.
            Ok(None) | Err(_) => CloseReason::Local,
        }
    }

    /// Whether the connection is ending or has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.stop_token.is_cancelled() || self.0.abort_token.is_cancelled()
    }

    /// What was seen that is no message of the protocol.
    #[must_use]
    pub fn noise(&self) -> Noise {
        let counters = &self.0.counters;
        Noise {
            lines: counters.lines.load(Ordering::Relaxed),
            unmatched_responses: counters.unmatched_responses.load(Ordering::Relaxed),
            unread_notifications: counters.unread_notifications.load(Ordering::Relaxed),
        }
    }

    /// Sends a request and waits for its answer. Dropping the future cancels the request
    /// (`$/cancel_request`).
    ///
    /// # Errors
    /// The peer's error answer, an answer that cannot be read, the end of the connection, params that are no
    /// JSON, or, from within an update handler, too much that it has not taken ([`Error::Backlog`]).
    pub async fn request<R: Request>(&self, params: &R) -> Result<R::Response> {
        self.request_with(params, RequestOptions::default(), |_| ())
            .await
    }

    /// Sends a request of any method and waits for its answer as it comes: Extensibility, "Custom Requests".
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn request_raw<P: Serialize + Sync + ?Sized>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<Box<RawValue>> {
        self.call(method, params, RequestOptions::default(), |answer| {
            answer.map(ToOwned::to_owned)
        })
        .await
    }

    /// As [`request`](Self::request); `on_response` sees what became of it, even when the future was
    /// dropped. It sees an answer on the reader, before the next message is looked at.
    pub(crate) async fn request_with<R: Request>(
        &self,
        params: &R,
        ask: RequestOptions,
        on_answer: impl FnOnce(Result<&R::Response, &Error>) + Send + 'static,
    ) -> Result<R::Response> {
        self.call(R::METHOD, params, ask, |answer| {
            let answer = answer.and_then(|raw| {
                read_result::<R::Response>(R::METHOD, raw)
                    .map_err(|error| Error::unreadable_response(R::METHOD, &error))
            });
            on_answer(answer.as_ref());
            answer
        })
        .await
    }

    /// Sends a request of any method; `read` makes of its answer, on the reader, what this gives.
    pub(crate) async fn call<P: Serialize + ?Sized, T: Send + 'static>(
        &self,
        method: &str,
        params: &P,
        ask: RequestOptions,
        read: impl FnOnce(Result<&RawValue>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.send_request(method, params, ask, None, read).await
    }

    /// Reads a text file. A large text is read while it arrives, so that it is in memory once.
    pub(crate) async fn read_text_file(
        &self,
        request: &ReadTextFileRequest,
    ) -> Result<ReadTextFileResponse> {
        const METHOD: &str = ReadTextFileRequest::METHOD;
        let text = LargeText::default();
        let large = text.clone();
        let read = move |answer: Result<&RawValue>| {
            let mut response = read_result::<ReadTextFileResponse>(METHOD, answer?)
                .map_err(|error| Error::unreadable_response(METHOD, &error))?;
            if let Some(text) = large.take() {
                response.content = text;
            }
            Ok(response)
        };
        self.send_request(METHOD, request, RequestOptions::default(), Some(text), read)
            .await
    }

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
                // Nobody waits any more: the future was dropped.
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
            .map_err(|e| Error::Unwritable {
                method: method.to_owned(),
                reason: e.to_string(),
            })?;
        call.sent = true;
        receiver
            .await
            .unwrap_or(Err(Error::Closed(CloseReason::Local)))
    }

    /// Sends a notification; waits for room when the peer reads slowly.
    ///
    /// # Errors
    /// The end of the connection, or params that are no JSON ([`Error::Unwritable`]).
    pub async fn notify<N: Notification>(&self, params: &N) -> Result<()> {
        self.notify_raw(N::METHOD, params).await
    }

    /// Sends a notification of any method: Extensibility, "Custom Notifications".
    ///
    /// # Errors
    /// As [`notify`](Self::notify).
    pub async fn notify_raw<P: Serialize + ?Sized>(&self, method: &str, params: &P) -> Result<()> {
        self.0
            .outbox
            .push(|buf| jsonrpc::write_notification(buf, method, params))
            .await
            .map_err(Error::Closed)?
            .map_err(|e| Error::Unwritable {
                method: method.to_owned(),
                reason: e.to_string(),
            })
    }

    /// Sends what `spawn_writer` writes, from where one cannot wait: at once, or, when the peer has long stopped
    /// reading, as soon as there is room. There are not more of these than of what they end: requests that are
    /// worked on, turns, terminals.
    fn send_soon<T: Send>(&self, mut write: impl FnMut(&mut Vec<u8>) -> T + Send + 'static) {
        if self.0.outbox.push_now(&mut write).is_some() {
            return;
        }
        let conn = self.clone();
        self.0.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = conn.0.abort_token.cancelled() => {}
                _ = conn.0.outbox.push(write) => {}
            }
        });
    }

    /// Sends a notification from where one cannot wait.
    pub(crate) fn notify_now<N: Notification + Sync>(&self, params: N) {
        self.send_soon(move |buf| jsonrpc::write_notification(buf, N::METHOD, &params));
    }

    /// Sends a request from where one cannot wait, and does not look at its answer.
    pub(crate) fn request_now<R: Request + Sync>(&self, params: R) {
        let waiting = PendingEntry {
            on_response: Box::new(|_| ()),
            is_ordered: false,
            large_text: None,
        };
        if let Ok(id) = self.0.pending.add(waiting) {
            self.0.pending.abandon(id);
            let id = RequestId::Number(id);
            self.send_soon(move |buf| jsonrpc::write_request(buf, &id, R::METHOD, &params));
        }
    }
}

/// The life of a connection, from the first byte to the last. Dropped before its end, it ends the connection.
struct ConnectionLife<H: Handler> {
    conn: Connection,
    handler: Arc<H>,
    /// Why it is over, once it is.
    close_reason: Option<CloseReason>,
}

impl<H: Handler> ConnectionLife<H> {
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
        let mut reading = Box::pin(reader::read(&conn, &mut reader, &handler));
        let reason = tokio::select! {
            biased;
            () = inner.stop_token.cancelled() => {
                if inner.failure.get().is_some() {
                    // It reads no more. What it has said before it went is the best hint at why.
                    let _ = timeout(LAST_READ, &mut reading).await;
                }
                CloseReason::Local
            }
            // It ends last, unless it panicked or its executor dropped it.
            () = writing.wait_closed() => {
                CloseReason::Transport(Arc::new(std::io::Error::other("the writer is gone")))
            }
            reason = &mut reading => reason,
        };
        let reason = inner.failure.get().cloned().unwrap_or(reason);
        // Nothing more arrives: who waits for an answer waits in vain.
        self.fail_pending(&reason);
        if matches!(reason, CloseReason::Peer) {
            // What the peer asked for before it closed its side may come to its end.
            tokio::select! {
                () = inner.stop_token.cancelled() => {}
                // The tasks, not the answers: some go on after their answer has been sent.
                _ = timeout(inner.limits.linger, inner.tasks.wait()) => {}
            }
        }
        self.abort(reason.clone());
        drop(reading);
        let closing = async {
            // A peer that has stopped reading is not waited for, nor is a handler that blocks its thread.
            let ended = async {
                writing.wait_closed().await;
                inner.tasks.wait().await;
            };
            let ended = timeout(LAST_WORDS, ended).await.is_some();
            if !ended && writing.is_written() {
                // All has been taken: the peer may end by itself.
                let _ = timeout(close_timeout, writing.wait_closed()).await;
            }
        };
        tokio::select! {
            biased;
            () = closing => {}
            // A process that prints more than its pipe holds could not end otherwise.
            () = discard_input(reader), if ends_process => {}
        }
        reason
    }

    /// Begins to write what is sent. In the end the writer is closed: unless writing has failed, or also then, if it is
    /// what ends a process.
    fn spawn_writer(&self, mut writer: TransportWriter, ends_process: bool) -> WriterGuard {
        let writing = WriterGuard::default();
        let (written, given_up) = (writing.written.clone(), writing.abandoned.clone());
        let conn = self.conn.clone();
        // Also if it is dropped before it is polled.
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

    fn fail_pending(&self, reason: &CloseReason) {
        let error = Error::Closed(reason.clone());
        self.conn.0.pending.close(&error);
        self.conn.0.pending.fail(&error, PendingFilter::All);
    }

    /// Ends what is being worked on.
    fn abort(&mut self, reason: CloseReason) {
        // First: if something below panics, this is not done again.
        self.close_reason = Some(reason.clone());
        let inner = &*self.conn.0;
        inner.abort_token.cancel();
        inner.outbox.close(reason.clone());
        reader::catch_panic(|| self.handler.closed(&reason));
    }
}

impl<H: Handler> Drop for ConnectionLife<H> {
    fn drop(&mut self) {
        if self.close_reason.is_none() {
            // The driver was dropped.
            self.conn.shut_down(CloseReason::Local);
            self.fail_pending(&CloseReason::Local);
            self.abort(CloseReason::Local);
        }
    }
}

/// Reads what nobody looks at any more, and drops it. Does not return, not even at the end of the input: whoever waits
/// beside it waits for something else.
async fn discard_input(mut reader: TransportReader) {
    let mut buf = vec![0; 16 * 1024];
    loop {
        match reader.read(&mut buf).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
        // One that prints without end must not keep the rest of the connection waiting.
        tokio::task::yield_now().await;
    }
    std::future::pending().await
}

/// The writer, wherever it runs. Dropping this gives it up.
#[derive(Default)]
struct WriterGuard {
    /// All has been written, or cannot be.
    written: CancellationToken,
    /// It is closed as well.
    closed: CancellationToken,
    abandoned: CancellationToken,
}

impl WriterGuard {
    fn is_written(&self) -> bool {
        self.written.is_cancelled()
    }

    /// Waits until all has been written, or cannot be, and the writer is closed.
    async fn wait_closed(&self) {
        self.closed.cancelled().await;
    }
}

impl Drop for WriterGuard {
    fn drop(&mut self) {
        self.abandoned.cancel();
    }
}

/// How a request is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestOptions {
    /// Its answer is not seen before the updates that arrived ahead of it, even while an update
    /// handler is slow.
    pub(crate) is_ordered: bool,
    /// Dropping the future sends `$/cancel_request`. Otherwise its answer is awaited by nobody.
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

/// A request whose future may be dropped before it is answered.
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
        // Gone if it has been answered.
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
