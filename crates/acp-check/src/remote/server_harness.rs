//! A harness that acts as the client of a server under test, over streamable HTTP.
//!
//! Messages of all streams arrive in one place, each with the stream that it came on: which stream that is, is what
//! most checks are about.

use std::sync::Arc;
use std::time::Duration;

use acp_rules::schema::{Direction, Envelope};
use hyper::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::http::{HttpClient, HttpResponse, RawHttpRequest};
use super::server_target::{OfferedTransports, RemoteServer};
use super::sse::ServerEvent;
use crate::check_directory::CheckDirectory;
use crate::options::CheckOptions;
use crate::transcript::Transcript;
use crate::verdict::{CheckStop, fail, require, skip};
use crate::wire::ReceivedResponse;

/// The id of a connection that does not exist.
pub(crate) const UNKNOWN_CONNECTION: &str = "acp-check-no-such-connection";

/// The time limit for closing connections left open by a check.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(2);

/// The id of an opened stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamId(usize);

/// An opened stream, with its connection and, if it is for a session, the session.
#[derive(Debug, Clone)]
struct OpenedStream {
    connection: String,
    session: Option<String>,
    has_ended: bool,
    reading: AbortHandle,
}

/// A connection over HTTP, with its stream.
#[derive(Debug, Clone)]
pub(crate) struct TestedConnection {
    pub(crate) id: String,
    pub(crate) stream: StreamId,
    /// The result of `initialize`.
    pub(crate) initialize_result: Value,
}

/// A connection to a server of the remote transport, with the check acting as the client.
pub struct ServerHarness {
    pub(crate) server: Arc<RemoteServer>,
    pub(crate) offered: OfferedTransports,
    pub(crate) transcript: Transcript,
    pub(crate) options: Arc<CheckOptions>,
    /// All messages from streams so far, in order.
    pub(crate) messages: Vec<(StreamId, Value)>,
    /// The data of events that are not JSON, in order.
    pub(crate) noise: Vec<(StreamId, String)>,
    client: HttpClient,
    streams: Vec<OpenedStream>,
    events: mpsc::UnboundedReceiver<(StreamId, Option<ServerEvent>)>,
    sender: mpsc::UnboundedSender<(StreamId, Option<ServerEvent>)>,
    /// The ids of the connections to close at the end.
    connections: Vec<String>,
    directory: CheckDirectory,
    next_id: u64,
}

impl ServerHarness {
    pub(crate) fn new(
        server: Arc<RemoteServer>,
        offered: OfferedTransports,
        directory: CheckDirectory,
        options: Arc<CheckOptions>,
    ) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        Self {
            client: HttpClient::new(Arc::clone(&server), offered.http2),
            server,
            offered,
            transcript: Transcript::default(),
            options,
            messages: Vec::new(),
            noise: Vec::new(),
            streams: Vec::new(),
            events,
            sender,
            connections: Vec::new(),
            directory,
            next_id: 1,
        }
    }

    /// Closes any connections left open by the check, and returns the transcript.
    pub(crate) async fn end(mut self) -> Transcript {
        let connections = std::mem::take(&mut self.connections);
        let closing = async {
            for id in connections {
                let request = RawHttpRequest::new(Method::DELETE).connection(&id);
                let _ = self.client.send(&request).await;
            }
        };
        let _ = timeout(CLEANUP_TIMEOUT, closing).await;
        self.transcript
    }

    /// Skips the check if the server does not offer streamable HTTP.
    pub(crate) fn require_http(&self) -> Result<(), CheckStop> {
        if self.offered.http {
            Ok(())
        } else {
            skip("the server does not offer streamable HTTP")
        }
    }

    /// Returns a clone of the client, which shares its HTTP/2 connection.
    pub(crate) fn client(&self) -> HttpClient {
        self.client.clone()
    }

    /// Returns the time limit for one response.
    pub(crate) fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// Returns a new request id.
    pub(crate) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// Creates a request with a new id. Returns the id and the message.
    pub(crate) fn request_message(&mut self, method: &str, params: Value) -> (Value, Value) {
        let id = json!(self.new_id());
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (id, message)
    }

    /// Returns params for `initialize` that declare no capabilities, because no check here needs files or terminals.
    pub(crate) fn initialize_params() -> Value {
        json!({
            "protocolVersion": 1,
            "clientCapabilities": {},
            "clientInfo": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    /// Returns params for opening a session.
    pub(crate) fn session_params(&self) -> Value {
        let cwd = match self.server.session_cwd() {
            Some(cwd) => json!(cwd),
            None => json!(self.directory.project()),
        };
        json!({"cwd": cwd, "mcpServers": []})
    }

    /// Sends a request, and returns the response once its headers have arrived.
    pub(crate) async fn send(
        &mut self,
        request: &RawHttpRequest,
    ) -> Result<HttpResponse, CheckStop> {
        self.record_request(request);
        let method = &request.method;
        match timeout(self.options.timeout, self.client.send(request)).await {
            Ok(Ok(response)) => {
                self.record_response(&response);
                if method == Method::POST && (200..300).contains(&response.status) {
                    let id = response.header("acp-connection-id");
                    if !id.is_empty() && !self.connections.iter().any(|each| each == id) {
                        self.connections.push(id.to_owned());
                    }
                }
                Ok(response)
            }
            Ok(Err(why)) => fail(format!("no response to {method}: {why}")),
            Err(_) => fail(format!(
                "timed out after {:?} waiting for the response to {method}",
                self.options.timeout
            )),
        }
    }

    pub(crate) fn record_request(&mut self, request: &RawHttpRequest) {
        let mut line = format!("{} {}", request.method, self.server.path());
        for (name, value) in &request.headers {
            line.push_str(&format!(" [{name}: {value}]"));
        }
        if !request.body.is_empty() {
            line.push(' ');
            line.push_str(&String::from_utf8_lossy(&request.body));
        }
        self.transcript
            .push_line(Direction::ToAgent, line.as_bytes());
    }

    fn record_response(&mut self, response: &HttpResponse) {
        let mut line = response.status.to_string();
        for name in ["content-type", "acp-connection-id"] {
            let value = response.header(name);
            if !value.is_empty() {
                line.push_str(&format!(" [{name}: {value}]"));
            }
        }
        self.transcript
            .push_line(Direction::ToClient, line.as_bytes());
    }

    /// Reads the body of a response.
    pub(crate) async fn read_body(&mut self, response: HttpResponse) -> Result<Vec<u8>, CheckStop> {
        match timeout(self.options.timeout, response.read_body()).await {
            Ok(Ok(body)) => {
                if !body.is_empty() {
                    self.transcript.push_line(Direction::ToClient, &body);
                }
                Ok(body)
            }
            Ok(Err(why)) => fail(format!("the body of the response is incomplete: {why}")),
            Err(_) => fail(format!(
                "timed out after {:?} waiting for the end of a response",
                self.options.timeout
            )),
        }
    }

    /// Sends a request, and requires that the response has this status. `what` describes the request.
    pub(crate) async fn require_status(
        &mut self,
        what: &str,
        request: RawHttpRequest,
        expected: u16,
    ) -> Result<HttpResponse, CheckStop> {
        let response = self.send(&request).await?;
        let status = response.status;
        require(status == expected, || {
            format!("{what} got status {status}; expected {expected}")
        })?;
        Ok(response)
    }

    /// Sends a request, and requires a status that means success. `what` describes the request.
    async fn require_success(
        &mut self,
        what: &str,
        request: RawHttpRequest,
    ) -> Result<HttpResponse, CheckStop> {
        let response = self.send(&request).await?;
        let status = response.status;
        require((200..300).contains(&status), || {
            format!("{what} got status {status}")
        })?;
        Ok(response)
    }

    /// Opens a connection with `initialize`, but no stream. Returns the connection's id and the result.
    pub(crate) async fn initialize(&mut self) -> Result<(String, Value), CheckStop> {
        self.require_http()?;
        let (_, message) = self.request_message("initialize", Self::initialize_params());
        let request = RawHttpRequest::post(message.to_string());
        let response = self.require_success("`initialize`", request).await?;
        let id = response.header("acp-connection-id").to_owned();
        require(!id.is_empty(), || {
            "the response to `initialize` has no Acp-Connection-Id".to_owned()
        })?;
        let body = self.read_body(response).await?;
        let Ok(message) = serde_json::from_slice::<Value>(&body) else {
            return fail("the response to `initialize` is not JSON");
        };
        match read_response(&message) {
            Some(ReceivedResponse::Result(result)) => {
                if result["protocolVersion"] != 1 {
                    return skip("the agent does not speak protocol version 1");
                }
                Ok((id, result))
            }
            _ => fail(format!("`initialize` failed: {message}")),
        }
    }

    /// Opens a connection and its stream.
    pub(crate) async fn connect(&mut self) -> Result<TestedConnection, CheckStop> {
        let (id, initialize_result) = self.initialize().await?;
        let stream = self.open_stream(&id, None).await?;
        Ok(TestedConnection {
            id,
            stream,
            initialize_result,
        })
    }

    /// Opens a stream.
    pub(crate) async fn open_stream(
        &mut self,
        connection: &str,
        session: Option<&str>,
    ) -> Result<StreamId, CheckStop> {
        let mut request = RawHttpRequest::get().connection(connection);
        if let Some(session) = session {
            request = request.session(session);
        }
        let of = if session.is_some() {
            "the session's"
        } else {
            "the connection's"
        };
        let what = format!("GET for {of} stream");
        let response = self.require_status(&what, request, 200).await?;
        let kind = response.content_type();
        require(kind == "text/event-stream", || {
            format!("the Content-Type of {of} stream is `{kind}`; expected text/event-stream")
        })?;
        let id = StreamId(self.streams.len());
        let reading = tokio::spawn(response.read_events(id, self.sender.clone()));
        self.streams.push(OpenedStream {
            connection: connection.to_owned(),
            session: session.map(str::to_owned),
            has_ended: false,
            reading: reading.abort_handle(),
        });
        Ok(id)
    }

    /// Closes a stream, as a client does when it stops reading.
    pub(crate) fn close_stream(&self, stream: StreamId) {
        if let Some(opened) = self.streams.get(stream.0) {
            opened.reading.abort();
        }
    }

    /// Sends a message that must be accepted. `what` describes it.
    pub(crate) async fn post(
        &mut self,
        connection: &str,
        session: Option<&str>,
        what: &str,
        message: &Value,
    ) -> Result<HttpResponse, CheckStop> {
        let mut request = RawHttpRequest::post(message.to_string()).connection(connection);
        if let Some(session) = session {
            request = request.session(session);
        }
        self.require_success(what, request).await
    }

    /// Sends a request that must be accepted, and returns its id.
    pub(crate) async fn post_request(
        &mut self,
        connection: &str,
        session: Option<&str>,
        method: &str,
        params: Value,
    ) -> Result<Value, CheckStop> {
        let (id, message) = self.request_message(method, params);
        let what = format!("`{method}`");
        self.post(connection, session, &what, &message).await?;
        Ok(id)
    }

    /// Waits for the response to a request. Returns the response and the stream on which it arrived.
    pub(crate) async fn wait_for_response(
        &mut self,
        id: &Value,
    ) -> Result<(StreamId, ReceivedResponse), CheckStop> {
        let what = format!("a response to request {id}");
        let patience = self.options.timeout;
        self.wait_within(patience, &what, |stream, message| {
            response_to(message, id).map(|response| (stream, response))
        })
        .await
    }

    /// Reads messages until `found` returns a value. Calls `found` with each message and its stream, including messages
    /// that arrived earlier. Answers any other requests from the agent.
    pub(crate) async fn wait_within<T>(
        &mut self,
        patience: Duration,
        what: &str,
        mut found: impl FnMut(StreamId, &Value) -> Option<T>,
    ) -> Result<T, CheckStop> {
        for (stream, message) in &self.messages {
            if let Some(found) = found(*stream, message) {
                return Ok(found);
            }
        }
        let waiting = async {
            loop {
                let Some((stream, message)) = self.next().await else {
                    continue;
                };
                if let Some(found) = found(stream, &message) {
                    return Ok(found);
                }
                self.answer(stream, &message).await?;
            }
        };
        match timeout(patience, waiting).await {
            Ok(found) => found,
            Err(_) => fail(format!("timed out after {patience:?} waiting for {what}")),
        }
    }

    /// Returns the next message and its stream. Returns `None` for an event that is not JSON, and at the end of a
    /// stream.
    pub(crate) async fn next(&mut self) -> Option<(StreamId, Value)> {
        // The harness has a sender, too, so the channel never ends.
        let (stream, event) = self.events.recv().await?;
        let name = self.name(stream);
        let Some(event) = event else {
            if let Some(opened) = self.streams.get_mut(stream.0) {
                opened.has_ended = true;
            }
            self.transcript.push_event(format!("{name} ended"));
            return None;
        };
        let line = format!("[{name}] {}", event.data);
        self.transcript
            .push_line(Direction::ToClient, line.as_bytes());
        match serde_json::from_str::<Value>(&event.data) {
            Ok(message) => {
                self.messages.push((stream, message.clone()));
                Some((stream, message))
            }
            Err(_) => {
                self.noise.push((stream, event.data));
                None
            }
        }
    }

    /// Reads the messages that arrive within `time`, and answers the requests among them.
    pub(crate) async fn collect(&mut self, time: Duration) -> Result<(), CheckStop> {
        let end = tokio::time::Instant::now() + time;
        while let Ok(next) = tokio::time::timeout_at(end, self.next()).await {
            if let Some((stream, message)) = next {
                self.answer(stream, &message).await?;
            }
        }
        Ok(())
    }

    /// Waits until a stream has ended.
    pub(crate) async fn wait_until_ended(&mut self, stream: StreamId) -> Result<(), CheckStop> {
        let patience = self.options.timeout;
        let name = self.name(stream);
        let waiting = async {
            while !self.has_ended(stream) {
                self.next().await;
            }
        };
        match timeout(patience, waiting).await {
            Ok(()) => Ok(()),
            Err(_) => fail(format!("{name} did not end within {patience:?}")),
        }
    }

    fn has_ended(&self, stream: StreamId) -> bool {
        self.streams
            .get(stream.0)
            .is_some_and(|opened| opened.has_ended)
    }

    /// Responds to a request from the agent. Rejects permission requests, and returns an error for any other method.
    /// Ignores messages that are not requests.
    pub(crate) async fn answer(
        &mut self,
        stream: StreamId,
        message: &Value,
    ) -> Result<(), CheckStop> {
        let Some(Envelope::Request { id, method, .. }) = Envelope::parse(message) else {
            return Ok(());
        };
        let response = match method {
            "session/request_permission" => {
                let outcome = rejection(&message["params"]);
                json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
            }
            _ => {
                let error = json!({"code": -32601, "message": "method not found"});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        let Some(opened) = self.streams.get(stream.0).cloned() else {
            return Ok(());
        };
        let session = message["params"]["sessionId"].as_str();
        let session = session.or(opened.session.as_deref());
        let what = format!("the response to `{method}`");
        self.post(&opened.connection, session, &what, &response)
            .await?;
        Ok(())
    }

    /// Describes a stream for a failure message.
    pub(crate) fn name(&self, stream: StreamId) -> String {
        match self.streams.get(stream.0).map(|opened| &opened.session) {
            Some(Some(session)) => format!("the stream of session {session}"),
            _ => "the connection's stream".to_owned(),
        }
    }

    /// Requires that a message arrived on the right stream. `what` describes the message.
    pub(crate) fn require_expected_stream(
        &self,
        what: &str,
        arrived: StreamId,
        expected: StreamId,
    ) -> Result<(), CheckStop> {
        require(arrived == expected, || {
            let (arrived, expected) = (self.name(arrived), self.name(expected));
            format!("{what} arrived on {arrived}; expected {expected}")
        })
    }
}

/// Returns the response in a message, or `None` if the message is not a response.
pub(crate) fn read_response(message: &Value) -> Option<ReceivedResponse> {
    match Envelope::parse(message) {
        Some(Envelope::Response { result, .. }) => Some(ReceivedResponse::from_result(result)),
        _ => None,
    }
}

/// Returns the response in a message, if it answers the request with this id.
pub(crate) fn response_to(message: &Value, id: &Value) -> Option<ReceivedResponse> {
    (message.get("id") == Some(id))
        .then(|| read_response(message))
        .flatten()
}

/// Returns an outcome that rejects a permission request.
fn rejection(params: &Value) -> Value {
    let options = params["options"].as_array().map(Vec::as_slice);
    let mut options = options.unwrap_or_default().iter();
    match options.find(|option| option["kind"] == "reject_once") {
        Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
        None => json!({"outcome": "cancelled"}),
    }
}
