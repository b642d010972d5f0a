//! The reader, which receives lines and handles them in order.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use acp_wire::jsonrpc::{self, CancelRequestNotification, Incoming, ParseError, RequestId};
use acp_wire::{Notification, read_params};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use super::frame::{Frame, Framer, LargeTextResponse};
use super::outline::{MessageOutline, read_outline};
use super::pending::PendingFilter;
use super::{Connection, Handler, NoisePolicy, Responder};
use crate::error::{CloseReason, Error};
use crate::memory::{excess_memory, parsed_memory};
use crate::transport::TransportReader;

/// The number of messages to handle before the reader yields to other tasks.
const MESSAGES_PER_YIELD: usize = 256;

/// Reads and handles messages until the input ends, and returns the reason.
pub(super) async fn read_messages<H: Handler>(
    conn: &Connection,
    input: &mut TransportReader,
    handler: &Arc<H>,
) -> CloseReason {
    let mut framer = Framer::new(conn.0.limits.message);
    let mut held = ReadAhead::default();
    let mut ended: Option<CloseReason> = None;
    let mut looked_at = 0_usize;
    loop {
        // A peer that sends without a pause must not starve the rest of the connection.
        looked_at += 1;
        if looked_at.is_multiple_of(MESSAGES_PER_YIELD) {
            tokio::task::yield_now().await;
        }
        // First handle messages that were read ahead, then the buffer, and then new input.
        let event = if let Some(ahead) = held.take() {
            match ahead {
                ReadAheadItem::Line(line) => handle_frame(conn, handler, Frame::Line(&line)).await,
                ReadAheadItem::Oversized(whose, why) => {
                    reject_oversized::<H>(conn, whose, why).await;
                    None
                }
            }
        } else if let Some(frame) = framer.next() {
            handle_frame(conn, handler, frame).await
        } else if let Some(reason) = ended {
            if let Some(frame) = framer.finish()
                && let Some(event) = handle_frame(conn, handler, frame).await
            {
                deliver(&**handler, event).await;
            }
            return reason;
        } else {
            ended = fill_framer(conn, input, &mut framer).await;
            continue;
        };
        let Some(event) = event else { continue };
        let mut delivery = pin!(deliver(&**handler, event));
        // Most handlers finish immediately, and then nothing is read ahead.
        if std::future::poll_fn(|cx| Poll::Ready(delivery.as_mut().poll(cx)))
            .await
            .is_ready()
        {
            continue;
        }
        loop {
            read_ahead::<H>(conn, &mut framer, &mut held);
            if let Some(reason) = &ended {
                // The handler may be waiting for a response that can no longer arrive.
                let error = Error::Closed(reason.clone());
                conn.0.pending.close(&error);
                conn.0.pending.fail(&error, PendingFilter::Overtaking);
            }
            let room = ended.is_none() && held.may_read_ahead(conn);
            tokio::select! {
                biased;
                () = &mut delivery => break,
                end = fill_framer(conn, input, &mut framer), if room => ended = end,
                // The response to a new request can be beyond the read-ahead limit.
                () = conn.0.pending.wait_for_request(), if !room => {}
            }
        }
    }
}

/// Delivers an event. If the handler panics, the event counts as delivered, and the connection continues.
async fn deliver<H: Handler>(handler: &H, event: H::Event) {
    let mut delivery = pin!(handler.deliver(event));
    std::future::poll_fn(|cx| {
        catch_panic(|| delivery.as_mut().poll(cx)).unwrap_or(Poll::Ready(()))
    })
    .await;
}

/// Runs code that may be the application's, and returns `None` if it panics.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        tracing::error!("a handler panicked; the connection stays open");
    }
    done
}

/// Reads available bytes into the framer, which must not have a complete line. If the input has ended, returns the
/// reason.
async fn fill_framer(
    conn: &Connection,
    input: &mut TransportReader,
    framer: &mut Framer,
) -> Option<CloseReason> {
    framer.begin_large_text(|id| conn.0.pending.large_text_field(id));
    match input.read_buf(framer.spare_capacity()).await {
        Ok(0) => Some(CloseReason::Peer),
        Ok(_) => None,
        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => None,
        Err(e) => Some(CloseReason::Transport(Arc::new(e))),
    }
}

/// A queue of messages read while an update handler was running.
#[derive(Default)]
struct ReadAhead {
    items: VecDeque<ReadAheadItem>,
    bytes: usize,
}

/// A message that was read while an update handler was running.
enum ReadAheadItem {
    /// A line within the length limit.
    Line(Box<[u8]>),
    /// The outline and size of a message that exceeds a limit.
    Oversized(MessageOutline, SizeExcess),
}

/// The size, in bytes, of a message that exceeds a limit.
#[derive(Debug, Clone, Copy)]
enum SizeExcess {
    /// The length of the message's text.
    Text(usize),
    /// The memory that the parsed message would use.
    Memory(usize),
}

impl ReadAheadItem {
    /// Returns the memory used by the queued item, in bytes.
    fn memory(&self) -> usize {
        // Each allocation has a header of about two words.
        use MessageOutline::{Request, Response};
        let text = match self {
            Self::Line(line) => line.len(),
            Self::Oversized(
                Response(RequestId::String(id)) | Request(RequestId::String(id)),
                _,
            ) => id.len(),
            Self::Oversized(..) => 0,
        };
        text + size_of::<Self>() + 2 * size_of::<usize>()
    }
}

impl ReadAhead {
    fn push(&mut self, ahead: ReadAheadItem) {
        self.bytes += ahead.memory();
        self.items.push_back(ahead);
    }

    fn take(&mut self) -> Option<ReadAheadItem> {
        let ahead = self.items.pop_front()?;
        self.bytes -= ahead.memory();
        Some(ahead)
    }

    /// Returns `true` if reading can continue while the handler runs. Usually, little is read ahead, to provide
    /// back-pressure. However, the handler may be waiting for a response that comes after everything read so far.
    fn may_read_ahead(&self, conn: &Connection) -> bool {
        let limits = &conn.0.limits;
        if self.bytes < limits.read_ahead {
            return true;
        }
        if !conn.0.pending.has_overtaking_request() {
            return false;
        }
        if self.bytes < limits.backlog {
            return true;
        }
        conn.0.pending.fail(
            &Error::Backlog { held: self.bytes },
            PendingFilter::Overtaking,
        );
        false
    }
}

/// Handles responses that need not wait for earlier updates, and queues everything else.
fn read_ahead<H: Handler>(conn: &Connection, framer: &mut Framer, held: &mut ReadAhead) {
    while let Some(frame) = framer.next() {
        match frame {
            Frame::Line(line) => match jsonrpc::parse(line) {
                Ok(Incoming::Response { id, result }) if conn.0.pending.may_overtake(&id) => {
                    match check_memory(conn, line) {
                        Some(why) => fail_oversized_response(conn, &id, why),
                        None => handle_response(conn, &id, result),
                    }
                }
                _ => held.push(ReadAheadItem::Line(line.into())),
            },
            // The handler may be waiting for the text.
            Frame::LargeText(arrived) => handle_large_text_response(conn, arrived),
            Frame::Oversized { head, tail, length } => {
                let why = SizeExcess::Text(length);
                match read_outline(head, tail) {
                    MessageOutline::Response(id) if conn.0.pending.may_overtake(&id) => {
                        fail_oversized_response(conn, &id, why);
                    }
                    // A message that must be rejected is stored even if the read-ahead limit is reached.
                    whose => held.push(ReadAheadItem::Oversized(whose, why)),
                }
            }
        }
    }
}

/// Estimates a message's memory, and returns the estimate if it exceeds the limit.
fn check_memory(conn: &Connection, line: &[u8]) -> Option<SizeExcess> {
    excess_memory(line, conn.0.limits.message_memory).map(SizeExcess::Memory)
}

/// Handles one frame, and returns the event to deliver, if any.
async fn handle_frame<H: Handler>(
    conn: &Connection,
    handler: &Arc<H>,
    frame: Frame<'_>,
) -> Option<H::Event> {
    let line = match frame {
        Frame::Line(line) => line,
        Frame::LargeText(arrived) => {
            handle_large_text_response(conn, arrived);
            return None;
        }
        Frame::Oversized { head, tail, length } => {
            reject_oversized::<H>(conn, read_outline(head, tail), SizeExcess::Text(length)).await;
            return None;
        }
    };
    let too_large_by = check_memory(conn, line);
    // Fast path: an update is parsed in one pass.
    if too_large_by.is_none()
        && let Some((method, params)) = jsonrpc::parse_plain_notification(line)
        && let Some(event) =
            catch_panic(|| handler.handle_plain_notification(conn, method, params)).flatten()
    {
        return event;
    }
    let parsed = jsonrpc::parse(line);
    if let (Some(why), Ok(message)) = (too_large_by, &parsed) {
        let whose = match message {
            Incoming::Request { id, .. } => MessageOutline::Request(id.clone()),
            Incoming::Response { id, .. } => MessageOutline::Response(id.clone()),
            Incoming::Notification { .. } => {
                conn.0.counters.count_unread_notification();
                tracing::warn!("{}", why.to_message(conn));
                return None;
            }
        };
        reject_oversized::<H>(conn, whose, why).await;
        return None;
    }
    let refusal = match parsed {
        Ok(Incoming::Notification { method, params }) => {
            if method == CancelRequestNotification::METHOD {
                cancel_request(conn, params);
                return None;
            }
            return catch_panic(|| handler.handle_notification(conn, &method, params)).flatten();
        }
        Ok(Incoming::Response { id, result }) => {
            handle_response(conn, &id, result);
            return None;
        }
        Ok(Incoming::Request { id, method, params }) => {
            let cancel = CancellationToken::new();
            let (in_flight, limits) = (&conn.0.in_flight, &conn.0.limits);
            match in_flight.add(&id, cancel.clone(), parsed_memory(line), limits) {
                Ok(()) => {
                    let responder = Responder::new(conn, id, cancel);
                    catch_panic(|| handler.handle_request(&method, params, responder));
                    return None;
                }
                Err(error) => (id, error),
            }
        }
        Err(error) => {
            let is_noise = report_unparsed(conn, line, &error);
            if H::NOISE == NoisePolicy::Skip && is_noise {
                return None;
            }
            error.to_response()
        }
    };
    send_error(conn, &refusal.0, &refusal.1).await;
    None
}

/// Counts and logs a line that is not a message. If it is noise, passes it to the callback and returns `true`.
fn report_unparsed(conn: &Connection, line: &[u8], error: &ParseError) -> bool {
    conn.0.counters.lines.fetch_add(1, Ordering::Relaxed);
    tracing::warn!(line = %loggable_start(line), %error, "ignoring a line that is not a message");
    // Log lines can start with any character, even a bracket, but hardly ever with a brace.
    let is_noise = matches!(error, ParseError::NotJson(_)) && line.first() != Some(&b'{');
    if let Some(on_noise) = conn.0.on_noise.as_deref().filter(|_| is_noise) {
        let shown = line
            .get(..line.len().min(MAX_NOISE_BYTES))
            .unwrap_or_default();
        catch_panic(|| on_noise(&String::from_utf8_lossy(shown)));
    }
    is_noise
}

/// Sends an error response. The reader waits for capacity only if the peer keeps sending messages to be rejected
/// without reading the responses.
async fn send_error(conn: &Connection, id: &RequestId, error: &jsonrpc::Error) {
    let write = |buf: &mut Vec<u8>| jsonrpc::write_error(buf, id, error);
    if conn.0.outbox.push_now(write).is_none() {
        let _ = conn.0.outbox.push(write).await;
    }
}

/// Passes a response to the handler of its request.
fn handle_response(
    conn: &Connection,
    id: &RequestId,
    result: Result<&serde_json::value::RawValue, jsonrpc::Error>,
) {
    if let Some(waiting) = conn.0.pending.take(id) {
        (waiting.on_response)(result.map_err(Error::Rpc));
    } else {
        conn.0
            .counters
            .unmatched_responses
            .fetch_add(1, Ordering::Relaxed);
        match result {
            // Peers send this response to messages that they cannot parse.
            Err(error) => {
                tracing::warn!(%id, %error, "received an error response to an unknown request")
            }
            Ok(_) => tracing::debug!(%id, "received a response to an unknown request"),
        }
    }
}

/// Handles a response whose large text was extracted.
fn handle_large_text_response(conn: &Connection, arrived: LargeTextResponse) {
    let id = RequestId::Number(arrived.id);
    let Some(waiting) = conn.0.pending.take(&id) else {
        // The request was cancelled in the meantime.
        conn.0
            .counters
            .unmatched_responses
            .fetch_add(1, Ordering::Relaxed);
        return;
    };
    let result = match (arrived.text, jsonrpc::parse(&arrived.response)) {
        (Some(text), Ok(Incoming::Response { result, .. })) => {
            if let Some(large) = &waiting.large_text {
                large.put(text);
            }
            result.map_err(Error::Rpc)
        }
        (text, parsed) => {
            let reason = match (text, parsed) {
                (Some(_), Err(error)) => error.to_string(),
                _ => "the text is not a valid JSON string".to_owned(),
            };
            tracing::warn!(%id, "invalid response: {reason}");
            let method = waiting
                .large_text
                .map_or(UNKNOWN_METHOD, |large| large.method);
            Err(Error::InvalidResponse {
                method: method.to_owned(),
                reason,
            })
        }
    };
    (waiting.on_response)(result);
}

/// Handles `$/cancel_request` by cancelling the given request, if it is in flight.
fn cancel_request(conn: &Connection, params: Option<&serde_json::value::RawValue>) {
    match read_params::<CancelRequestNotification>(CancelRequestNotification::METHOD, params) {
        Ok(cancel) => conn.0.in_flight.cancel(&cancel.request_id),
        Err(error) => {
            conn.0.counters.count_unread_notification();
            tracing::warn!(%error, "ignoring an invalid cancellation");
        }
    }
}

impl SizeExcess {
    /// Returns an error message with the size and the limit.
    fn to_message(self, conn: &Connection) -> String {
        let limits = &conn.0.limits;
        match self {
            Self::Text(length) => {
                let limit = limits.message;
                format!("message too large: {length} bytes (limit: {limit} bytes)")
            }
            Self::Memory(memory) => {
                let limit = limits.message_memory;
                format!("message too large: {memory} bytes in memory (limit: {limit} bytes)")
            }
        }
    }
}

/// Rejects a message that exceeds a limit. A request gets an error response, and a response makes its request fail.
async fn reject_oversized<H: Handler>(conn: &Connection, whose: MessageOutline, why: SizeExcess) {
    let id = match whose {
        MessageOutline::Response(id) => return fail_oversized_response(conn, &id, why),
        MessageOutline::Request(id) => id,
        MessageOutline::Noise => {
            conn.0.counters.lines.fetch_add(1, Ordering::Relaxed);
            if H::NOISE == NoisePolicy::Skip {
                return;
            }
            RequestId::Null
        }
    };
    let text = why.to_message(conn);
    tracing::warn!("{text}");
    let text = format!("Invalid request: {text}");
    let error = jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, text);
    send_error(conn, &id, &error).await;
}

/// The placeholder for an unknown method name in error messages.
const UNKNOWN_METHOD: &str = "the request";

/// Fails a request because its response is too large.
fn fail_oversized_response(conn: &Connection, id: &RequestId, why: SizeExcess) {
    let reason = why.to_message(conn);
    tracing::warn!("{reason}");
    match conn.0.pending.take(id) {
        Some(waiting) => {
            let method = UNKNOWN_METHOD.to_owned();
            (waiting.on_response)(Err(Error::InvalidResponse { method, reason }));
        }
        None => {
            conn.0
                .counters
                .unmatched_responses
                .fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How much of a non-JSON line to pass to the callback, in bytes.
const MAX_NOISE_BYTES: usize = 1024;

/// Formats the start of a line for the log, without control characters.
fn loggable_start(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..line.len().min(200)).unwrap_or_default());
    text.chars().filter(|c| !c.is_control()).collect()
}
