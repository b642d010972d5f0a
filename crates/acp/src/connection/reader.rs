//! The reader: takes lines as they arrive and has them looked at in their order.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use acp_wire::jsonrpc::{self, Incoming, ParseError, RequestId};
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use super::frame::{Frame, Framer};
use super::pending::Which;
use super::{Connection, Handler, NoisePolicy, Responder};
use crate::error::{CloseReason, Error};
use crate::transport::Reader;

/// Reads until the input ends.
pub(super) async fn read<H: Handler>(
    conn: &Connection,
    mut input: Reader,
    handler: &Arc<H>,
) -> CloseReason {
    let mut framer = Framer::new(conn.0.limits.message);
    let mut held = Held::default();
    let mut ended: Option<CloseReason> = None;
    loop {
        // First what was read ahead, then what is in the buffer, then what is still to come.
        let event = if let Some(line) = held.take() {
            look_at(conn, handler, Frame::Line(&line)).await
        } else if let Some(frame) = framer.next() {
            look_at(conn, handler, frame).await
        } else if let Some(reason) = ended {
            if let Some(frame) = framer.finish()
                && let Some(event) = look_at(conn, handler, frame).await
            {
                deliver(&**handler, event).await;
            }
            return reason;
        } else {
            ended = fill(&mut input, &mut framer).await;
            continue;
        };
        let Some(event) = event else { continue };
        let mut delivery = pin!(deliver(&**handler, event));
        // Most handlers are done at once, and nothing is read ahead.
        if std::future::poll_fn(|cx| Poll::Ready(delivery.as_mut().poll(cx)))
            .await
            .is_ready()
        {
            continue;
        }
        loop {
            read_ahead(conn, &mut framer, &mut held);
            if let Some(reason) = &ended {
                // The handler may wait for an answer that can no longer come.
                let error = Error::Closed(reason.clone());
                conn.0.pending.close(&error);
                conn.0.pending.fail(&error, Which::Overtaking);
            }
            let room = ended.is_none() && held.has_room(conn);
            tokio::select! {
                biased;
                () = &mut delivery => break,
                end = fill(&mut input, &mut framer), if room => ended = end,
                // Who asks now needs more to be read than there was room for.
                () = conn.0.pending.added(), if !room => {}
            }
        }
    }
}

/// Delivers an event. A handler that panics has had it, and the connection goes on.
async fn deliver<H: Handler>(handler: &H, event: H::Event) {
    let mut delivery = pin!(handler.deliver(event));
    std::future::poll_fn(|cx| guarded(|| delivery.as_mut().poll(cx)).unwrap_or(Poll::Ready(())))
        .await;
}

/// Runs what may be the user's code; `None` if it panics.
fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        tracing::error!("a handler panicked; the connection goes on without it");
    }
    done
}

/// Reads what is there into the framer; at the end of the input, says so.
async fn fill(input: &mut Reader, framer: &mut Framer) -> Option<CloseReason> {
    match input.read_buf(framer.room()).await {
        Ok(0) => Some(CloseReason::Peer),
        Ok(_) => None,
        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => None,
        Err(e) => Some(CloseReason::Transport(Arc::new(e))),
    }
}

/// Lines that were read while an update handler worked.
#[derive(Default)]
struct Held {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Held {
    /// What keeping a line costs beside its bytes.
    const OVERHEAD: usize = 2 * size_of::<Box<[u8]>>();

    fn push(&mut self, line: &[u8]) {
        self.bytes += line.len() + Self::OVERHEAD;
        self.lines.push_back(line.into());
    }

    fn take(&mut self) -> Option<Box<[u8]>> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len() + Self::OVERHEAD;
        Some(line)
    }

    /// Whether to read on while the handler works. Normally little is read ahead: that is the
    /// back-pressure. But someone who waits for an answer may be the handler itself, and the answer
    /// may be behind what is not read yet.
    fn has_room(&self, conn: &Connection) -> bool {
        let limits = &conn.0.limits;
        if self.bytes < limits.read_ahead {
            return true;
        }
        if !conn.0.pending.any_overtaking() {
            return false;
        }
        if self.bytes < limits.backlog {
            return true;
        }
        conn.0
            .pending
            .fail(&Error::Backlog { held: self.bytes }, Which::Overtaking);
        false
    }
}

/// Takes the answers that may overtake out of what has been read, and holds the rest.
fn read_ahead(conn: &Connection, framer: &mut Framer, held: &mut Held) {
    while let Some(frame) = framer.next() {
        let Frame::Line(line) = frame else {
            oversized(conn, &frame);
            continue;
        };
        match jsonrpc::parse(line) {
            Ok(Incoming::Response { id, result }) if conn.0.pending.may_overtake(&id) => {
                answer(conn, &id, result);
            }
            _ => held.push(line),
        }
    }
}

/// Has a message looked at; gives the event that is to be delivered.
async fn look_at<H: Handler>(
    conn: &Connection,
    handler: &Arc<H>,
    frame: Frame<'_>,
) -> Option<H::Event> {
    let Frame::Line(line) = frame else {
        oversized(conn, &frame);
        return None;
    };
    let refusal = match jsonrpc::parse(line) {
        Ok(Incoming::Notification { method, params }) => {
            if method == "$/cancel_request" {
                cancel_request(conn, params);
                return None;
            }
            return guarded(|| handler.notification(conn, &method, params)).flatten();
        }
        Ok(Incoming::Response { id, result }) => {
            answer(conn, &id, result);
            return None;
        }
        Ok(Incoming::Request { id, method, params }) => {
            let cancel = CancellationToken::new();
            if conn.0.in_flight.len() >= conn.0.limits.requests {
                let limit = conn.0.limits.requests;
                (
                    id,
                    jsonrpc::Error::internal(format!("more than {limit} requests at once")),
                )
            } else if conn.0.in_flight.add(id.clone(), cancel.clone()) {
                let responder = Responder::new(conn, id, cancel);
                guarded(|| handler.request(&method, params, responder));
                return None;
            } else {
                let error = jsonrpc::Error::new(
                    jsonrpc::Error::INVALID_REQUEST,
                    "Invalid request: a request with this id is still being worked on",
                );
                (id, error)
            }
        }
        Err(error) => {
            conn.0.counters.lines.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(line = %excerpt(line), %error, "not a message");
            let looks_like_json = matches!(line.first(), Some(b'{' | b'['));
            let meant = !matches!(error, ParseError::NotJson(_)) || looks_like_json;
            if H::NOISE == NoisePolicy::Skip && !meant {
                return None;
            }
            error.answer()
        }
    };
    refuse(conn, &refusal.0, &refusal.1).await;
    None
}

/// Answers with an error. The reader does not wait for the writer, but for a peer that sends what
/// must be refused and reads none of the refusals.
async fn refuse(conn: &Connection, id: &RequestId, error: &jsonrpc::Error) {
    let write = |buf: &mut Vec<u8>| jsonrpc::write_error(buf, id, error);
    if conn.0.outbox.push_now(write).is_none() {
        let _ = conn.0.outbox.push(write).await;
    }
}

fn answer(
    conn: &Connection,
    id: &RequestId,
    result: Result<&serde_json::value::RawValue, jsonrpc::Error>,
) {
    if let Some(waiting) = conn.0.pending.take(id) {
        (waiting.on_answer)(result.map_err(Error::Rpc));
    } else {
        conn.0.counters.unasked.fetch_add(1, Ordering::Relaxed);
        match result {
            // How a peer answers what it could not read.
            Err(error) => tracing::warn!(%id, %error, "an error for nothing that was asked"),
            Ok(_) => tracing::debug!(%id, "an answer to nothing that was asked"),
        }
    }
}

fn cancel_request(conn: &Connection, params: Option<&serde_json::value::RawValue>) {
    match acp_wire::read_params::<jsonrpc::CancelRequestNotification>("$/cancel_request", params) {
        Ok(cancel) => conn.0.in_flight.cancel(&cancel.request_id),
        Err(error) => {
            conn.0.counters.unread();
            tracing::warn!(%error, "passed over");
        }
    }
}

/// A message over the limit: whoever waits for it, here or there, is told.
fn oversized(conn: &Connection, frame: &Frame<'_>) {
    let Frame::TooLong { head, length } = frame else {
        return;
    };
    let limit = conn.0.limits.message;
    let text = format!("a message of {length} bytes is over the limit of {limit} bytes");
    tracing::warn!("{text}");
    let (id, is_answer) = outline(head);
    if is_answer {
        if let Some(waiting) = conn.0.pending.take(&id) {
            let reason = text;
            (waiting.on_answer)(Err(Error::Unreadable {
                method: "the request".to_owned(),
                reason,
            }));
        }
    } else {
        let error = jsonrpc::Error::new(
            jsonrpc::Error::INVALID_REQUEST,
            format!("Invalid request: {text}"),
        );
        conn.0
            .outbox
            .push_now(|buf| jsonrpc::write_error(buf, &id, &error));
    }
}

/// The id in the first bytes of a message, and whether it looks like an answer.
fn outline(head: &[u8]) -> (RequestId, bool) {
    let text = String::from_utf8_lossy(head);
    let outer = |key: &str| {
        text.find(key)
            .map(|at| (at, text.get(at + key.len()..).unwrap_or_default()))
    };
    let body = ["\"params\"", "\"result\"", "\"error\""]
        .iter()
        .filter_map(|k| outer(k))
        .map(|(at, _)| at)
        .min();
    let id = outer("\"id\"")
        .filter(|(at, _)| body.is_none_or(|body| *at < body))
        .and_then(|(_, rest)| {
            let value = rest.trim_start().strip_prefix(':')?;
            let end = value.find([',', '}'])?;
            serde_json::from_str(value.get(..end)?.trim()).ok()
        })
        .unwrap_or(RequestId::Null);
    (id, outer("\"method\"").is_none())
}

/// The beginning of a line, for a log.
fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..line.len().min(200)).unwrap_or_default());
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outline_of_an_oversized_message_tells_whose_it_is() {
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"fs/write_text_file","params":{"id":9,"#,
                RequestId::Number(7),
                false,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","result":{"content":"..."#,
                RequestId::String("a".into()),
                true,
            ),
            (
                r#"{"method":"session/update","params":{"id":3,"#,
                RequestId::Null,
                false,
            ),
            ("garbage", RequestId::Null, true),
        ];
        for (head, id, is_answer) in cases {
            assert_eq!(outline(head.as_bytes()), (id, is_answer), "{head}");
        }
    }
}
