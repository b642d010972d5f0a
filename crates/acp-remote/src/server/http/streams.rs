//! Manages the streams of a connection. Each message from the agent is routed to the connection's stream or to a
//! session's stream.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::CloseStatus;
use crate::message::{MessageHead, MessageHeadKind, opens_session, parse_head};
use crate::pipe::{LineFilter, MessageSink, OutOfWindow, Retention, SentLog};
use crate::server::config::ServerLimits;
use crate::sse;

/// The maximum total size of a connection's streams, as a multiple of the window.
const MAX_STREAM_WINDOWS: usize = 8;

/// The maximum size of a session's stream before the client opens it, as a multiple of the window.
const MAX_UNOPENED_SESSIONS: usize = 4;

/// The number of bytes of events to send at a time.
const MAX_BATCH_BYTES: usize = 32 * 1024;

/// The maximum number of pending requests from the agent to remember.
const MAX_PENDING_REQUESTS: usize = 4096;

/// The name of a stream: the id of its session, or an empty string for the connection's own stream.
type StreamName = String;

/// All streams of a connection, and the information needed to route its messages to them.
pub(crate) struct Streams {
    state: Mutex<StreamsState>,
    /// Wakes the task that waits until everything has been sent.
    progress: Notify,
    limits: StreamLimits,
}

#[derive(Debug, Clone, Copy)]
struct StreamLimits {
    window: usize,
    message: usize,
    sessions: usize,
    requests: usize,
    /// Whether the client acknowledges positions.
    resumes: bool,
}

struct StreamsState {
    streams: HashMap<StreamName, ServerStream>,
    /// The line that the agent has started to write, or that is waiting for space in its stream.
    line: Vec<u8>,
    /// The destination of the line, if it is complete and waiting for space.
    waiting: Option<MessageRoute>,
    filter: LineFilter,
    /// The number of bytes, in all streams together, that count toward the limit.
    pending: usize,
    /// The number of bytes that the agent has written.
    written: u64,
    /// The client's pending requests, by id.
    requests: HashMap<String, PendingRequestKind>,
    /// The session of each pending request from the agent, by request id.
    asked: HashMap<String, StreamName>,
    writer: Option<Waker>,
    is_finished: bool,
    is_discarding: bool,
    closing: Option<CloseStatus>,
    next_generation: u64,
    touched: Instant,
}

/// The destination of a line from the agent.
struct MessageRoute {
    name: StreamName,
    /// Whether this is the session's last line.
    closes: bool,
}

/// The kind of a client's pending request, which determines where the response goes.
enum PendingRequestKind {
    /// An `initialize` request. Its response is sent as the response to the POST.
    Initialize(oneshot::Sender<Vec<u8>>),
    /// A request about a session.
    Session {
        name: StreamName,
        opens: bool,
        closes: bool,
    },
    /// Any other request.
    Other,
}

/// The events of one stream, sent and unsent.
struct ServerStream {
    log: SentLog,
    was_opened: bool,
    /// The generation of the stream's current body, if there is one.
    current: Option<u64>,
    reader: Option<Waker>,
    /// The position of the event that was only partly sent, if any.
    event: Option<u64>,
    /// Whether the session was closed. The stream is removed once the client has closed it and received everything.
    is_over: bool,
}

/// The reason why a client's message is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegisterError {
    /// The client has too many requests in flight.
    TooManyRequests,
    /// A request with the same id is already in flight.
    DuplicateId,
}

/// The reason why a stream cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenStreamError {
    TooManySessions,
    OutOfWindow(OutOfWindow),
}

/// The next part of a stream for its body to send.
pub(super) enum StreamBatch {
    Bytes(Vec<u8>),
    /// The body ends here because another body has taken over the stream.
    End,
    /// The connection was closed with this status.
    Closed(CloseStatus),
}

impl Streams {
    /// Creates the streams of a connection. `resumes` is the window if the client acknowledges positions, and `None`
    /// otherwise.
    pub(super) fn new(limits: &ServerLimits, resumes: Option<usize>) -> Self {
        Self {
            state: Mutex::new(StreamsState {
                streams: HashMap::new(),
                line: Vec::new(),
                waiting: None,
                filter: LineFilter::new(true),
                pending: 0,
                written: 0,
                requests: HashMap::new(),
                asked: HashMap::new(),
                writer: None,
                is_finished: false,
                is_discarding: false,
                closing: None,
                next_generation: 0,
                touched: Instant::now(),
            }),
            progress: Notify::new(),
            limits: StreamLimits {
                window: resumes.unwrap_or(limits.window),
                message: limits.message,
                sessions: limits.sessions,
                requests: limits.requests,
                resumes: resumes.is_some(),
            },
        }
    }

    fn lock(&self) -> MutexGuard<'_, StreamsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the client has just shown activity.
    pub(super) fn touch(&self) {
        self.lock().touched = Instant::now();
    }

    /// Returns the number of bytes that the agent has written.
    pub(in crate::server) fn written(&self) -> u64 {
        self.lock().written
    }

    /// Returns the time since the client last showed activity.
    pub(super) fn idle_time(&self) -> std::time::Duration {
        self.lock().touched.elapsed()
    }

    pub(super) fn is_any_open(&self) -> bool {
        self.lock()
            .streams
            .values()
            .any(|stream| stream.current.is_some())
    }

    /// Registers a client's message before it is passed to the agent. Records which stream its response goes to, or
    /// which request it responds to.
    pub(super) fn register(
        &self,
        head: &MessageHead<'_>,
        session: Option<&str>,
    ) -> Result<(), RegisterError> {
        match &head.kind {
            MessageHeadKind::Request { id, method } => {
                let pending = match session {
                    Some(session) => PendingRequestKind::Session {
                        name: session.to_owned(),
                        opens: opens_session(method),
                        closes: method == "session/close",
                    },
                    None => PendingRequestKind::Other,
                };
                self.add_request(id, pending)
            }
            MessageHeadKind::Response { id, .. } => {
                self.lock().asked.remove(*id);
                Ok(())
            }
            MessageHeadKind::Notification { .. } => Ok(()),
        }
    }

    /// Registers `initialize`. Its response is passed to the returned receiver.
    pub(super) fn register_initialize(
        &self,
        id: &str,
    ) -> Result<oneshot::Receiver<Vec<u8>>, RegisterError> {
        let (sender, receiver) = oneshot::channel();
        self.add_request(id, PendingRequestKind::Initialize(sender))?;
        Ok(receiver)
    }

    fn add_request(&self, id: &str, pending: PendingRequestKind) -> Result<(), RegisterError> {
        let mut state = self.lock();
        if state.requests.len() >= self.limits.requests {
            return Err(RegisterError::TooManyRequests);
        }
        if state.requests.contains_key(id) {
            return Err(RegisterError::DuplicateId);
        }
        state.requests.insert(id.to_owned(), pending);
        Ok(())
    }

    /// Returns `true` if the stream is not in the middle of an event.
    pub(super) fn is_between_events(&self, name: &str) -> bool {
        let state = self.lock();
        state
            .streams
            .get(name)
            .is_none_or(|stream| stream.event.is_none())
    }

    /// Opens a stream, taking it over from its current body if it has one. `received` is the position up to which the
    /// client has received the stream. Returns the generation of the new body, and the position at which it starts.
    pub(super) fn open(
        &self,
        name: &str,
        received: Option<u64>,
    ) -> Result<(u64, u64), OpenStreamError> {
        let mut state = self.lock();
        let is_new = !state.streams.contains_key(name) && !name.is_empty();
        let sessions = state
            .streams
            .values()
            .filter(|stream| !stream.is_over)
            .count();
        if is_new && sessions > self.limits.sessions {
            return Err(OpenStreamError::TooManySessions);
        }
        state.next_generation += 1;
        state.touched = Instant::now();
        let generation = state.next_generation;
        let (previous, start) = self.with_stream(&mut state, name, |stream| {
            if let Some(position) = received {
                stream
                    .log
                    .rewind(position)
                    .map_err(OpenStreamError::OutOfWindow)?;
            } else if self.limits.resumes {
                stream.log.rewind_to_start();
            } else if let Some(start) = stream.event {
                // The rest of an event would not be a message.
                if stream.log.rewind(start).is_err() {
                    stream.skip_line();
                }
            }
            stream.event = None;
            stream.was_opened = true;
            stream.is_over = false;
            stream.current = Some(generation);
            Ok((stream.reader.take(), stream.log.sent_position()))
        })?;
        drop(state);
        if let Some(previous) = previous {
            previous.wake();
        }
        Ok((generation, start))
    }

    /// Records that the body of a stream was dropped.
    pub(super) fn abandon(&self, name: &str, generation: u64) {
        let mut state = self.lock();
        state.touched = Instant::now();
        if let Some(stream) = state.streams.get_mut(name)
            && stream.current == Some(generation)
        {
            stream.current = None;
            stream.reader = None;
        }
        self.handle_progress(state, name);
    }

    /// Drops bytes up to an acknowledged position. Returns `false` if the position was never sent.
    pub(super) fn acknowledge(&self, name: &str, position: u64) -> bool {
        let mut state = self.lock();
        if !state.streams.contains_key(name) {
            return false;
        }
        let is_valid =
            self.with_stream(&mut state, name, |stream| stream.log.acknowledge(position));
        self.handle_progress(state, name);
        is_valid
    }

    /// Returns the next events of a stream, for its body to send.
    pub(super) fn poll_batch(
        &self,
        name: &str,
        generation: u64,
        cx: &mut Context<'_>,
    ) -> Poll<StreamBatch> {
        let mut state = self.lock();
        let closing = state.closing.clone();
        let Some(stream) = state.streams.get_mut(name) else {
            return Poll::Ready(closing.map_or(StreamBatch::End, StreamBatch::Closed));
        };
        if stream.current != Some(generation) {
            return Poll::Ready(StreamBatch::End);
        }
        let out = self.with_stream(&mut state, name, ServerStream::encode);
        if !out.is_empty() {
            self.handle_progress(state, name);
            return Poll::Ready(StreamBatch::Bytes(out));
        }
        let Some(stream) = state.streams.get_mut(name) else {
            return Poll::Ready(StreamBatch::End);
        };
        if let Some(status) = closing {
            stream.current = None;
            self.handle_progress(state, name);
            return Poll::Ready(StreamBatch::Closed(status));
        }
        stream.reader = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Resumes work that was waiting for a stream to send or drop bytes.
    fn handle_progress(&self, mut state: MutexGuard<'_, StreamsState>, name: &str) {
        let is_over = |stream: &ServerStream| {
            stream.is_over && stream.current.is_none() && stream.log.pending_len() == 0
        };
        if state.streams.get(name).is_some_and(is_over) {
            state.streams.remove(name);
        }
        // Place the waiting line now, because the agent may have nothing more to write.
        let writer = if self.route_lines(&mut state) {
            state.writer.take()
        } else {
            None
        };
        drop(state);
        if let Some(writer) = writer {
            writer.wake();
        }
        self.progress.notify_waiters();
    }

    /// Ends all streams once everything written has been sent.
    pub(super) fn close(&self, status: CloseStatus) {
        let mut state = self.lock();
        state.closing.get_or_insert(status);
        let readers: Vec<_> = state
            .streams
            .values_mut()
            .filter_map(|s| s.reader.take())
            .collect();
        drop(state);
        readers.into_iter().for_each(Waker::wake);
        self.progress.notify_waiters();
    }

    /// Drops everything written so far, and everything written from now on.
    pub(super) fn discard(&self) {
        let mut state = self.lock();
        state.is_discarding = true;
        state.requests.clear();
        state.asked.clear();
        let streams = std::mem::take(&mut state.streams);
        let writer = state.writer.take();
        drop(state);
        streams
            .into_values()
            .filter_map(|stream| stream.reader)
            .for_each(Waker::wake);
        if let Some(writer) = writer {
            writer.wake();
        }
        self.progress.notify_waiters();
    }

    /// Waits until everything has been sent and, if the client acknowledges positions, acknowledged.
    pub(super) async fn wait_until_drained(&self) {
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            // Registers before checking, so that no notification is missed in between.
            progress.as_mut().enable();
            let is_drained = {
                let state = self.lock();
                let is_sent = |stream: &ServerStream| {
                    stream.log.pending_len() == 0 && stream.current.is_none()
                };
                state.waiting.is_none() && state.streams.values().all(is_sent)
            };
            if is_drained {
                return;
            }
            progress.await;
        }
    }
}

impl Streams {
    /// Changes a stream, and updates the total size of all streams. Creates the stream if it does not exist.
    fn with_stream<T>(
        &self,
        state: &mut StreamsState,
        name: &str,
        change: impl FnOnce(&mut ServerStream) -> T,
    ) -> T {
        let StreamsState {
            streams, pending, ..
        } = state;
        if !streams.contains_key(name) {
            streams.insert(name.to_owned(), ServerStream::new(self.limits));
        }
        let Some(stream) = streams.get_mut(name) else {
            // Unreachable, because the stream was inserted. Change a stream that nobody sees instead.
            return change(&mut ServerStream::new(self.limits));
        };
        let before = stream.log.pending_len();
        let changed = change(stream);
        *pending = *pending + stream.log.pending_len() - before;
        changed
    }

    /// Moves the complete line from the agent to the stream that it belongs to. Returns `false` if that stream has no
    /// space yet.
    fn route_lines(&self, state: &mut StreamsState) -> bool {
        let Some(route) = state.waiting.take() else {
            return true;
        };
        let window = self.limits.window;
        let has_room = state.is_discarding || {
            let stream = state.streams.get(&route.name);
            let (used, most) = stream.map_or((0, window), |stream| {
                let windows = if stream.was_opened {
                    1
                } else {
                    MAX_UNOPENED_SESSIONS
                };
                (stream.log.pending_len(), window * windows)
            });
            // A message that is larger than the limit is sent alone.
            used < most && state.pending < window * MAX_STREAM_WINDOWS
        };
        if !has_room {
            state.waiting = Some(route);
            return false;
        }
        let line = std::mem::take(&mut state.line);
        if !state.is_discarding {
            let reader = self.with_stream(state, &route.name, |stream| {
                stream.log.push(&line);
                stream.is_over |= route.closes;
                stream.reader.take()
            });
            if let Some(reader) = reader {
                reader.wake();
            }
        }
        // Reuse the buffer, unless it is large.
        if line.capacity() <= MAX_BATCH_BYTES {
            state.line = line;
            state.line.clear();
        }
        true
    }

    /// Reads bytes that the agent writes, up to the end of a line. Returns the number of bytes read.
    fn take_line(&self, state: &mut StreamsState, bytes: &[u8]) -> Result<usize, io::Error> {
        let end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |end| end + 1);
        let part = bytes.get(..end).unwrap_or(bytes);
        let StreamsState { filter, line, .. } = &mut *state;
        filter.filter(part, |kept| line.extend_from_slice(kept));
        if line.len() > self.limits.message {
            let reason = format!(
                "the agent's message is longer than {} bytes",
                self.limits.message
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        }
        if part.ends_with(b"\n") && !state.line.is_empty() {
            let line = std::mem::take(&mut state.line);
            let route = match parse_head(&line) {
                Ok(head) => state.route(&line, &head),
                // The transport does not judge messages. The client will report what is wrong.
                Err(_) => Some(MessageRoute {
                    name: StreamName::new(),
                    closes: false,
                }),
            };
            state.line = line;
            state.written += state.line.len() as u64;
            state.waiting = route;
            if state.waiting.is_none() {
                state.line.clear();
            }
        }
        Ok(end)
    }
}

impl MessageSink for Streams {
    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.lock();
        if state.is_finished || state.is_discarding {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let mut taken = 0;
        while taken < bytes.len() {
            if !self.route_lines(&mut state) {
                break;
            }
            let rest = bytes.get(taken..).unwrap_or_default();
            taken += self.take_line(&mut state, rest)?;
        }
        if !self.route_lines(&mut state) && taken == 0 {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock();
        if !self.route_lines(&mut state) {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.is_finished = true;
        Poll::Ready(Ok(()))
    }

    fn close_writer(&self) {
        let mut state = self.lock();
        self.route_lines(&mut state);
        state.is_finished = true;
    }
}

impl ServerStream {
    fn new(limits: StreamLimits) -> Self {
        let retention = if limits.resumes {
            Retention::UntilAcknowledged
        } else {
            Retention::Last(limits.window)
        };
        Self {
            log: SentLog::new(retention),
            was_opened: false,
            current: None,
            reader: None,
            event: None,
            is_over: false,
        }
    }

    /// Formats unsent messages as events. Splits a large message into pieces.
    fn encode(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        while out.len() < MAX_BATCH_BYTES && self.log.unsent_len() > 0 {
            if self.event.is_none() {
                self.event = Some(self.log.sent_position());
                out.extend_from_slice(sse::DATA_PREFIX);
            }
            let (first, second) = self.log.unsent();
            // Only a large message is split, so that most events are whole in one frame.
            let room = MAX_BATCH_BYTES;
            let (used, is_end) = match memchr::memchr(b'\n', first.get(..room).unwrap_or(first)) {
                Some(end) => {
                    out.extend_from_slice(first.get(..end).unwrap_or_default());
                    (end + 1, true)
                }
                None if first.len() >= room || second.is_empty() => {
                    let piece = first.get(..room).unwrap_or(first);
                    out.extend_from_slice(piece);
                    (piece.len(), false)
                }
                None => {
                    // The line continues where the buffer wraps.
                    out.extend_from_slice(first);
                    (first.len(), false)
                }
            };
            self.log.advance(used);
            if is_end {
                sse::finish_event(self.log.sent_position(), &mut out);
                self.event = None;
            }
        }
        out
    }

    /// Skips the rest of a line whose start was sent to a dropped body.
    fn skip_line(&mut self) {
        let (first, second) = self.log.unsent();
        let end = memchr::memchr(b'\n', first)
            .or_else(|| memchr::memchr(b'\n', second).map(|end| first.len() + end));
        self.log.advance(end.map_or(0, |end| end + 1));
    }
}

impl StreamsState {
    /// Returns the stream that a line goes to, or `None` if the line was the response to `initialize`.
    fn route(&mut self, line: &[u8], head: &MessageHead<'_>) -> Option<MessageRoute> {
        let (name, closes) = match &head.kind {
            MessageHeadKind::Response { id, is_error, .. } => match self.requests.remove(*id) {
                Some(PendingRequestKind::Initialize(sender)) => {
                    // This fails if the client has given up.
                    let _ = sender.send(line.to_owned());
                    return None;
                }
                Some(PendingRequestKind::Session {
                    name,
                    opens,
                    closes,
                }) => {
                    let is_open = self.streams.get(&name).is_some_and(|s| s.current.is_some());
                    let name = if opens && !is_open {
                        StreamName::new()
                    } else {
                        name
                    };
                    (name, closes && !is_error)
                }
                Some(PendingRequestKind::Other) | None => (StreamName::new(), false),
            },
            MessageHeadKind::Request { id, .. } => {
                let name = head.session.as_deref().unwrap_or_default().to_owned();
                if self.asked.len() < MAX_PENDING_REQUESTS {
                    self.asked.insert((*id).to_owned(), name.clone());
                }
                (name, false)
            }
            MessageHeadKind::Notification { cancels, .. } => {
                let about = cancels.and_then(|id| self.asked.get(id).cloned());
                let session = || head.session.as_deref().unwrap_or_default().to_owned();
                (about.unwrap_or_else(session), false)
            }
        };
        Some(MessageRoute { name, closes })
    }
}
