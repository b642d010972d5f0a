//! Requests in flight: received, but without a response yet.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use acp_wire::TextResponse;
use acp_wire::jsonrpc::{self, RequestId};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::driver::{SpawnedTask, Tasks};
use super::frame::MIN_LARGE_TEXT_BYTES;
use super::outbox::LargeTextMessage;
use super::{Connection, Limits};
use crate::error::Error;

/// The work on a request, which results in its response.
///
/// It is boxed where it is started, and its type is erased. Each agent and each client has a type of work for every
/// method. Without the box, all that follows would be compiled again for each of these types, and each future that the
/// work is passed to would reserve space for it again.
type BoxedWork<R> = Pin<Box<dyn Future<Output = Result<R, Error>> + Send>>;

/// The table of a connection's requests in flight.
#[derive(Default)]
pub(crate) struct InFlightRequests(Mutex<InFlightTable>);

#[derive(Default)]
struct InFlightTable {
    requests: HashMap<RequestId, InFlightEntry>,
    /// The memory used by all requests together, in bytes.
    memory: usize,
}

struct InFlightEntry {
    cancel_token: CancellationToken,
    /// The memory used by the request, in bytes.
    memory: usize,
}

impl InFlightTable {
    /// Checks that `more` bytes are within the memory limit. They always are if no other request is in flight
    /// (`alone`), because a request is never larger than the maximum size of a message.
    fn check_capacity(&self, more: usize, alone: bool, limits: &Limits) -> Result<(), String> {
        let limit = limits.request_memory;
        if alone || self.memory.saturating_add(more) <= limit {
            return Ok(());
        }
        Err(format!(
            "too many concurrent requests: the limit is {limit} bytes in total"
        ))
    }
}

impl InFlightRequests {
    fn lock(&self) -> MutexGuard<'_, InFlightTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request that uses `memory` bytes. Fails if a limit is exceeded or the id is in use.
    ///
    /// # Errors
    /// There are too many requests, or the id is in use. The error is the response to send.
    pub(crate) fn add(
        &self,
        id: &RequestId,
        cancel: CancellationToken,
        memory: usize,
        limits: &Limits,
    ) -> Result<(), jsonrpc::Error> {
        let mut table = self.lock();
        if table.requests.len() >= limits.requests {
            let limit = limits.requests;
            let text = format!("too many concurrent requests: the limit is {limit}");
            return Err(jsonrpc::Error::internal(text));
        }
        if table.requests.contains_key(id) {
            return Err(jsonrpc::Error::new(
                jsonrpc::Error::INVALID_REQUEST,
                "Invalid request: a request with this id is already in flight",
            ));
        }
        table
            .check_capacity(memory, table.requests.is_empty(), limits)
            .map_err(jsonrpc::Error::internal)?;
        table.memory = table.memory.saturating_add(memory);
        table.requests.insert(
            id.clone(),
            InFlightEntry {
                cancel_token: cancel,
                memory,
            },
        );
        Ok(())
    }

    /// Increases a request's memory by `more` bytes. Fails if that exceeds the limit.
    fn add_memory(&self, id: &RequestId, more: usize, limits: &Limits) -> Result<(), String> {
        let mut table = self.lock();
        table.check_capacity(more, table.requests.len() <= 1, limits)?;
        if let Some(entry) = table.requests.get_mut(id) {
            entry.memory = entry.memory.saturating_add(more);
            table.memory = table.memory.saturating_add(more);
        }
        Ok(())
    }

    /// Removes a request, and releases its memory.
    fn remove(&self, id: &RequestId) {
        let mut table = self.lock();
        if let Some(entry) = table.requests.remove(id) {
            table.memory = table.memory.saturating_sub(entry.memory);
        }
    }

    /// Cancels the request given in a `$/cancel_request`. Ignores unknown ids.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(entry) = self.lock().requests.get(id) {
            entry.cancel_token.cancel();
        }
    }
}

/// A handle for responding to a request. Dropping it without a response sends an internal error, so that the peer gets
/// a response even if a handler panics.
#[derive(Debug)]
pub(crate) struct Responder {
    conn: Connection,
    id: Option<RequestId>,
    cancel_token: CancellationToken,
}

impl Responder {
    /// Creates the responder for the request with this id.
    pub(crate) fn new(conn: &Connection, id: RequestId, cancel: CancellationToken) -> Self {
        Self {
            conn: conn.clone(),
            id: Some(id),
            cancel_token: cancel,
        }
    }

    /// Returns the id of the request, or `None` if the response has already been sent.
    pub(crate) fn id(&self) -> Option<RequestId> {
        self.id.clone()
    }

    /// Reserves memory for the work on this request, on top of the request's own memory.
    ///
    /// # Errors
    /// Fails if this exceeds [`Limits::request_memory`].
    pub(crate) fn reserve_memory(&self, more: usize) -> Result<(), Error> {
        let Some(id) = &self.id else { return Ok(()) };
        let inner = &self.conn.0;
        inner
            .in_flight
            .add_memory(id, more, &inner.limits)
            .map_err(Error::internal)
    }

    /// Reserves memory for the response until the peer has read it.
    ///
    /// # Errors
    /// Fails if all requests and responses together exceed [`Limits::request_memory`].
    fn reserve_response_memory(&self, answer: usize) -> Result<(), Error> {
        self.reserve_memory(answer).map_err(|_| {
            Error::internal(format!(
                "unread responses exceed the limit of {} bytes; read them before sending more requests",
                self.conn.0.limits.request_memory
            ))
        })
    }

    /// Returns the token that is cancelled when the peer cancels the request.
    pub(crate) fn cancellation_token(&self) -> &CancellationToken {
        &self.cancel_token
    }

    /// Returns the connection on which the request arrived.
    pub(crate) fn connection(&self) -> &Connection {
        &self.conn
    }

    /// Sends the response. If the future is dropped while waiting for capacity, an internal error is sent instead.
    pub(crate) async fn respond<R: Serialize + Sync>(mut self, result: Result<R, Error>) {
        let Some(id) = self.id.clone() else { return };
        let (outbox, in_flight) = (&self.conn.0.outbox, &self.conn.0.in_flight);
        // The peer may reuse the id as soon as it has the response.
        let answered = |written: &serde_json::Result<()>| {
            if written.is_ok() {
                in_flight.remove(&id);
            }
        };
        let mut written = Ok(Ok(()));
        let error = match result {
            Ok(result) => {
                written = outbox
                    .push(|buf| {
                        let written = jsonrpc::write_result(buf, &id, &result);
                        answered(&written);
                        written
                    })
                    .await;
                match &written {
                    Ok(Err(e)) => Some(jsonrpc::Error::internal(format!(
                        "cannot serialize the response: {e}"
                    ))),
                    _ => None,
                }
            }
            Err(error) => Some(error.into_rpc()),
        };
        if let Some(error) = error {
            written = outbox
                .push(|buf| {
                    let written = jsonrpc::write_error(buf, &id, &error);
                    answered(&written);
                    written
                })
                .await;
        }
        if let Ok(Ok(())) = written {
            self.id = None;
        }
    }

    /// Sends the response like [`respond`](Self::respond), but splits its text into pieces.
    async fn respond_in_pieces(mut self, message: LargeTextMessage) {
        let Some(id) = self.id.take() else { return };
        let conn = self.conn.clone();
        let last = || conn.0.in_flight.remove(&id);
        // This fails only if the connection has ended.
        let _ = conn.0.outbox.push_in_pieces(&message, last).await;
    }

    /// Runs `work` like [`spawn`](Self::spawn), for responses with a potentially large text.
    pub(crate) fn spawn_text<R: TextResponse + Sync>(
        self,
        work: impl Future<Output = Result<R, Error>> + Send + 'static,
    ) {
        self.spawn_boxed_text(Box::pin(work));
    }

    fn spawn_boxed_text<R: TextResponse + Sync>(self, work: BoxedWork<R>) {
        let conn = self.conn.clone();
        let task = Box::pin(async move {
            let answer = match self.or_cancelled(work).await {
                Some(Ok(mut response)) => {
                    match self.reserve_response_memory(response.text_mut().len()) {
                        Ok(()) => split_large_text(self.id.as_ref(), response),
                        Err(error) => {
                            drop(response);
                            return self.respond::<()>(Err(error)).await;
                        }
                    }
                }
                Some(Err(error)) => return self.respond::<()>(Err(error)).await,
                None => return,
            };
            match answer {
                Ok(message) => self.respond_in_pieces(message).await,
                Err(response) => self.respond(Ok(response)).await,
            }
        });
        poll_once_and_spawn(&conn.0.tasks, task);
    }

    /// Returns the result of `work`, [`Error::Cancelled`] if the peer cancels the request, or `None` if the connection
    /// ends.
    async fn or_cancelled<R>(&self, work: BoxedWork<R>) -> Option<Result<R, Error>> {
        tokio::select! {
            biased;
            () = self.conn.0.abort_token.cancelled() => None,
            () = self.cancel_token.cancelled() => Some(Err(Error::Cancelled)),
            result = work => Some(result),
        }
    }

    /// Runs `work` concurrently with the reader and responds with its result. If the peer cancels the request, drops
    /// the work and responds with error code -32800. If the connection ends, also drops the work.
    // Not inlined: otherwise the caller's stack frame would reserve space for every kind of work at once, and the
    // first request would wait for those pages to be mapped.
    #[inline(never)]
    pub(crate) fn spawn<R: Serialize + Send + Sync + 'static>(
        self,
        work: impl Future<Output = Result<R, Error>> + Send + 'static,
    ) {
        self.spawn_boxed(Box::pin(work));
    }

    fn spawn_boxed<R: Serialize + Send + Sync + 'static>(self, work: BoxedWork<R>) {
        let conn = self.conn.clone();
        let task = Box::pin(async move {
            if let Some(result) = self.or_cancelled(work).await {
                self.respond(result).await;
            }
        });
        poll_once_and_spawn(&conn.0.tasks, task);
    }

    /// Runs `work` like [`spawn`](Self::spawn), for potentially large responses. `weigh` returns the response's size in
    /// memory, in bytes.
    pub(crate) fn spawn_sized<R: Serialize + Send + Sync + 'static>(
        self,
        work: impl Future<Output = Result<R, Error>> + Send + 'static,
        weigh: fn(&R) -> usize,
    ) {
        let conn = self.conn.clone();
        let work: BoxedWork<R> = Box::pin(work);
        let task = Box::pin(async move {
            if let Some(result) = self.or_cancelled(work).await {
                let result = result.and_then(|response| {
                    self.reserve_response_memory(weigh(&response))
                        .map(|()| response)
                });
                self.respond(result).await;
            }
        });
        poll_once_and_spawn(&conn.0.tasks, task);
    }

    /// Runs `work` like [`spawn`](Self::spawn). The work sends the response itself, and can continue afterward.
    #[inline(never)]
    pub(crate) fn spawn_with_responder<F>(self, work: impl FnOnce(Self) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let conn = self.conn.clone();
        let cancel = self.cancel_token.clone();
        let work: SpawnedTask = Box::pin(work(self));
        run_until_cancelled(&conn, cancel, work);
    }
}

/// Runs work that responds by itself. Drops it if the peer cancels its request or the connection ends.
fn run_until_cancelled(conn: &Connection, cancel: CancellationToken, work: SpawnedTask) {
    let closed = conn.0.abort_token.clone();
    let task = Box::pin(async move {
        tokio::select! {
            biased;
            () = closed.cancelled() => {}
            () = cancel.cancelled() => {}
            () = work => {}
        }
    });
    poll_once_and_spawn(&conn.0.tasks, task);
}

/// Splits a response so that its text can be sent in pieces. If the text is small, returns the response unchanged.
fn split_large_text<R: TextResponse>(
    id: Option<&RequestId>,
    mut response: R,
) -> Result<LargeTextMessage, R> {
    let is_large = response.text_mut().len() >= MIN_LARGE_TEXT_BYTES;
    let Some(id) = id.filter(|_| is_large) else {
        return Err(response);
    };
    let text = std::mem::take(response.text_mut());
    let mut before = Vec::new();
    let written = jsonrpc::write_result(&mut before, id, &response);
    // The first match is the response's own text: it is the first field, and quotes in the id are escaped.
    let empty = format!("\"{}\":\"\"", R::TEXT_FIELD);
    let at = memchr::memmem::find(&before, empty.as_bytes()).filter(|_| written.is_ok());
    let Some(at) = at else {
        *response.text_mut() = text;
        return Err(response);
    };
    let behind = before.split_off(at + empty.len() - 1);
    Ok(LargeTextMessage {
        prefix: before,
        text,
        suffix: behind,
    })
}

/// Starts the work on a request by polling it once in the reader, and spawns it if it is not ready. Requests that need
/// not wait, such as a prompt after a mode change, thus take effect in order of arrival. Most requests are done after
/// the first poll.
fn poll_once_and_spawn(tasks: &Tasks, mut work: SpawnedTask) {
    // A panic in the first poll must not end the reader. A no-op waker is enough here, because the task is polled
    // again when it is spawned.
    let first = catch_unwind(AssertUnwindSafe(|| {
        work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }));
    match first {
        Ok(Poll::Pending) => tasks.spawn(work),
        Ok(Poll::Ready(())) => {}
        Err(_) => tracing::error!("a request handler panicked; the connection stays open"),
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        if self.conn.0.abort_token.is_cancelled() {
            self.conn.0.in_flight.remove(&id);
            return;
        }
        let error = if self.cancel_token.is_cancelled() {
            jsonrpc::Error::request_cancelled()
        } else {
            jsonrpc::Error::internal("the request was dropped without a response")
        };
        let conn = self.conn.clone();
        // A request stays in flight until its response is sent. This also limits the number of unsent responses.
        self.conn.send_without_waiting(move |buf| {
            let written = jsonrpc::write_error(buf, &id, &error);
            conn.0.in_flight.remove(&id);
            written
        });
    }
}
