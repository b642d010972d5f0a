//! One end of a connection, for sending and receiving individual lines.

use std::collections::HashMap;
use std::time::Duration;

use acp::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use acp_rules::schema::{Direction, Envelope, Schema, SchemaFault, SchemaFaultKind, SchemaVersion};

use super::open_items::OpenItems;
use super::schema_results::{MAX_FAULTS, SchemaResults, ShapeKey};
use super::transcript::Transcript;
use super::verdict::{CheckStop, fail};
use super::watch::RuleWatch;
use super::wire_input::{MAX_OUTPUT_BYTES, WireInput, read_lines};

/// The maximum number of lines to buffer. When the buffer is full, the program has to wait.
const MAX_BUFFERED_LINES: usize = 64;

/// A message received from the program under test, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedMessage(pub Value);

impl ReceivedMessage {
    /// Returns the parts of the message, or `None` if it is not a JSON-RPC message.
    #[must_use]
    pub fn envelope(&self) -> Option<Envelope<'_>> {
        Envelope::parse(&self.0)
    }

    /// Returns the method of the message, or an empty string for a response.
    #[must_use]
    pub fn method(&self) -> &str {
        self.envelope()
            .and_then(|envelope| envelope.method())
            .unwrap_or_default()
    }

    /// Returns the params of the message, or null if it has none.
    #[must_use]
    pub fn params(&self) -> &Value {
        self.0.get("params").unwrap_or(&Value::Null)
    }
}

/// The response to a request: a result or an error.
#[derive(Debug, Clone, PartialEq)]
pub enum ReceivedResponse {
    /// The request succeeded with this result.
    Result(Value),
    /// The request failed with an error.
    Error {
        /// The code of the error.
        code: i64,
        /// The message of the error.
        message: String,
        /// The whole error object, as JSON.
        error: Value,
    },
}

/// One end of a connection, through which a check sends and receives messages.
pub struct Wire {
    schema: &'static Schema,
    /// The direction in which this end sends.
    sends: Direction,
    reads: mpsc::Receiver<WireInput>,
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    next_id: u64,
    /// The methods of the requests sent from this end, by id.
    pending_methods: HashMap<String, String>,
    /// The requests without a response, and the sessions of this check.
    open: OpenItems,
    /// The `initialize` request that was sent, and the result that it got.
    introduction: (Option<Vec<u8>>, Option<Value>),
    /// The number of lines sent in this check.
    sent_count: usize,
    watch: RuleWatch,
    transcript: Transcript,
    schema_results: SchemaResults,
    /// The start of each of the first lines that were not JSON.
    noise: Vec<Vec<u8>>,
    /// Whether a different version was negotiated, to which this version's schema does not apply.
    other_version: bool,
    has_ended: bool,
    patience: Duration,
}

impl Wire {
    pub(super) fn new(
        transport: Transport,
        version: SchemaVersion,
        sends: Direction,
        patience: Duration,
    ) -> Self {
        let (reader, writer) = transport.into_split();
        let (to, reads) = mpsc::channel(MAX_BUFFERED_LINES);
        tokio::spawn(read_lines(reader, to));
        Self {
            schema: Schema::for_version(version),
            sends,
            reads,
            writer: Some(Box::new(writer)),
            next_id: 0,
            pending_methods: HashMap::new(),
            open: OpenItems::default(),
            introduction: (None, None),
            sent_count: 0,
            watch: RuleWatch::new(version, sends),
            transcript: Transcript::default(),
            schema_results: SchemaResults::default(),
            noise: Vec::new(),
            other_version: false,
            has_ended: false,
            patience,
        }
    }

    /// Returns the time limit for a single message.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.patience
    }

    /// Adds an event to the transcript.
    pub fn add_note(&mut self, what: impl Into<String>) {
        self.transcript.push_event(what);
    }

    /// Writes bytes unchanged. They may be part of a line.
    ///
    /// # Errors
    /// The other side stopped reading or closed the connection.
    pub async fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), CheckStop> {
        let patience = self.patience;
        self.watch.record_sent(bytes);
        let Some(writer) = &mut self.writer else {
            return Err(CheckStop::Harness(
                "the connection is already closed".to_owned(),
            ));
        };
        let written = async {
            writer.write_all(bytes).await?;
            writer.flush().await
        };
        match tokio::time::timeout(patience, written).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => fail(format!("the program closed its input: {e}")),
            Err(_) => fail(format!(
                "the program did not read its input for {patience:?}"
            )),
        }
    }

    /// Writes a line with arbitrary content.
    ///
    /// # Errors
    /// The other side stopped reading or closed the connection.
    pub async fn send_line(&mut self, line: &[u8]) -> Result<(), CheckStop> {
        self.transcript.push_line(self.sends, line);
        self.sent_count += 1;
        let mut bytes = line.to_vec();
        bytes.push(b'\n');
        self.send_bytes(&bytes).await
    }

    /// Sends a message as one line.
    ///
    /// # Errors
    /// The other side stopped reading or closed the connection.
    pub async fn send(&mut self, message: &Value) -> Result<(), CheckStop> {
        if let Some(Envelope::Request { id, method, .. }) = Envelope::parse(message) {
            self.pending_methods
                .insert(id.to_string(), method.to_owned());
            if method == "initialize" {
                self.introduction = (Some(message.to_string().into_bytes()), None);
            }
        }
        self.open.record_sent(message);
        self.send_line(message.to_string().as_bytes()).await
    }

    /// Sends a request to the program under test, and returns the request's id.
    ///
    /// # Errors
    /// The other side stopped reading or closed the connection.
    pub async fn send_request(&mut self, method: &str, params: Value) -> Result<Value, CheckStop> {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await?;
        Ok(id)
    }

    /// Sends a notification to the program under test.
    ///
    /// # Errors
    /// The other side stopped reading or closed the connection.
    pub async fn send_notification(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<(), CheckStop> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await
    }

    /// Responds to a request with a result.
    ///
    /// # Errors
    /// The other side stopped reading or closed the connection.
    pub async fn send_result(&mut self, id: &Value, result: Value) -> Result<(), CheckStop> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
            .await
    }

    /// Responds to a request with an error.
    ///
    /// # Errors
    /// The other side stopped reading or closed the connection.
    pub async fn send_error(
        &mut self,
        id: &Value,
        code: i64,
        message: &str,
    ) -> Result<(), CheckStop> {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
            .await
    }

    /// Closes this end's output, which is the other side's input.
    pub fn close(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            // Dropping one half of an in-memory pair does not close the pair.
            tokio::spawn(async move { writer.shutdown().await });
            self.transcript.push_event("the program's input was closed");
            self.watch.record_closed(self.sends);
        }
    }

    /// Returns the first lines that were not JSON, truncated if they are long.
    #[must_use]
    pub fn noise(&self) -> &[Vec<u8>] {
        &self.noise
    }

    /// Returns all schema faults in received messages.
    pub fn faults(&self) -> impl Iterator<Item = &SchemaFault> {
        let faults = self.schema_results.faults.values().flatten();
        faults.map(|(fault, _)| fault)
    }

    /// Returns `true` if the other side has closed its output.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the next message, or `None` at the end. Skips lines that are not JSON, because separate checks report
    /// them. Cancel safe: dropping the future loses no message.
    ///
    /// # Errors
    /// A failure of the suite: the program sent more than a check reads.
    pub async fn next(&mut self) -> Result<Option<ReceivedMessage>, CheckStop> {
        loop {
            match self.reads.recv().await {
                Some(WireInput::Line(line)) => {
                    self.transcript.push_line(self.sends.reversed(), &line);
                    match serde_json::from_slice::<Value>(&line) {
                        Ok(value) => {
                            let is_late = self.open.belongs_to_earlier_check(&value);
                            self.open.record_received(&value);
                            if is_late {
                                continue;
                            }
                            self.record_introduction(&value);
                            self.check_schema(&value);
                            self.watch.record_received(&value);
                            return Ok(Some(ReceivedMessage(value)));
                        }
                        Err(e) => {
                            if self.noise.len() < MAX_FAULTS {
                                self.noise.push(line.get(..200).unwrap_or(&line).to_vec());
                            }
                            let text = String::from_utf8_lossy(line.get(..80).unwrap_or(&line));
                            self.watch.record_dropped_message();
                            self.schema_results.add_noise(format!("{e}: {text}"));
                        }
                    }
                }
                Some(WireInput::TooLong) => {
                    let why = format!(
                        "the program sent more than {MAX_OUTPUT_BYTES} bytes, the limit for one connection"
                    );
                    return Err(CheckStop::Harness(why));
                }
                Some(WireInput::End) | None => {
                    if !self.has_ended {
                        self.has_ended = true;
                        self.watch.record_closed(self.sends.reversed());
                        self.transcript.push_event("the program closed its output");
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Remembers the first response to `initialize`.
    fn record_introduction(&mut self, value: &Value) {
        if let Some(Envelope::Response { id, result: Ok(_) }) = Envelope::parse(value)
            && self.introduction.1.is_none()
            && self
                .pending_methods
                .get(&id.to_string())
                .is_some_and(|m| m == "initialize")
        {
            self.introduction.1 = Some(value.clone());
        }
    }

    fn check_schema(&mut self, value: &Value) {
        let from = self.sends.reversed();
        let envelope = Envelope::parse(value);
        let asked = match &envelope {
            Some(Envelope::Response { id, .. }) => {
                self.pending_methods.get(&id.to_string()).cloned()
            }
            _ => None,
        };
        if self.belongs_to_other_version(envelope.as_ref(), asked.as_deref()) {
            return;
        }
        let shape = self.shape_key(envelope.as_ref(), asked.as_deref());
        let faults = self.schema.check_message(from, value, asked.as_deref());
        let envelopes = ("JSON-RPC".to_owned(), None);
        for shape in [&shape, &envelopes] {
            *self
                .schema_results
                .shape_counts
                .entry(shape.clone())
                .or_default() += 1;
        }
        for fault in faults {
            let of_envelope = matches!(fault.kind, SchemaFaultKind::Envelope(_));
            let shape = if of_envelope { &envelopes } else { &shape };
            let kept = self.schema_results.faults.entry(shape.clone()).or_default();
            if kept.len() < MAX_FAULTS {
                kept.push((fault, value.to_string()));
            }
        }
    }

    /// Returns `true` if a message belongs to another version. That is the case for an `initialize` request with that
    /// version, and for messages that follow a response with it.
    fn belongs_to_other_version(
        &mut self,
        envelope: Option<&Envelope<'_>>,
        asked: Option<&str>,
    ) -> bool {
        let own = u64::from(self.schema.version().number());
        let other = |carried: &Value| {
            let said = carried.get("protocolVersion").and_then(Value::as_u64);
            said.is_some_and(|said| said != own && matches!(said, 1 | 2))
        };
        match envelope {
            Some(Envelope::Response { result, .. }) if asked == Some("initialize") => {
                self.other_version |= result.is_ok_and(other);
            }
            Some(Envelope::Request {
                method: "initialize",
                params,
                ..
            }) => return params.is_some_and(other),
            _ => {}
        }
        self.other_version
    }

    /// Returns the shape of a message. For a response, `asked` is the method of the request.
    fn shape_key(&self, envelope: Option<&Envelope<'_>>, asked: Option<&str>) -> ShapeKey {
        let of = |name: &str| (name.to_owned(), None);
        match envelope {
            None => of("JSON-RPC"),
            Some(Envelope::Response { result: Err(_), .. }) => of("Error"),
            Some(Envelope::Response { .. }) => {
                let method = asked.and_then(|method| self.schema.method(method));
                match method.and_then(|method| method.result) {
                    Some(name) => of(name),
                    None => of("JSON-RPC"),
                }
            }
            Some(
                Envelope::Request { method, params, .. }
                | Envelope::Notification { method, params },
            ) => match self.schema.method(method) {
                None => of("JSON-RPC"),
                Some(method) if method.name == "session/update" => {
                    let kind = params
                        .and_then(|params| params.pointer("/update/sessionUpdate"))
                        .and_then(Value::as_str);
                    match kind.filter(|kind| self.schema.variants("SessionUpdate").contains(kind)) {
                        // A message without a known type has no check of its own.
                        None => of("JSON-RPC"),
                        Some(kind) => ("SessionUpdate".to_owned(), Some(kind.to_owned())),
                    }
                }
                Some(method) => of(method.params),
            },
        }
    }

    /// Returns the transcript and the results of the check, which has ended.
    pub(super) fn take_results(&mut self) -> (Transcript, SchemaResults) {
        let mut results = std::mem::take(&mut self.schema_results);
        results.violations = self.watch.take_violations();
        (std::mem::take(&mut self.transcript), results)
    }

    /// Begins another check on the same connection. Its transcript and its rules begin with the connection's
    /// `initialize`, and otherwise contain nothing of earlier checks.
    pub(super) fn begin_check(&mut self) {
        self.take_results();
        self.noise.clear();
        self.sent_count = 0;
        self.open.begin_check();
        self.watch = RuleWatch::new(self.schema.version(), self.sends);
        if let (Some(sent), Some(received)) = &self.introduction {
            let what = "the program has run other checks before, on a connection that began with:";
            self.transcript.push_event(what);
            self.transcript.push_line(self.sends, sent);
            let line = received.to_string();
            (self.transcript).push_line(self.sends.reversed(), line.as_bytes());
            self.transcript
                .push_event("the messages of this check follow");
            self.watch.replay(sent, received);
        }
    }

    /// Drops everything that arrived between two checks. Returns `false` if the connection cannot be used for another
    /// check, because it has ended or the program waits for a response.
    pub(super) fn discard_input(&mut self) -> bool {
        while let Ok(input) = self.reads.try_recv() {
            let WireInput::Line(line) = input else {
                self.has_ended = true;
                return false;
            };
            match serde_json::from_slice(&line) {
                Ok(value) => self.open.record_received(&value),
                Err(_) => return false,
            }
        }
        !self.has_ended && !self.reads.is_closed() && !self.open.has_unanswered_requests()
    }

    /// The requests without a response, and the sessions of this check.
    pub(super) fn open_items(&self) -> &OpenItems {
        &self.open
    }

    /// Returns `true` if something was sent in this check.
    pub(super) fn has_sent(&self) -> bool {
        self.sent_count > 0
    }
}

impl ReceivedResponse {
    /// Converts the result or the error of a response.
    #[must_use]
    pub fn from_result(result: Result<&Value, &Value>) -> Self {
        match result {
            Ok(result) => Self::Result(result.clone()),
            Err(error) => Self::Error {
                code: error
                    .get("code")
                    .and_then(Value::as_i64)
                    .unwrap_or_default(),
                message: error
                    .get("message")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
                error: error.clone(),
            },
        }
    }

    /// Returns the error code, or `None` for a result.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Result(_) => None,
            Self::Error { code, .. } => Some(*code),
        }
    }
}
