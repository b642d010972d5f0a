//! A harness that acts as the server, and as the agent behind it, for a client under test.
//!
//! What a check does not do itself is done as by a server that conforms to the draft.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use acp_host::AgentProcess;
use acp_rules::schema::{Direction, Envelope};
use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue, SET_COOKIE};
use hyper::{Method, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tungstenite::handshake::derive_accept_key;

use super::client_target::RemoteClientTarget;
use super::scripted_server::{PendingHttpRequest, ScriptedBody, ScriptedServer};
use super::websocket::{CLOSE, CONTINUATION, Frame, PING, PONG, TEXT, WebSocket};
use crate::check_directory::CheckDirectory;
use crate::client_harness::SESSION_ID;
use crate::options::CheckOptions;
use crate::target::TargetProcess;
use crate::transcript::Transcript;
use crate::verdict::{CheckStop, fail};

/// The connection id in all checks.
pub(crate) const CONNECTION_ID: &str = "conn_check";

/// A request received from the client.
#[derive(Debug, Clone)]
pub(crate) struct SeenRequest {
    pub(crate) method: Method,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    /// The body. Null if it is empty or not JSON.
    pub(crate) message: Value,
}

impl SeenRequest {
    /// Returns a header's value, or an empty string.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    /// Describes the request, for a failure message.
    pub(crate) fn describe(&self) -> String {
        match (self.message["method"].as_str(), &self.method) {
            (Some(method), _) => format!("the POST of `{method}`"),
            (None, &Method::POST) => "the POST of a response".to_owned(),
            (None, method) => format!("the {method}"),
        }
    }
}

/// An event from the client.
#[derive(Debug, Clone)]
pub(crate) enum RemoteClientEvent {
    /// A message arrived, over either transport.
    Message(Value),
    /// A WebSocket frame that is not a message arrived.
    Frame(Frame),
    /// Any other HTTP request arrived.
    Request(SeenRequest),
    /// The client has closed the WebSocket, or its process has exited.
    Ended,
}

/// An in-flight prompt from the client.
#[derive(Debug, Clone)]
pub(crate) struct RemotePrompt {
    /// The id of the request.
    pub(crate) id: Value,
}

/// A stream to the client, which may not be open yet.
#[derive(Default)]
struct ScriptedStream {
    sender: Option<mpsc::UnboundedSender<Bytes>>,
    /// The data written before the stream was opened.
    queue: Vec<Bytes>,
}

/// A server of the remote transport, controlled by the check, and the client that connects to it.
pub struct RemoteClientHarness {
    pub(crate) transcript: Transcript,
    pub(crate) options: Arc<CheckOptions>,
    /// All requests so far, in order.
    pub(crate) requests: Vec<SeenRequest>,
    /// All frames so far, in order.
    pub(crate) frames: Vec<Frame>,
    /// A cookie to set with the next response.
    pub(crate) cookie: Option<&'static str>,
    /// A method whose POST is rejected with this status.
    pub(crate) rejected: Option<(&'static str, u16)>,
    /// Whether the session's stream starts with a byte order mark.
    pub(crate) starts_with_mark: bool,
    /// The WebSocket, once it is open.
    pub(crate) socket: Option<WebSocket>,
    target: Arc<dyn RemoteClientTarget>,
    directory: CheckDirectory,
    server: ScriptedServer,
    process: Option<Arc<AgentProcess>>,
    streams: HashMap<Option<String>, ScriptedStream>,
    /// The start of a message that arrives in several frames.
    message: Vec<u8>,
    has_ended: bool,
}

impl RemoteClientHarness {
    pub(crate) async fn new(
        target: Arc<dyn RemoteClientTarget>,
        directory: CheckDirectory,
        options: Arc<CheckOptions>,
    ) -> Result<Self, String> {
        let server = ScriptedServer::start().await;
        Ok(Self {
            transcript: Transcript::default(),
            options,
            requests: Vec::new(),
            frames: Vec::new(),
            cookie: None,
            rejected: None,
            starts_with_mark: false,
            socket: None,
            target,
            directory,
            server: server.map_err(|e| format!("cannot listen for the client: {e}"))?,
            process: None,
            streams: HashMap::new(),
            message: Vec::new(),
            has_ended: false,
        })
    }

    /// Ends the client's process, and returns the transcript.
    pub(crate) async fn end(self) -> Transcript {
        let Self {
            process,
            server,
            transcript,
            ..
        } = self;
        drop(server);
        TargetProcess::end_process(process).await;
        transcript
    }

    /// Starts the client, with a URL of this scheme: `http` or `ws`.
    pub(crate) async fn start(&mut self, scheme: &str) -> Result<(), CheckStop> {
        let url = format!("{scheme}://{}/acp", self.server.address);
        self.transcript
            .push_event(format!("starting the client with {url}"));
        let started = self.target.start(&url, &self.directory).await;
        self.process = started.map_err(CheckStop::Harness)?;
        Ok(())
    }

    /// Waits for the next event from the client. HTTP requests, pings and close frames are answered immediately.
    pub(crate) async fn next(&mut self) -> Result<RemoteClientEvent, CheckStop> {
        loop {
            let frame = async {
                match &mut self.socket {
                    Some(socket) => socket.next().await,
                    None => std::future::pending().await,
                }
            };
            let process = self.process.clone().filter(|_| !self.has_ended);
            let exit = async {
                match process {
                    Some(process) => process.wait().await.to_string(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                Some(request) = self.server.next() => {
                    return self.receive(request).await;
                }
                frame = frame => match frame {
                    Ok(Some(frame)) => {
                        if let Some(event) = self.receive_frame(frame).await? {
                            return Ok(event);
                        }
                    }
                    Ok(None) => {
                        self.socket = None;
                        self.has_ended = true;
                        self.transcript.push_event("the client closed the WebSocket");
                        return Ok(RemoteClientEvent::Ended);
                    }
                    Err(why) => return fail(why),
                },
                exit = exit => {
                    self.has_ended = true;
                    self.transcript.push_event(format!("the client exited ({exit})"));
                    return Ok(RemoteClientEvent::Ended);
                }
            }
        }
    }

    /// Responds to an HTTP request.
    async fn receive(
        &mut self,
        request: PendingHttpRequest,
    ) -> Result<RemoteClientEvent, CheckStop> {
        let seen = SeenRequest {
            method: request.method.clone(),
            version: request.version,
            headers: request.headers,
            message: serde_json::from_slice(&request.body).unwrap_or_default(),
        };
        self.record(&seen, &request.body);
        self.requests.push(seen.clone());
        let session = seen.header("acp-session-id");
        let session = (!session.is_empty()).then(|| session.to_owned());
        let mut response = Response::new(ScriptedBody::whole(Bytes::new()));
        let headers = response.headers_mut();
        if let Some(cookie) = self.cookie.take() {
            headers.insert(SET_COOKIE, HeaderValue::from_static(cookie));
        }
        if let Some(upgrade) = request.upgrade {
            let key = seen.header("sec-websocket-key").as_bytes().to_vec();
            let accept = HeaderValue::from_str(&derive_accept_key(&key));
            headers.insert("connection", HeaderValue::from_static("Upgrade"));
            headers.insert("upgrade", HeaderValue::from_static("websocket"));
            headers.insert("acp-connection-id", HeaderValue::from_static(CONNECTION_ID));
            if let Ok(accept) = accept {
                headers.insert("sec-websocket-accept", accept);
            }
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            let _ = request.response.send(response);
            match timeout(self.options.timeout, upgrade).await {
                Ok(Ok(upgraded)) => {
                    self.socket = Some(WebSocket::server(Box::new(TokioIo::new(upgraded))));
                    return Ok(RemoteClientEvent::Request(seen));
                }
                _ => return fail("the client did not complete the WebSocket upgrade"),
            }
        }
        let event = match seen.method {
            Method::POST if !seen.message.is_null() => {
                RemoteClientEvent::Message(seen.message.clone())
            }
            _ => RemoteClientEvent::Request(seen.clone()),
        };
        let method = seen.message["method"].as_str().unwrap_or_default();
        match (&seen.method, self.rejected) {
            (&Method::POST, Some((rejected, status))) if rejected == method => {
                *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
            }
            (&Method::POST, _) if method == "initialize" => {
                headers.insert("content-type", HeaderValue::from_static("application/json"));
                headers.insert("acp-connection-id", HeaderValue::from_static(CONNECTION_ID));
                let body = json!({
                    "jsonrpc": "2.0",
                    "id": seen.message["id"],
                    "result": initialize_result(),
                });
                *response.body_mut() = ScriptedBody::whole(body.to_string());
            }
            (&Method::POST, _) => *response.status_mut() = StatusCode::ACCEPTED,
            (&Method::GET, _) => {
                headers.insert(
                    "content-type",
                    HeaderValue::from_static("text/event-stream"),
                );
                *response.body_mut() = self.open(session);
            }
            (&Method::DELETE, _) => {
                *response.status_mut() = StatusCode::ACCEPTED;
                self.streams.clear();
            }
            _ => *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED,
        }
        // The client may have given up.
        let _ = request.response.send(response);
        Ok(event)
    }

    /// Opens a stream and sends any data written to it earlier.
    fn open(&mut self, session: Option<String>) -> ScriptedBody {
        let (sender, receiver) = mpsc::unbounded_channel();
        if self.starts_with_mark && session.is_some() {
            let _ = sender.send(Bytes::from_static("\u{feff}".as_bytes()));
        }
        let stream = self.streams.entry(session).or_default();
        // Some clients wait for the first bytes.
        let _ = sender.send(Bytes::from_static(b": open\n\n"));
        for bytes in stream.queue.drain(..) {
            let _ = sender.send(bytes);
        }
        stream.sender = Some(sender);
        ScriptedBody::Stream(receiver)
    }

    fn record(&mut self, seen: &SeenRequest, body: &[u8]) {
        let mut line = seen.method.to_string();
        for name in [
            "acp-connection-id",
            "acp-session-id",
            "accept",
            "content-type",
            "cookie",
        ] {
            let value = seen.header(name);
            if !value.is_empty() {
                line.push_str(&format!(" [{name}: {value}]"));
            }
        }
        line.push(' ');
        line.push_str(&String::from_utf8_lossy(body));
        self.transcript
            .push_line(Direction::ToAgent, line.trim_end().as_bytes());
    }

    /// Handles a frame. Returns the resulting event, unless the frame is a ping or an incomplete message.
    async fn receive_frame(
        &mut self,
        frame: Frame,
    ) -> Result<Option<RemoteClientEvent>, CheckStop> {
        let text = String::from_utf8_lossy(&frame.payload).into_owned();
        let line = format!("[{}] {text}", frame.opcode);
        self.transcript
            .push_line(Direction::ToAgent, line.as_bytes());
        self.frames.push(frame.clone());
        match frame.opcode {
            PING => {
                self.send_frame(PONG, true, &frame.payload).await?;
                Ok(None)
            }
            // The client ends the connection. It waits for the answer.
            CLOSE => {
                let _ = self.send_frame(CLOSE, true, &frame.payload).await;
                Ok(Some(RemoteClientEvent::Frame(frame)))
            }
            TEXT | CONTINUATION => {
                self.message.extend_from_slice(&frame.payload);
                if !frame.is_final {
                    return Ok(None);
                }
                let message = serde_json::from_slice(&std::mem::take(&mut self.message));
                Ok(Some(match message {
                    Ok(message) => RemoteClientEvent::Message(message),
                    Err(_) => RemoteClientEvent::Frame(frame),
                }))
            }
            _ => Ok(Some(RemoteClientEvent::Frame(frame))),
        }
    }

    /// Sends a frame.
    pub(crate) async fn send_frame(
        &mut self,
        opcode: tungstenite::protocol::frame::coding::OpCode,
        is_final: bool,
        payload: &[u8],
    ) -> Result<(), CheckStop> {
        let line = format!("[{opcode}] {}", String::from_utf8_lossy(payload));
        self.transcript
            .push_line(Direction::ToClient, line.as_bytes());
        let Some(socket) = &mut self.socket else {
            return fail("the client has closed the WebSocket");
        };
        match timeout(self.options.timeout, socket.send(opcode, is_final, payload)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => fail(why),
            Err(_) => fail("the client is not reading from the WebSocket"),
        }
    }

    /// Writes to a stream. If it is not open yet, the bytes are sent once it opens.
    pub(crate) fn write(&mut self, session: Option<&str>, bytes: &[u8]) {
        let name = if session.is_some() {
            "the session's stream"
        } else {
            "the connection's stream"
        };
        let line = format!("[{name}] {:?}", String::from_utf8_lossy(bytes));
        self.transcript
            .push_line(Direction::ToClient, line.as_bytes());
        let stream = self.streams.entry(session.map(str::to_owned)).or_default();
        let bytes = Bytes::copy_from_slice(bytes);
        match &stream.sender {
            Some(sender) => {
                if let Err(unsent) = sender.send(bytes) {
                    stream.sender = None;
                    stream.queue.push(unsent.0);
                }
            }
            None => stream.queue.push(bytes),
        }
    }

    /// Ends the session's stream. The client may open it again.
    pub(crate) fn end_stream(&mut self) {
        self.transcript.push_event("ending the session's stream");
        let session = Some(SESSION_ID.to_owned());
        self.streams.entry(session).or_default().sender = None;
    }

    /// Returns `true` if the session's stream is open.
    pub(crate) fn has_session_stream(&self) -> bool {
        let stream = self.streams.get(&Some(SESSION_ID.to_owned()));
        stream.is_some_and(|stream| stream.sender.is_some())
    }

    /// Sends a message. Over HTTP, it is sent on the stream of the session or the connection. Over WebSocket, it is
    /// sent in a text frame.
    pub(crate) async fn send(
        &mut self,
        session: Option<&str>,
        message: &Value,
    ) -> Result<(), CheckStop> {
        if self.socket.is_some() {
            return self
                .send_frame(TEXT, true, message.to_string().as_bytes())
                .await;
        }
        self.write(session, format!("data: {message}\n\n").as_bytes());
        Ok(())
    }

    /// Responds to a request like an agent with minimal capabilities.
    pub(crate) async fn serve(&mut self, message: &Value) -> Result<(), CheckStop> {
        let Some(Envelope::Request { id, method, .. }) = Envelope::parse(message) else {
            return Ok(());
        };
        let result = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
        let (session, response) = match method {
            // Over HTTP, it was answered at once.
            "initialize" if self.socket.is_none() => return Ok(()),
            "initialize" => (None, result(initialize_result())),
            "session/new" => (None, result(json!({"sessionId": SESSION_ID}))),
            "session/prompt" => {
                let ended = result(json!({"stopReason": "end_turn"}));
                (Some(SESSION_ID), ended)
            }
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
                let session = message["params"].get("sessionId");
                (session.map(|_| SESSION_ID), response)
            }
        };
        self.send(session, &response).await
    }

    /// Waits until `found` returns a value for an event from the client. Answers any requests that arrive first.
    pub(crate) async fn wait_within<T>(
        &mut self,
        patience: Duration,
        what: &str,
        mut found: impl FnMut(&Self, &RemoteClientEvent) -> Option<T>,
    ) -> Result<T, CheckStop> {
        let waiting = async {
            loop {
                let event = self.next().await?;
                if let Some(found) = found(self, &event) {
                    return Ok(found);
                }
                match event {
                    RemoteClientEvent::Message(message) => self.serve(&message).await?,
                    RemoteClientEvent::Ended => {
                        return fail(format!("the client disconnected before {what}"));
                    }
                    RemoteClientEvent::Frame(_) | RemoteClientEvent::Request(_) => {}
                }
            }
        };
        match timeout(patience, waiting).await {
            Ok(found) => found,
            Err(_) => fail(format!("timed out after {patience:?} waiting for {what}")),
        }
    }

    /// Waits for the client's first prompt. Answers any requests that arrive first.
    pub(crate) async fn wait_for_prompt(&mut self) -> Result<RemotePrompt, CheckStop> {
        let patience = self.options.turn_timeout;
        self.wait_within(patience, "`session/prompt`", |_, event| match event {
            RemoteClientEvent::Message(message) if message["method"] == "session/prompt" => {
                let id = message["id"].clone();
                Some(RemotePrompt { id })
            }
            _ => None,
        })
        .await
    }

    /// Ends a turn.
    pub(crate) async fn end_turn(&mut self, prompt: &RemotePrompt) -> Result<(), CheckStop> {
        let result = json!({"stopReason": "end_turn"});
        let response = json!({"jsonrpc": "2.0", "id": prompt.id, "result": result});
        self.send(Some(SESSION_ID), &response).await
    }

    /// Waits for the response to a request from the agent. If the check fails, the reason mentions `what`, the
    /// preceding event.
    pub(crate) async fn wait_for_response(
        &mut self,
        id: &str,
        what: &str,
    ) -> Result<(), CheckStop> {
        let patience = self.options.timeout;
        let missing = format!("the response to a request after {what}");
        self.wait_within(patience, &missing, |_, event| match event {
            RemoteClientEvent::Message(message) => {
                (message["id"] == id && message.get("method").is_none()).then_some(())
            }
            _ => None,
        })
        .await
    }

    /// Waits until the client has ended the connection in any way: with a DELETE, by closing the WebSocket, or by
    /// exiting.
    pub(crate) async fn wait_until_ended(&mut self, after: &str) -> Result<(), CheckStop> {
        let patience = self.options.timeout;
        let what = format!("the end of the connection after {after}");
        self.wait_within(patience, &what, |_, event| match event {
            RemoteClientEvent::Ended => Some(()),
            RemoteClientEvent::Frame(frame) => (frame.opcode == CLOSE).then_some(()),
            RemoteClientEvent::Request(request) => (request.method == Method::DELETE).then_some(()),
            RemoteClientEvent::Message(_) => None,
        })
        .await
    }
}

fn initialize_result() -> Value {
    json!({
        "protocolVersion": 1,
        "agentCapabilities": {},
        "authMethods": [],
        "agentInfo": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
    })
}

/// Returns a request with an unknown method. Every client must respond to it with an error.
pub(crate) fn liveness_request(id: &str) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "_acp_check/alive",
        "params": {"sessionId": SESSION_ID},
    })
}
