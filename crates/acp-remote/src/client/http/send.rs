//! Sends the messages written by the library. Each POST waits for the previous one, so that everything arrives in
//! order.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::json;
use tokio::time::timeout;

use super::routes::OutboundRoute;
use super::stream::read_error_body;
use super::{CLOSE_TIMEOUT, EstablishedConnection, HttpClient, REQUEST_TIMEOUT, StreamState};
use crate::client::error::{ConnectError, error_chain, rejected_error};
use crate::client::options::ConnectionStatus;
use crate::client::reconnect::ReconnectBackoff;
use crate::header::{self, ResumeTerms};
use crate::message::{MessageHeadKind, is_about_stored_session, opens_session, parse_head};

/// The maximum number of bytes to send in one POST, unless a single message is longer.
const MAX_BATCH_BYTES: usize = 64 * 1024;

/// A message to be sent in a POST, with its headers.
struct OutgoingMessage<'a> {
    line: &'a [u8],
    outbound: OutboundRoute,
    /// The id of the agent's request that the message responds to, if it is a response.
    answers: Option<String>,
}

/// The server's response to a POST.
enum PostOutcome {
    Accepted,
    Rejected(ConnectError),
}

impl HttpClient {
    /// Sends all messages until the library closes the transport.
    pub(super) async fn send_all(self: &Arc<Self>) -> Result<(), ConnectError> {
        let mut bytes = Vec::new();
        let mut position = 0;
        loop {
            let is_finished = self.take_lines(&mut bytes)?;
            if let Some(end) = memchr::memrchr(b'\n', &bytes) {
                let rest = bytes.split_off(end + 1);
                let lines = std::mem::replace(&mut bytes, rest);
                self.send_lines(&lines, &mut position).await?;
                continue;
            }
            if is_finished || self.gone.are_both_dropped() {
                if !bytes.is_empty() {
                    self.send_lines(&bytes, &mut position).await?;
                }
                break;
            }
            self.work.notified().await;
        }
        self.wait_for_responses().await;
        Ok(())
    }

    /// Moves written messages into `bytes`: at least one, if any are available. Returns `true` if nothing more will be
    /// written.
    fn take_lines(&self, bytes: &mut Vec<u8>) -> Result<bool, ConnectError> {
        if memchr::memchr(b'\n', bytes).is_some() {
            return Ok(false);
        }
        loop {
            if bytes.len() > self.target.options.message {
                let most = self.target.options.message;
                return Err(ConnectError::UnsendableMessage(format!(
                    "message too long (limit: {most} bytes)"
                )));
            }
            let before = bytes.len();
            let progress = self.outgoing.send_with(|first, second| {
                let first = first.get(..MAX_BATCH_BYTES).unwrap_or(first);
                bytes.extend_from_slice(first);
                let second = second
                    .get(..MAX_BATCH_BYTES - first.len())
                    .unwrap_or(second);
                bytes.extend_from_slice(second);
                first.len() + second.len()
            });
            let taken = bytes.get(before..).unwrap_or_default();
            if taken.is_empty() {
                return Ok(progress.is_sent && progress.is_finished);
            }
            if memchr::memchr(b'\n', taken).is_some() {
                return Ok(false);
            }
        }
    }

    /// Waits a limited time for responses to pending requests, since the library may still read them.
    async fn wait_for_responses(&self) {
        let waiting = async {
            while self.lock_routes().has_pending_requests() && !self.gone.are_both_dropped() {
                self.answered.notified().await;
            }
        };
        tokio::select! {
            () = self.gone.wait_for_both_drops() => {}
            _ = timeout(CLOSE_TIMEOUT, waiting) => {}
        }
    }

    /// Sends the messages in `bytes`, one per line.
    async fn send_lines(
        self: &Arc<Self>,
        lines: &[u8],
        position: &mut u64,
    ) -> Result<(), ConnectError> {
        let mut together: Vec<OutgoingMessage<'_>> = Vec::new();
        for line in lines.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            if line.is_empty() {
                continue;
            }
            let Ok(head) = parse_head(line) else {
                tracing::warn!("dropping an outgoing line: not a valid message");
                continue;
            };
            let answers = match &head.kind {
                MessageHeadKind::Response { id, .. } => Some((*id).to_owned()),
                _ => None,
            };
            let needs_stream = match &head.kind {
                MessageHeadKind::Request { method, .. }
                | MessageHeadKind::Notification { method, .. } => {
                    !is_about_stored_session(method) || opens_session(method)
                }
                MessageHeadKind::Response { .. } => true,
            };
            let outbound = self.lock_routes().record_outbound(&head);
            let message = OutgoingMessage {
                line,
                outbound,
                answers,
            };
            if self.established.get().is_none() {
                if !message.outbound.is_initialize {
                    let reason = "the first message must be initialize".to_owned();
                    return Err(ConnectError::UnsendableMessage(reason));
                }
                self.initialize(line).await?;
                continue;
            }
            if needs_stream && let Some(session) = &message.outbound.session {
                self.wait_for_stream(session, message.outbound.opens).await;
            }
            if self.resume_terms().is_some() {
                together.push(message);
            } else {
                self.send_message(&message, position).await?;
            }
        }
        if together.len() > 1 {
            let body = together
                .iter()
                .map(|m| m.line)
                .collect::<Vec<_>>()
                .join(&b'\n');
            let length = body.len() as u64 + 1;
            if let PostOutcome::Accepted =
                self.send_post(body.into(), None, *position, true).await?
            {
                *position += length;
                return Ok(());
            }
            // To find out which message is wrong, send each one alone. The server drops those that it has already
            // accepted.
        }
        for message in &together {
            self.send_message(message, position).await?;
        }
        Ok(())
    }

    /// Waits until a session's stream is open, since the server sends its response there.
    async fn wait_for_stream(self: &Arc<Self>, session: &str, opens: bool) {
        let mut stream = self.start_stream(session);
        let state = stream
            .state
            .wait_for(|state| *state != StreamState::Opening)
            .await;
        let state = state.map_or(StreamState::Ended, |state| *state);
        if state == StreamState::Refused && !opens {
            tracing::debug!(
                session,
                "the server refused to open a stream for this session"
            );
        }
    }

    /// Sends `initialize` and uses the response to establish the connection.
    async fn initialize(self: &Arc<Self>, line: &[u8]) -> Result<(), ConnectError> {
        let options = &self.target.options;
        let mut headers = http::HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
        let wants_resume = options.reconnect_for != Some(Duration::ZERO);
        if wants_resume {
            let terms = ResumeTerms {
                window: options.window,
                grace: Duration::ZERO,
            };
            headers.insert(header::RESUME, terms.header_value());
        }
        let body = Bytes::copy_from_slice(line);
        let mut attempts = 0;
        let response = loop {
            let sent = self
                .exchange
                .send(Method::POST, headers.clone(), body.clone())
                .await;
            attempts += 1;
            match sent {
                Ok(response) => break response,
                // It does no harm to open a second connection: nothing has happened on the first one.
                Err(none) if !none.was_not_sent && attempts < 3 => {}
                Err(none) => return Err(none.error),
            }
        };
        let status = response.status();
        if status != StatusCode::OK {
            return Err(rejected_error(status, &read_error_body(response).await));
        }
        let Some(id) = response.headers().get(header::CONNECTION_ID).cloned() else {
            let reason = "the response to initialize has no Acp-Connection-Id";
            return Err(ConnectError::Protocol(reason.to_owned()));
        };
        let terms = ResumeTerms::from_headers(response.headers()).filter(|_| wants_resume);
        let body = self.read_body(response).await?;
        options.report(&ConnectionStatus::Connected {
            connection_id: id.to_str().ok().map(str::to_owned),
            resumes_within: terms.map(|terms| terms.grace),
        });
        // This is set only once, because one task calls this function while it is not set.
        let _ = self.established.set(EstablishedConnection { id, terms });
        // The server cannot send anything until this stream is open.
        let mut stream = self.start_stream("");
        let _ = stream
            .state
            .wait_for(|state| *state != StreamState::Opening)
            .await;
        let mut message = body.to_vec();
        crate::websocket::replace_line_feeds(&mut message);
        self.deliver(&message).await;
        Ok(())
    }

    async fn read_body(&self, response: Response<Incoming>) -> Result<Bytes, ConnectError> {
        let body = Limited::new(response.into_body(), self.target.options.message);
        let body = body.collect().await.map_err(|error| {
            ConnectError::Protocol(format!("cannot read a response: {}", error_chain(&*error)))
        })?;
        Ok(body.to_bytes())
    }

    /// Sends a message. If the server rejects it, sends an error response to whichever side is waiting for a response.
    async fn send_message(
        self: &Arc<Self>,
        message: &OutgoingMessage<'_>,
        position: &mut u64,
    ) -> Result<(), ConnectError> {
        let session = message.outbound.session.as_deref();
        let body = Bytes::copy_from_slice(message.line);
        let error = match self.send_post(body, session, *position, false).await? {
            PostOutcome::Accepted => {
                *position += message.line.len() as u64 + 1;
                return Ok(());
            }
            PostOutcome::Rejected(error) => error,
        };
        tracing::warn!(%error, "the server rejected a message");
        if let Some(id) = &message.outbound.request {
            let answer = error_response(id, &error);
            self.deliver(&answer).await;
        } else if let Some(id) = &message.answers {
            // The agent waits for a response. If the server also rejects this one, the agent never gets one.
            let answer = error_response(id, &error);
            let length = answer.len() as u64 + 1;
            match self
                .send_post(answer.into(), session, *position, false)
                .await?
            {
                PostOutcome::Accepted => *position += length,
                PostOutcome::Rejected(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a POST. Retries it if that is safe.
    async fn send_post(
        &self,
        body: Bytes,
        session: Option<&str>,
        position: u64,
        is_list: bool,
    ) -> Result<PostOutcome, ConnectError> {
        let Some(mut headers) = self.headers(session) else {
            let error = ConnectError::UnsendableMessage(
                "invalid session id: it cannot be sent in a header".to_owned(),
            );
            return Ok(PostOutcome::Rejected(error));
        };
        let kind = if is_list {
            "application/x-ndjson"
        } else {
            "application/json"
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let patience = self.reconnect_timeout();
        if patience.is_some() {
            headers.insert(header::POSITION, position.into());
        }
        let mut backoff: Option<ReconnectBackoff> = None;
        loop {
            let sent = self
                .exchange
                .send(Method::POST, headers.clone(), body.clone())
                .await;
            let (error, may_repeat) = match sent {
                Ok(response) if response.status().is_success() => {
                    self.report_restored();
                    return Ok(PostOutcome::Accepted);
                }
                Ok(response) => {
                    let status = response.status();
                    let error = rejected_error(status, &read_error_body(response).await);
                    match status {
                        StatusCode::NOT_FOUND | StatusCode::CONFLICT | StatusCode::GONE => {
                            return Err(ConnectError::Lost {
                                reason: error.to_string(),
                                why: "the server does not recognize this connection".to_owned(),
                            });
                        }
                        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                            (error, true)
                        }
                        status if status.is_server_error() => (error, patience.is_some()),
                        _ => return Ok(PostOutcome::Rejected(error)),
                    }
                }
                Err(none) => (none.error, none.was_not_sent || patience.is_some()),
            };
            if !may_repeat {
                let why = "it is unknown whether the server received the last message".to_owned();
                return Err(ConnectError::Lost {
                    reason: error.to_string(),
                    why,
                });
            }
            self.report_cut(&error.to_string());
            let backoff = backoff
                .get_or_insert_with(|| ReconnectBackoff::new(patience.unwrap_or(REQUEST_TIMEOUT)));
            if !backoff.wait().await {
                let why = "the client could not reconnect to the server".to_owned();
                return Err(ConnectError::Lost {
                    reason: error.to_string(),
                    why,
                });
            }
        }
    }
}

/// Creates the error response to a request that the server has rejected.
fn error_response(id: &str, error: &ConnectError) -> Vec<u8> {
    let error = json!({"code": -32603, "message": format!("not delivered: {error}")});
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}").into_bytes()
}
