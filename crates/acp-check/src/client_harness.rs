//! A harness that acts as the agent of a client under test.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use acp_rules::schema::{Direction, Envelope, SchemaVersion};

use super::options::CheckOptions;
use super::target::TargetProcess;
use super::verdict::{CheckStop, fail};
use super::wire::{ReceivedMessage, ReceivedResponse, Wire};
use crate::check_directory::CheckDirectory;

/// The session id in all checks except those about session ids.
pub const SESSION_ID: &str = "sess_check";

/// A connection to a client, with the check acting as the agent.
pub struct ClientHarness {
    /// The connection to the client, for sending and receiving single messages.
    pub wire: Wire,
    /// The params of the client's `initialize` request, once it has arrived.
    pub initialize_params: Option<Value>,
    /// All messages from the client, in order.
    pub messages: Vec<ReceivedMessage>,
    /// The result of `initialize`. A check can change it or respond to the request itself.
    pub initialize_result: Value,
    /// The result of `session/new`. A check can change it.
    pub session: Value,
    /// The results of other requests, by method. Requests with any other method are rejected as unknown.
    pub results: BTreeMap<&'static str, Value>,
    directory: CheckDirectory,
    options: Arc<CheckOptions>,
    process: Option<Arc<acp_host::AgentProcess>>,
    version: SchemaVersion,
}

/// An in-flight prompt from the client.
#[derive(Debug, Clone, PartialEq)]
pub struct ReceivedPrompt {
    /// The id of the prompt request.
    pub id: Value,
    /// The id of the session that the prompt is for.
    pub session: String,
    /// The content blocks of the prompt.
    pub prompt: Value,
}

impl ClientHarness {
    pub(super) fn new(
        started: TargetProcess,
        place: CheckDirectory,
        options: Arc<CheckOptions>,
        version: SchemaVersion,
    ) -> Self {
        let patience = options.timeout;
        let introduction = match version {
            SchemaVersion::V1 => json!({
                "protocolVersion": 1,
                "agentCapabilities": {},
                "authMethods": [],
                "agentInfo": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
            }),
            SchemaVersion::V2 => json!({
                "protocolVersion": 2,
                "info": {"name": "acp-check", "version": env!("CARGO_PKG_VERSION")},
                "capabilities": {"session": {}},
            }),
        };
        Self {
            wire: Wire::new(started.transport, version, Direction::ToClient, patience),
            initialize_params: None,
            messages: Vec::new(),
            initialize_result: introduction,
            session: json!({"sessionId": SESSION_ID}),
            results: BTreeMap::new(),
            directory: place,
            options,
            process: started.process,
            version,
        }
    }

    pub(super) fn into_wire(self) -> (Wire, Option<Arc<acp_host::AgentProcess>>, CheckDirectory) {
        (self.wire, self.process, self.directory)
    }

    /// Returns the temporary directory of the check.
    #[must_use]
    pub fn directory(&self) -> &CheckDirectory {
        &self.directory
    }

    /// Returns the client's process, or `None` if the client runs inside this process.
    #[must_use]
    pub fn process(&self) -> Option<&acp_host::AgentProcess> {
        self.process.as_deref()
    }

    /// Returns the protocol version in use.
    #[must_use]
    pub fn version(&self) -> SchemaVersion {
        self.version
    }

    /// Returns the next message from the client, or `None` once the client has closed its output.
    ///
    /// # Errors
    /// See [`Wire::next`].
    pub async fn next(&mut self) -> Result<Option<ReceivedMessage>, CheckStop> {
        let message = self.wire.next().await?;
        if let Some(message) = &message {
            self.messages.push(message.clone());
        }
        Ok(message)
    }

    /// Waits for a request or notification with this method, and returns its id (null for a notification) and params.
    /// Passes any requests that arrive first to [`serve`](Self::serve).
    ///
    /// # Errors
    /// No such message arrives in time, or the client closes the connection.
    pub async fn wait_for_message(&mut self, method: &str) -> Result<(Value, Value), CheckStop> {
        let patience = match method {
            // The message may depend on a user or a model.
            "session/prompt" => self.options.turn_timeout,
            _ => self.wire.timeout(),
        };
        let waiting = async {
            loop {
                let Some(message) = self.next().await? else {
                    return fail(format!("the client closed its output before `{method}`"));
                };
                if message.method() == method {
                    let id = message.0.get("id").cloned().unwrap_or_default();
                    return Ok((id, message.params().clone()));
                }
                self.serve(&message).await?;
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(found) => found,
            Err(_) => fail(format!(
                "the client did not send `{method}` within {patience:?}"
            )),
        }
    }

    /// Responds to a request like an agent with minimal capabilities.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn serve(&mut self, message: &ReceivedMessage) -> Result<(), CheckStop> {
        let Some(Envelope::Request { id, method, .. }) = message.envelope() else {
            return Ok(());
        };
        match method {
            "initialize" => {
                self.initialize_params = Some(message.params().clone());
                let introduction = self.initialize_result.clone();
                self.wire.send_result(id, introduction).await
            }
            "session/new" => {
                let session = self.session.clone();
                self.wire.send_result(id, session).await
            }
            "authenticate" | "auth/login" | "session/set_mode" | "session/close" => {
                self.wire.send_result(id, json!({})).await
            }
            _ => match self.results.get(method).cloned() {
                Some(result) => self.wire.send_result(id, result).await,
                None => self.wire.send_error(id, -32601, "Method not found").await,
            },
        }
    }

    /// Responds to the client's requests up to its first prompt, and returns that prompt.
    ///
    /// # Errors
    /// No prompt arrives in time, or the client closes the connection.
    pub async fn wait_for_prompt(&mut self) -> Result<ReceivedPrompt, CheckStop> {
        let (id, params) = self.wait_for_message("session/prompt").await?;
        let session = params.get("sessionId").and_then(Value::as_str);
        Ok(ReceivedPrompt {
            id,
            session: session.unwrap_or_default().to_owned(),
            prompt: params.get("prompt").cloned().unwrap_or_default(),
        })
    }

    /// Sends an update for a session.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn send_update(&mut self, session: &str, update: Value) -> Result<(), CheckStop> {
        let params = json!({"sessionId": session, "update": update});
        self.wire.send_notification("session/update", params).await
    }

    /// Sends text as a chunk of an agent message.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn send_text(&mut self, session: &str, text: &str) -> Result<(), CheckStop> {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        self.send_update(session, update).await
    }

    /// Sends a request to the client and waits for its response.
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

    /// Waits for the response to a request.
    ///
    /// # Errors
    /// There is no response in time.
    pub async fn wait_for_response(&mut self, id: &Value) -> Result<ReceivedResponse, CheckStop> {
        let patience = self.wire.timeout();
        let waiting = async {
            loop {
                let Some(message) = self.next().await? else {
                    return fail(format!(
                        "the client closed its output before responding to request {id}"
                    ));
                };
                match message.envelope() {
                    Some(Envelope::Response {
                        id: answered,
                        result,
                    }) if answered == id => {
                        return Ok(ReceivedResponse::from_result(result));
                    }
                    _ => self.serve(&message).await?,
                }
            }
        };
        match tokio::time::timeout(patience, waiting).await {
            Ok(response) => response,
            Err(_) => fail(format!("no response to request {id} within {patience:?}")),
        }
    }

    /// Ends the turn of a prompt.
    ///
    /// # Errors
    /// The client stopped reading or closed the connection.
    pub async fn end_turn(
        &mut self,
        prompted: &ReceivedPrompt,
        reason: &str,
    ) -> Result<(), CheckStop> {
        self.wire
            .send_result(&prompted.id, json!({"stopReason": reason}))
            .await
    }

    /// Returns the value at a JSON pointer in the params of the client's `initialize` request, such as
    /// `/clientCapabilities/fs`, or null.
    #[must_use]
    pub fn capability(&self, pointer: &str) -> &Value {
        let said = self
            .initialize_params
            .as_ref()
            .and_then(|said| said.pointer(pointer));
        said.unwrap_or(&Value::Null)
    }
}
