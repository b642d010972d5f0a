//! A harness that acts as the client of an agent under test.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use acp_rules::schema::{Direction, Envelope, SchemaVersion};

use super::capability::require_capability;
use super::host::CheckHost;
use super::options::{AgentTask, CheckOptions};
use super::target::TargetProcess;
use super::verdict::{CheckStop, fail, skip};
use super::wire::{ReceivedMessage, ReceivedResponse, Wire};
use crate::check_directory::CheckDirectory;

/// A method that no agent knows.
pub(super) const UNKNOWN_METHOD: &str = "_acp-check/unknown";

/// The id of a session that does not exist.
pub(super) const UNKNOWN_SESSION: &str = "acp-check-no-such-session";

/// How long to watch for messages that must not arrive.
pub(super) const QUIET_TIME: Duration = Duration::from_millis(200);

/// A connection to an agent, with the check acting as the client.
///
/// While the harness waits for a response, [`host`](Self::host) handles the agent's requests.
pub struct AgentHarness {
    /// The connection to the agent, for sending and receiving single messages.
    pub wire: Wire,
    /// The files, terminals and permissions that the agent can use.
    pub host: CheckHost,
    /// All messages from the agent, in order. [`updates`](Self::updates) and [`requests`](Self::requests) filter them.
    pub messages: Vec<ReceivedMessage>,
    /// Requests from the agent that the check itself must answer: id, method and `params`.
    pub held_requests: Vec<(Value, String, Value)>,
    /// The result of `initialize`, once the response has arrived.
    pub initialize_response: Option<Value>,
    directory: CheckDirectory,
    options: Arc<CheckOptions>,
    process: Option<Arc<acp_host::AgentProcess>>,
    version: SchemaVersion,
    /// Whether the agent has run other checks before, so that it is already initialized.
    is_reused: bool,
}

impl AgentHarness {
    pub(super) fn new(
        started: TargetProcess,
        place: CheckDirectory,
        options: Arc<CheckOptions>,
        version: SchemaVersion,
    ) -> Self {
        let patience = options.timeout;
        Self {
            wire: Wire::new(started.transport, version, Direction::ToAgent, patience),
            host: CheckHost::new(),
            messages: Vec::new(),
            held_requests: Vec::new(),
            initialize_response: None,
            directory: place,
            options,
            process: started.process,
            version,
            is_reused: false,
        }
    }

    /// Begins another check with the same agent, in another directory. Returns the directory of the check before.
    pub(super) fn begin_check(&mut self, directory: CheckDirectory) -> CheckDirectory {
        self.wire.begin_check();
        self.host = CheckHost::new();
        self.messages.clear();
        self.held_requests.clear();
        self.is_reused = true;
        std::mem::replace(&mut self.directory, directory)
    }

    pub(super) fn into_wire(
        self,
    ) -> (
        Wire,
        CheckHost,
        Option<Arc<acp_host::AgentProcess>>,
        CheckDirectory,
    ) {
        (self.wire, self.host, self.process, self.directory)
    }

    /// Returns the temporary directory of the check.
    #[must_use]
    pub fn directory(&self) -> &CheckDirectory {
        &self.directory
    }

    /// Returns the protocol version in use.
    #[must_use]
    pub fn version(&self) -> SchemaVersion {
        self.version
    }

    /// Returns the agent's process, or `None` if the agent runs inside this process.
    #[must_use]
    pub fn process(&self) -> Option<&acp_host::AgentProcess> {
        self.process.as_deref()
    }

    /// Returns the text of the prompt that makes the agent do a task.
    #[must_use]
    pub fn prompt_text(&self, task: AgentTask) -> String {
        self.options.prompt_for(task)
    }

    /// Returns the time limit for one turn.
    #[must_use]
    pub fn turn_timeout(&self) -> Duration {
        self.options.turn_timeout
    }

    /// Returns the next message from the agent, or `None` once the agent has closed its output. If the message is a
    /// request, the host has already started to handle it.
    ///
    /// # Errors
    /// See [`Wire::next`].
    pub async fn next(&mut self) -> Result<Option<ReceivedMessage>, CheckStop> {
        loop {
            let message = tokio::select! {
                message = self.wire.next() => message?,
                Some((id, response)) = self.host.next_response() => {
                    match response {
                        Ok(result) => self.wire.send_result(&id, result).await?,
                        Err(error) => {
                            let response = json!({"jsonrpc": "2.0", "id": id, "error": error});
                            self.wire.send(&response).await?;
                        }
                    }
                    continue;
                }
            };
            let Some(message) = message else {
                return Ok(None);
            };
            self.messages.push(message.clone());
            if let Some(Envelope::Request { id, method, .. }) = message.envelope() {
                let params = message.params();
                if !self.host.serve(id, method, params) {
                    let held = (id.clone(), method.to_owned(), params.clone());
                    self.held_requests.push(held);
                }
            }
            return Ok(Some(message));
        }
    }

    /// Returns the `params` of all updates so far, in order.
    pub fn updates(&self) -> impl DoubleEndedIterator<Item = &Value> + Clone {
        self.updates_since(0)
    }

    /// Returns the updates received after the first `messages` entries of [`messages`](Self::messages).
    pub fn updates_since(
        &self,
        messages: usize,
    ) -> impl DoubleEndedIterator<Item = &Value> + Clone {
        let since = self.messages.get(messages..).unwrap_or_default().iter();
        since.filter_map(|message| match message.envelope()? {
            Envelope::Notification {
                method: "session/update",
                ..
            } => Some(message.params()),
            _ => None,
        })
    }

    /// Returns the method and `params` of all requests from the agent so far, in order.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &Value)> + Clone {
        self.requests_since(0)
    }

    /// Returns the agent's requests received after the first `messages` entries of [`messages`](Self::messages).
    pub fn requests_since(&self, messages: usize) -> impl Iterator<Item = (&str, &Value)> + Clone {
        let since = self.messages.get(messages..).unwrap_or_default().iter();
        since.filter_map(|message| match message.envelope()? {
            Envelope::Request { method, .. } => Some((method, message.params())),
            _ => None,
        })
    }

    /// Reads messages until `found` returns a value, and returns that value. `found` is called after each message.
    ///
    /// # Errors
    /// `found` returns no value in time, or the agent closes the connection. In the reason, `what` describes the
    /// missing message.
    pub async fn wait_until<T>(
        &mut self,
        what: &str,
        found: impl FnMut(&Self, &ReceivedMessage) -> Option<T>,
    ) -> Result<T, CheckStop> {
        self.wait_within(self.wire.timeout(), what, found).await
    }

    /// Like [`wait_until`](Self::wait_until), but with the time limit of a turn. Use this for anything that depends on
    /// a model.
    ///
    /// # Errors
    /// See [`wait_until`](Self::wait_until).
    pub async fn wait_until_in_turn<T>(
        &mut self,
        what: &str,
        found: impl FnMut(&Self, &ReceivedMessage) -> Option<T>,
    ) -> Result<T, CheckStop> {
        self.wait_within(self.options.turn_timeout, what, found)
            .await
    }

    async fn wait_within<T>(
        &mut self,
        patience: Duration,
        what: &str,
        mut found: impl FnMut(&Self, &ReceivedMessage) -> Option<T>,
    ) -> Result<T, CheckStop> {
        let waiting = async {
            loop {
                match self.next().await? {
                    Some(message) => {
                        if let Some(found) = found(self, &message) {
                            return Ok(found);
                        }
                    }
                    None => return fail(format!("the agent closed its output before {what}")),
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(found) => found,
            Err(_) => fail(format!("timed out after {patience:?} waiting for {what}")),
        }
    }

    /// Waits for the response to a request.
    ///
    /// # Errors
    /// There is no response in time.
    pub async fn wait_for_response(&mut self, id: &Value) -> Result<ReceivedResponse, CheckStop> {
        let what = format!("a response to request {id}");
        self.wait_until(&what, |_, message| match message.envelope() {
            Some(Envelope::Response {
                id: answered,
                result,
            }) if answered == id => Some(ReceivedResponse::from_result(result)),
            _ => None,
        })
        .await
    }

    /// Waits for the responses to several requests, in any order, and returns them in the order of `ids`.
    ///
    /// # Errors
    /// A response does not arrive in time, or the agent closes the connection.
    pub async fn wait_for_responses(
        &mut self,
        ids: &[Value],
    ) -> Result<Vec<ReceivedResponse>, CheckStop> {
        let mut received: Vec<Option<ReceivedResponse>> = vec![None; ids.len()];
        let what = format!("responses to {} requests", ids.len());
        self.wait_until_in_turn(&what, |_, message| {
            if let Some(Envelope::Response { id, result }) = message.envelope()
                && let Some(at) = ids.iter().position(|asked| asked == id)
                && let Some(slot) = received.get_mut(at)
            {
                *slot = Some(ReceivedResponse::from_result(result));
            }
            received.iter().all(Option::is_some).then_some(())
        })
        .await?;
        Ok(received.into_iter().flatten().collect())
    }

    /// Collects up to a thousand messages that arrive within `time`. There may be none.
    ///
    /// # Errors
    /// See [`Wire::next`].
    pub async fn collect(&mut self, time: Duration) -> Result<Vec<ReceivedMessage>, CheckStop> {
        let end = tokio::time::Instant::now() + time;
        let mut received = Vec::new();
        loop {
            match tokio::time::timeout_at(end, self.next()).await {
                Ok(Ok(Some(message))) if received.len() < 1000 => received.push(message),
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) | Err(_) => return Ok(received),
                Ok(Err(stop)) => return Err(stop),
            }
        }
    }

    /// Requires that the agent still responds to requests. Sends a request with an unknown method, which must be
    /// rejected with an error. If the check fails, the reason mentions `after`, the preceding event.
    ///
    /// # Errors
    /// The agent does not respond.
    pub async fn require_responsive(&mut self, after: &str) -> Result<(), CheckStop> {
        match self.request(UNKNOWN_METHOD, json!({})).await {
            Ok(_) => Ok(()),
            Err(CheckStop::Fail(why)) => fail(format!(
                "the agent stopped responding after {after}: sent a `{UNKNOWN_METHOD}` request, but {why}"
            )),
            Err(stop) => Err(stop),
        }
    }

    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// There is no response in time.
    pub async fn request(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<ReceivedResponse, CheckStop> {
        let id = self.wire.send_request(method, params).await?;
        self.wait_for_response(&id).await
    }

    /// Sends a request that must succeed, and returns its result.
    ///
    /// # Errors
    /// The request fails, or there is no response.
    pub async fn request_result(
        &mut self,
        method: &str,
        params: Value,
    ) -> Result<Value, CheckStop> {
        match self.request(method, params).await? {
            ReceivedResponse::Result(result) => Ok(result),
            ReceivedResponse::Error { code, message, .. } => {
                fail(format!("`{method}` failed with error {code}: {message}"))
            }
        }
    }

    /// Sends a request that must fail with this error code.
    ///
    /// # Errors
    /// The request succeeds or fails with another code, or there is no response.
    pub async fn request_error(
        &mut self,
        method: &str,
        params: Value,
        with: i64,
    ) -> Result<(), CheckStop> {
        match self.request(method, params.clone()).await? {
            ReceivedResponse::Error { code, .. } if code == with => Ok(()),
            ReceivedResponse::Error { code, message, .. } => fail(format!(
                "`{method}` with {params} failed with error {code} ({message}); expected error {with}"
            )),
            ReceivedResponse::Result(_) => fail(format!(
                "`{method}` with {params} succeeded; expected an error"
            )),
        }
    }

    /// Returns default params for `initialize`, which declare every client capability.
    #[must_use]
    pub fn initialize_params(&self) -> Value {
        match self.version {
            SchemaVersion::V1 => json!({
                "protocolVersion": 1,
                "clientCapabilities": {
                    "fs": {"readTextFile": true, "writeTextFile": true},
                    "terminal": true,
                },
                "clientInfo": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
            }),
            SchemaVersion::V2 => json!({
                "protocolVersion": 2,
                "info": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
                "capabilities": {},
            }),
        }
    }

    /// Initializes the connection, and returns the agent's response. If an earlier check has initialized it, returns
    /// the response that the agent gave then.
    ///
    /// # Errors
    /// The request fails. If the agent does not support the version, the check is skipped.
    pub async fn initialize(&mut self) -> Result<Value, CheckStop> {
        let params = self.initialize_params();
        self.initialize_with(params).await
    }

    /// Like [`initialize`](Self::initialize), but with the given params.
    ///
    /// # Errors
    /// See [`initialize`](Self::initialize).
    pub async fn initialize_with(&mut self, params: Value) -> Result<Value, CheckStop> {
        if let Some(said) = self.initialize_response.as_ref().filter(|_| self.is_reused) {
            return if params == self.initialize_params() {
                Ok(said.clone())
            } else {
                let why = "the check sends its own `initialize`, so it needs a new agent";
                Err(CheckStop::Harness(why.to_owned()))
            };
        }
        let said = self.request_result("initialize", params).await?;
        let spoken = said.get("protocolVersion").and_then(Value::as_u64);
        let wanted = u64::from(self.version.number());
        if let Some(spoken) = spoken.filter(|spoken| *spoken != wanted) {
            return skip(format!(
                "the agent speaks protocol version {spoken}; expected {wanted}"
            ));
        }
        self.initialize_response = Some(said.clone());
        Ok(said)
    }

    /// Returns the value at a JSON pointer in the response to `initialize`, such as `/agentCapabilities/loadSession`,
    /// or null.
    #[must_use]
    pub fn capability(&self, pointer: &str) -> &Value {
        let said = self
            .initialize_response
            .as_ref()
            .and_then(|said| said.pointer(pointer));
        said.unwrap_or(&Value::Null)
    }

    /// Requires that the agent supports the capability at `pointer`, whose value must be true or an object.
    ///
    /// # Errors
    /// The check is skipped if the agent does not support the capability.
    pub fn require_capability(&self, pointer: &str) -> Result<(), CheckStop> {
        let response = self.initialize_response.as_ref().unwrap_or(&Value::Null);
        require_capability(response, pointer)
    }

    /// Returns the id of the auth method chosen in the options, if any.
    #[must_use]
    pub fn auth_method(&self) -> Option<&str> {
        self.options.auth_method.as_deref()
    }

    /// Returns params for opening a session in the check's project.
    #[must_use]
    pub fn session_params(&self) -> Value {
        json!({"cwd": self.directory.project(), "mcpServers": []})
    }

    /// Opens a session, after `initialize` if necessary, and returns the whole response.
    ///
    /// # Errors
    /// The request fails. If the agent requires a login and no auth method is given, the check is skipped.
    pub async fn open_session(&mut self) -> Result<Value, CheckStop> {
        if self.initialize_response.is_none() {
            self.initialize().await?;
        }
        let params = self.session_params();
        self.open_session_with(params).await
    }

    /// Like [`open_session`](Self::open_session), but with the given params.
    ///
    /// # Errors
    /// See [`open_session`](Self::open_session).
    pub async fn open_session_with(&mut self, params: Value) -> Result<Value, CheckStop> {
        let mut response = self.request("session/new", params.clone()).await?;
        if response.code() == Some(-32000) {
            let Some(method) = self.options.auth_method.clone() else {
                return skip("the agent requires a login; choose an auth method with --login");
            };
            let call = match self.version {
                SchemaVersion::V1 => "authenticate",
                SchemaVersion::V2 => "auth/login",
            };
            self.request_result(call, json!({"methodId": method}))
                .await?;
            response = self.request("session/new", params).await?;
        }
        let session = match response {
            ReceivedResponse::Result(session) => session,
            ReceivedResponse::Error { code, message, .. } => {
                return fail(format!("`session/new` failed with error {code}: {message}"));
            }
        };
        if let Some(id) = session.get("sessionId").and_then(Value::as_str) {
            self.host
                .open_session(id, self.directory.project().to_owned());
        }
        Ok(session)
    }

    /// Opens a session and returns its id.
    ///
    /// # Errors
    /// See [`open_session`](Self::open_session). In addition, the session has no id.
    pub async fn new_session(&mut self) -> Result<String, CheckStop> {
        let session = self.open_session().await?;
        match session.get("sessionId").and_then(Value::as_str) {
            Some(id) => Ok(id.to_owned()),
            None => fail("the response to `session/new` has no `sessionId`"),
        }
    }
}
