//! Opens and reads streams, and reopens them after they have been cut.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::routes::InboundChange;
use super::{CLOSE_TIMEOUT, HttpClient, StreamHandle, StreamState};
use crate::CloseStatus;
use crate::client::error::{ConnectError, rejected_error};
use crate::client::reconnect::ReconnectBackoff;
use crate::header;
use crate::message::parse_head;
use crate::sse::{EventReader, StreamEvent};

/// How long to keep reopening a stream that the server keeps ending.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(60);

/// How a stream ended.
enum StreamEnding {
    /// The server has closed the connection, with this status.
    Closed(CloseStatus),
    /// The stream ended cleanly. The server will send any further messages on the next stream.
    Clean,
    /// The stream was cut, for this reason.
    Cut(String),
    /// The server violated the protocol. Contains a description of how.
    Violation(String),
}

/// How far a stream has been read.
struct StreamReader {
    name: String,
    /// The position after the last message that was passed on, if the server sends positions.
    received: Option<u64>,
    /// The most recently acknowledged position.
    acknowledged: u64,
}

impl HttpClient {
    /// Returns the stream of a session, or of the connection if the name is empty. Opens it if necessary.
    pub(super) fn start_stream(self: &Arc<Self>, name: &str) -> StreamHandle {
        let mut streams = self.lock_streams();
        if let Some(stream) = streams.get(name) {
            let is_usable = !matches!(
                *stream.state.borrow(),
                StreamState::Refused | StreamState::Ended
            );
            if is_usable {
                return stream.clone();
            }
        }
        let (sender, state) = watch::channel(StreamState::Opening);
        let handle = StreamHandle {
            state,
            closed: CancellationToken::new(),
        };
        streams.insert(name.to_owned(), handle.clone());
        drop(streams);
        let reader = StreamReader {
            name: name.to_owned(),
            received: None,
            acknowledged: 0,
        };
        let (client, closed) = (Arc::clone(self), handle.closed.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = client.ended.cancelled() => {}
                () = client.keep_open(reader, &sender, &closed) => {}
            }
            sender.send_replace(StreamState::Ended);
        });
        handle
    }

    /// Keeps a stream open: reads it, and reopens it when it ends.
    async fn keep_open(
        self: &Arc<Self>,
        mut reader: StreamReader,
        state: &watch::Sender<StreamState>,
        closed: &CancellationToken,
    ) {
        let is_connection = reader.name.is_empty();
        let mut was_open = false;
        let mut why = String::new();
        let mut backoff = ReconnectBackoff::new(self.reconnect_timeout().unwrap_or(REOPEN_TIMEOUT));
        loop {
            if was_open && !backoff.wait().await {
                return self.end_connection(Some(lost_error(
                    &why,
                    "the stream could not be reopened".to_owned(),
                )));
            }
            match self.open_stream(&mut reader).await {
                Ok(response) => {
                    self.report_restored();
                    was_open = true;
                    state.send_replace(StreamState::Open);
                    let (opened, before) = (Instant::now(), reader.received);
                    let end = tokio::select! {
                        end = self.read_stream(&mut reader, response.into_body()) => end,
                        () = closed.cancelled() => {
                            // The session was closed, so the server can forget it.
                            if let Some(position) = reader.received {
                                let _ = self.acknowledge(&reader.name, position).await;
                            }
                            return;
                        }
                    };
                    let patience = self.reconnect_timeout();
                    match end {
                        StreamEnding::Closed(status) => {
                            if let (Some(position), true) = (reader.received, patience.is_some()) {
                                let _ = self.acknowledge(&reader.name, position).await;
                            }
                            if is_connection {
                                self.wait_for_streams().await;
                                self.close_by_server(status);
                            }
                            return;
                        }
                        StreamEnding::Violation(reason) => {
                            return self.end_connection(Some(ConnectError::Protocol(reason)));
                        }
                        StreamEnding::Clean => {
                            why = "the server ended the stream".to_owned();
                            if opened.elapsed() > Duration::from_secs(1) {
                                backoff = ReconnectBackoff::new(patience.unwrap_or(REOPEN_TIMEOUT));
                            }
                        }
                        StreamEnding::Cut(reason) => {
                            if reader.received.is_none() && patience.is_none() {
                                let reason =
                                    "the server does not support resuming streams".to_owned();
                                return self.end_connection(Some(lost_error(
                                    &cut_description(&reader.name),
                                    reason,
                                )));
                            }
                            self.report_cut(&reason);
                            why = reason;
                            if reader.received != before
                                || opened.elapsed() > Duration::from_secs(1)
                            {
                                backoff = ReconnectBackoff::new(patience.unwrap_or(REOPEN_TIMEOUT));
                            }
                        }
                    }
                }
                Err(error) => {
                    let is_final = match &error {
                        ConnectError::Status { status, .. } => {
                            status.is_client_error() && *status != StatusCode::TOO_MANY_REQUESTS
                        }
                        ConnectError::Unauthorized { .. } | ConnectError::Protocol(_) => true,
                        _ => false,
                    };
                    if !was_open && !is_connection && is_final {
                        // Some servers know a session only after `session/load`.
                        state.send_replace(StreamState::Refused);
                        return;
                    }
                    let is_gone = matches!(
                        error,
                        ConnectError::Status {
                            status: StatusCode::NOT_FOUND,
                            ..
                        }
                    );
                    if is_gone && was_open && self.resume_terms().is_none() {
                        // The connection or the session has ended properly.
                        if is_connection {
                            self.end_connection(None);
                        }
                        return;
                    }
                    if is_final {
                        return self.end_connection(Some(if was_open {
                            lost_error(&why, error.to_string())
                        } else {
                            error
                        }));
                    }
                    self.report_cut(&error.to_string());
                    was_open = true;
                    why = error.to_string();
                }
            }
        }
    }

    /// Waits for a limited time for the streams of all sessions to end.
    async fn wait_for_streams(&self) {
        let others: Vec<StreamHandle> = {
            let streams = self.lock_streams();
            streams
                .iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(_, s)| s.clone())
                .collect()
        };
        let ended = async {
            for mut stream in others {
                // This fails if the stream's task has ended.
                let _ = stream
                    .state
                    .wait_for(|state| *state == StreamState::Ended)
                    .await;
            }
        };
        let _ = timeout(CLOSE_TIMEOUT, ended).await;
    }

    /// Opens a stream with a GET request.
    async fn open_stream(
        &self,
        reader: &mut StreamReader,
    ) -> Result<Response<Incoming>, ConnectError> {
        let Some(mut headers) = self.headers(Some(&reader.name)) else {
            return Err(ConnectError::Protocol(
                "a session id is not a valid HTTP header value".to_owned(),
            ));
        };
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(position) = reader.received {
            headers.insert(header::SSE_LAST_EVENT_ID, position.into());
        }
        let opening = self.exchange.send(Method::GET, headers, Bytes::new());
        let response = timeout(self.target.options.connect_timeout, opening)
            .await
            .map_err(|_| ConnectError::Unreachable {
                to: self.target.address(),
                reason: "timed out".to_owned(),
            })?
            .map_err(|none| none.error)?;
        let status = response.status();
        if status != StatusCode::OK {
            let body = read_error_body(response).await;
            return Err(rejected_error(status, &body));
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        if !kind
            .unwrap_or_default()
            .trim_start()
            .starts_with("text/event-stream")
        {
            return Err(ConnectError::Protocol(
                "the content type of a stream is not text/event-stream".to_owned(),
            ));
        }
        if reader.received.is_none() && self.resume_terms().is_some() {
            let start = response.headers().get(header::LAST_EVENT_ID);
            reader.received = start.and_then(|start| start.to_str().ok()?.parse().ok());
            reader.acknowledged = reader.received.unwrap_or_default();
        }
        Ok(response)
    }

    /// Passes on a stream's messages until it ends.
    async fn read_stream(
        self: &Arc<Self>,
        reader: &mut StreamReader,
        mut body: Incoming,
    ) -> StreamEnding {
        let options = &self.target.options;
        let mut events = EventReader::new(options.message);
        let terms = self.resume_terms();
        let step = terms.map(|terms| terms.window.min(options.window) as u64 / 4);
        loop {
            // Servers without the extension can be silent for hours.
            let frame = match terms {
                Some(_) => match timeout(options.heartbeat, body.frame()).await {
                    Ok(frame) => frame,
                    Err(_) => {
                        // Acknowledge everything that has arrived while there is nothing else to do.
                        self.record_received(reader, 1);
                        let left = options.dead_after.saturating_sub(options.heartbeat);
                        match timeout(left, body.frame()).await {
                            Ok(frame) => frame,
                            Err(_) => {
                                let reason = "the server has stopped sending data".to_owned();
                                return StreamEnding::Cut(reason);
                            }
                        }
                    }
                },
                None => body.frame().await,
            };
            let data = match frame {
                None => return StreamEnding::Clean,
                Some(Err(error)) => {
                    return StreamEnding::Cut(crate::client::error::error_chain(&error));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => data,
                    Err(_) => continue,
                },
            };
            let mut input = &*data;
            loop {
                match events.next(&mut input) {
                    Ok(None) => break,
                    Ok(Some(StreamEvent::Close(code, reason))) => {
                        return StreamEnding::Closed(CloseStatus::new(code, reason));
                    }
                    Ok(Some(StreamEvent::Message { data, id })) => {
                        self.deliver(&data).await;
                        if id.is_some() {
                            reader.received = id;
                        }
                        if let Some(step) = step {
                            self.record_received(reader, step);
                        }
                    }
                    Err(_) => {
                        let reason = format!("a message is longer than {} bytes", options.message);
                        return StreamEnding::Violation(reason);
                    }
                }
            }
        }
    }

    /// Acknowledges the messages that have arrived once they add up to at least `step` bytes.
    fn record_received(&self, reader: &mut StreamReader, step: u64) {
        if let Some(position) = reader.received
            && position >= reader.acknowledged + step
        {
            reader.acknowledged = position;
            self.acknowledgements.add(&reader.name, position);
        }
    }

    /// Passes a message to the library once there is space for it.
    pub(super) async fn deliver(self: &Arc<Self>, message: &[u8]) {
        let _turn = self.turn.lock().await;
        self.incoming.wait_for_room().await;
        match parse_head(message) {
            Ok(head) => {
                let (inbound, is_waiting) = {
                    let mut routes = self.lock_routes();
                    (routes.record_inbound(&head), routes.has_pending_requests())
                };
                if !is_waiting {
                    self.answered.notify_one();
                }
                match inbound {
                    InboundChange::Nothing => {}
                    InboundChange::Opened(session) => {
                        self.start_stream(&session);
                    }
                    InboundChange::Closed(session) => {
                        if let Some(stream) = self.lock_streams().remove(&session) {
                            stream.closed.cancel();
                        }
                    }
                }
            }
            // This is not a message, but the library may report it.
            Err(_) if message.first() == Some(&b'{') => {}
            Err(_) => return,
        }
        self.incoming.push_message(message, true);
    }
}

fn lost_error(reason: &str, why: String) -> ConnectError {
    let reason = reason.to_owned();
    ConnectError::Lost { reason, why }
}

fn cut_description(name: &str) -> String {
    if name.is_empty() {
        "the stream for the connection was cut".to_owned()
    } else {
        format!("the stream for session {name} was cut")
    }
}

/// Reads the start of an error response's body.
pub(super) async fn read_error_body(response: Response<Incoming>) -> Bytes {
    let body = Limited::new(response.into_body(), 4096);
    let body = timeout(Duration::from_secs(2), body.collect()).await;
    body.ok()
        .and_then(Result::ok)
        .map(|body| body.to_bytes())
        .unwrap_or_default()
}
