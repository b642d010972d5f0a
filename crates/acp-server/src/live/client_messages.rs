//! What a live agent does with a client's message.

use std::collections::VecDeque;

use acp::jsonrpc::{self, Incoming, RequestId};
use acp::v1::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::agent::{
    AnsweredQuestions, LiveAgent, MAX_REQUESTS, MAX_SESSIONS, RequestEffect, SentRequest,
};
use super::log::ClientId;
use super::message::{notification, response, to_raw};
use super::session::{
    ClientRequestId, MAX_QUEUED_PROMPTS, PromptNumber, PromptSender, QueuedPrompt, SharedSession,
    WaitingClient,
};

/// The members of a client's params that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientParams {
    #[serde(default)]
    session_id: Option<SessionId>,
    #[serde(default)]
    cwd: Option<Value>,
    #[serde(default)]
    mode_id: Option<Value>,
    #[serde(default)]
    model_id: Option<Value>,
    #[serde(default)]
    client_info: Option<Value>,
    #[serde(default)]
    request_id: Option<RequestId>,
    #[serde(default)]
    questions: Option<AnsweredQuestions>,
}

impl ClientParams {
    /// Reads params. Malformed ones are left to the agent, which gets them unchanged.
    fn read(params: Option<&RawValue>) -> Self {
        let params = params.map(|params| serde_json::from_str(params.get()));
        params.and_then(Result::ok).unwrap_or_default()
    }

    fn cwd(&self) -> Option<String> {
        Some(self.cwd.as_ref()?.as_str()?.to_owned())
    }
}

impl LiveAgent {
    /// Handles a line of a client, without its line feed.
    pub(super) fn handle_client_line(&mut self, client: ClientId, line: &[u8]) {
        match jsonrpc::parse(line) {
            Ok(Incoming::Request { id, method, params }) => {
                let request = ClientRequestId { client, id };
                if let Err(error) = self.handle_client_request(&request, &method, params) {
                    self.respond(&request, &Err(error));
                }
            }
            Ok(Incoming::Notification { method, params }) => {
                self.handle_client_notification(client, &method, params);
            }
            Ok(Incoming::Response { id, result }) => {
                self.handle_answer(client, &id, result.map(ToOwned::to_owned));
            }
            Err(error) => {
                let (id, error) = error.to_response();
                self.respond(&ClientRequestId { client, id }, &Err(error));
            }
        }
    }

    /// Handles a request. An error is sent as the response.
    fn handle_client_request(
        &mut self,
        request: &ClientRequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), jsonrpc::Error> {
        let read = ClientParams::read(params);
        let Some(client) = self.clients.get_mut(&request.client) else {
            return Ok(());
        };
        if method == "initialize" {
            client.is_initialized = true;
            let info = read.client_info.unwrap_or_default();
            let name = info["title"].as_str().or(info["name"].as_str());
            client.name = name.map(|name| name.chars().take(100).collect());
            self.answer_initialize(request);
            return Ok(());
        }
        if let Some(control) = method.strip_prefix("_live/") {
            return self.handle_control_request(request, control, params);
        }
        if !client.is_initialized {
            let reason = "the connection is not initialized; send initialize first";
            return Err(jsonrpc::Error::new(jsonrpc::Error::INVALID_REQUEST, reason));
        }
        if client.requests >= MAX_REQUESTS {
            let reason = format!("too many requests in flight (limit: {MAX_REQUESTS})");
            return Err(jsonrpc::Error::internal(reason));
        }
        match (method, &read.session_id) {
            ("session/new", _) => self.check_session_limit().map(|()| {
                let purpose = SentRequest::NewSession {
                    request: request.clone(),
                    cwd: read.cwd(),
                };
                self.forward_request(request.client, method, params, purpose);
            }),
            ("session/load" | "session/resume", Some(session)) => {
                let with_replay = method == "session/load";
                self.open_session(request, session, params, with_replay, read.cwd())
            }
            ("session/list", _) if !self.agent_supports(&["sessionCapabilities", "list"]) => {
                let sessions = to_raw(&self.list_sessions(read.cwd().as_deref()));
                self.respond(request, &Ok(sessions));
                Ok(())
            }
            ("session/prompt", Some(session)) => {
                self.prompt(request, true, session, params).map(drop)
            }
            ("session/close", Some(session)) => self.close_session(request, session, params),
            (_, session) => {
                let session = session.as_ref().map(|id| self.root_session(id));
                let effect = match method {
                    "session/set_mode" => RequestEffect::SetMode(read.mode_id.unwrap_or_default()),
                    "session/set_model" => {
                        RequestEffect::SetModel(read.model_id.unwrap_or_default())
                    }
                    "session/set_config_option" => RequestEffect::SetConfigOption,
                    // An archived session is not open any more. It can be loaded again.
                    "session/delete" | "session/archive" => RequestEffect::RemoveSession,
                    _ => RequestEffect::None,
                };
                let purpose = SentRequest::ForClient {
                    request: request.clone(),
                    session,
                    effect,
                };
                self.forward_request(request.client, method, params, purpose);
                Ok(())
            }
        }
    }

    fn forward_request(
        &mut self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
        purpose: SentRequest,
    ) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.requests += 1;
        }
        self.send_request(method, params, purpose);
    }

    fn check_session_limit(&self) -> Result<(), jsonrpc::Error> {
        match self.sessions.len() < MAX_SESSIONS {
            true => Ok(()),
            false => Err(jsonrpc::Error::internal(format!(
                "too many open sessions (limit: {MAX_SESSIONS})"
            ))),
        }
    }

    /// Attaches a client to a live session, or lets the agent open the session first.
    fn open_session(
        &mut self,
        request: &ClientRequestId,
        id: &SessionId,
        params: Option<&RawValue>,
        with_replay: bool,
        cwd: Option<String>,
    ) -> Result<(), jsonrpc::Error> {
        let waiting = WaitingClient {
            request: request.clone(),
            with_replay,
        };
        if let Some(session) = self.sessions.get_mut(id) {
            match &mut session.loading {
                Some(loading) => {
                    loading.push(waiting);
                    if with_replay {
                        self.attach(request.client, id, true);
                    }
                }
                None => {
                    self.attach(request.client, id, with_replay);
                    if let Some(session) = self.sessions.get_mut(id) {
                        session.confirm_attached(request);
                    }
                }
            }
            self.wake_clients(id);
            return Ok(());
        }
        // With a load, the history is there for clients that attach later.
        let method = if self.agent_supports(&["loadSession"]) {
            "session/load"
        } else if self.agent_supports(&["sessionCapabilities", "resume"]) {
            "session/resume"
        } else {
            let what = format!("session {id}");
            return Err(jsonrpc::Error::resource_not_found(what));
        };
        self.check_session_limit()?;
        let mut session = SharedSession::new(id.clone(), cwd, self.max_log_bytes);
        session.loading = Some(vec![waiting]);
        self.sessions.insert(id.clone(), session);
        if with_replay {
            self.attach(request.client, id, true);
        }
        self.send_request(method, params, SentRequest::OpenSession(id.clone()));
        Ok(())
    }

    /// Returns the live sessions, for an agent that cannot list its sessions.
    fn list_sessions(&self, cwd: Option<&str>) -> Value {
        let sessions = self
            .sessions
            .values()
            .filter(|session| cwd.is_none_or(|cwd| session.cwd.as_deref() == Some(cwd)));
        let sessions: Vec<Value> = sessions
            .map(|session| {
                json!({ "sessionId": session.id, "cwd": session.cwd, "title": session.title })
            })
            .collect();
        json!({ "sessions": sessions })
    }

    /// Returns a session that a client is attached to.
    fn attached_session(
        &mut self,
        client: ClientId,
        id: &SessionId,
    ) -> Result<&mut SharedSession, jsonrpc::Error> {
        let session = self.sessions.get_mut(id);
        session
            .filter(|session| session.is_attached(client))
            .ok_or_else(|| {
                let what = format!("session {id} (it is not open on this connection)");
                jsonrpc::Error::resource_not_found(what)
            })
    }

    /// Adds a prompt to the queue of a session. If the client `waits`, the end of the turn is the response to its request.
    pub(super) fn prompt(
        &mut self,
        request: &ClientRequestId,
        waits: bool,
        id: &SessionId,
        params: Option<&RawValue>,
    ) -> Result<PromptNumber, jsonrpc::Error> {
        let name = self.client_name(request.client);
        let session = self.attached_session(request.client, id)?;
        if session.queue.len() >= MAX_QUEUED_PROMPTS {
            return Err(jsonrpc::Error::internal(format!(
                "too many queued prompts (limit: {MAX_QUEUED_PROMPTS})"
            )));
        }
        let params = params.map_or_else(|| to_raw(&json!({})), ToOwned::to_owned);
        let sender = PromptSender {
            client: request.client,
            name,
            request: waits.then(|| request.id.clone()),
        };
        let number = session.push_to_queue(sender, params);
        match session.turn {
            Some(_) => self.announce_queue(id),
            None => self.start_next_turn(id),
        }
        Ok(number)
    }

    /// Detaches a client. If it was the last one, closes the session.
    fn close_session(
        &mut self,
        request: &ClientRequestId,
        id: &SessionId,
        params: Option<&RawValue>,
    ) -> Result<(), jsonrpc::Error> {
        let session = self.attached_session(request.client, id)?;
        let is_last = session.clients().count() == 1;
        let is_running = session.turn.is_some();
        if is_last && self.agent_supports(&["sessionCapabilities", "close"]) {
            let purpose = SentRequest::ForClient {
                request: request.clone(),
                session: Some(id.clone()),
                effect: RequestEffect::RemoveSession,
            };
            self.forward_request(request.client, "session/close", params, purpose);
            return Ok(());
        }
        if is_last && is_running {
            self.cancel_turn(request.client, id);
        }
        self.detach(request.client, id);
        self.respond(request, &Ok(to_raw(&json!({}))));
        Ok(())
    }

    fn handle_client_notification(
        &mut self,
        client: ClientId,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let read = ClientParams::read(params);
        match (method, read) {
            (
                "session/cancel",
                ClientParams {
                    session_id: Some(session),
                    ..
                },
            ) => {
                let root = self.root_session(&session);
                if self.attached_session(client, &root).is_err() {
                    tracing::debug!(%session, "ignoring session/cancel for a session that is not open");
                } else if root == session {
                    self.cancel_turn(client, &session);
                } else {
                    self.send_to_agent(&notification(method, &params));
                }
            }
            (
                "$/cancel_request",
                ClientParams {
                    request_id: Some(id),
                    ..
                },
            ) => self.cancel_request(&ClientRequestId { client, id }),
            ("_live/answers", read) => {
                if let (Some(questions), Some(client)) =
                    (read.questions, self.clients.get_mut(&client))
                {
                    client.answers = questions;
                }
            }
            (method, _) if method.starts_with("_live/") => {
                tracing::debug!(method, "ignoring an unknown notification");
            }
            _ => self.send_to_agent(&match params {
                Some(params) => notification(method, params),
                None => notification(method, &json!({})),
            }),
        }
    }

    /// Cancels the running turn, and takes back the prompts that this client has queued.
    pub(super) fn cancel_turn(&mut self, client: ClientId, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let (own, others): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut session.queue)
            .into_iter()
            .partition(|prompt| prompt.sender.client == client);
        session.queue = others;
        let is_queue_changed = !own.is_empty();
        let cancelled = Ok(to_raw(&json!({ "stopReason": "cancelled" })));
        for request in own.iter().filter_map(|prompt| prompt.sender.request()) {
            session.respond(&request, &cancelled);
        }
        if session.turn.is_some() {
            // A client must answer its permission requests when it cancels a turn.
            let open: Vec<_> = session
                .questions()
                .filter(|(_, question)| question.method == "session/request_permission")
                .map(|(id, _)| id)
                .collect();
            for question in open {
                if let Some(closed) = self.close_question(id, question, None) {
                    let result = Ok(to_raw(&json!({ "outcome": { "outcome": "cancelled" } })));
                    self.send_to_agent(&response(&closed.id, &result));
                }
            }
            let params = json!({ "sessionId": id });
            self.send_to_agent(&notification("session/cancel", &params));
        }
        if is_queue_changed {
            self.announce_queue(id);
        }
        self.wake_clients(id);
    }

    /// Cancels a request of a client.
    fn cancel_request(&mut self, request: &ClientRequestId) {
        for session in self.sessions.values_mut() {
            let queued = |prompt: &QueuedPrompt| prompt.sender.request().as_ref() == Some(request);
            if let Some(at) = session.queue.iter().position(queued) {
                session.queue.remove(at);
                session.respond(request, &Err(jsonrpc::Error::request_cancelled()));
                let id = session.id.clone();
                self.announce_queue(&id);
                return;
            }
        }
        let sent = self.sent_requests().find(|(_, sent)| match sent {
            SentRequest::NewSession {
                request: pending, ..
            }
            | SentRequest::ForClient {
                request: pending, ..
            } => pending == request,
            SentRequest::Prompt { sender, .. } => sender.request().as_ref() == Some(request),
            SentRequest::Initialize | SentRequest::OpenSession(_) | SentRequest::CloseSession => {
                false
            }
        });
        if let Some((id, _)) = sent {
            let params = json!({ "requestId": id });
            self.send_to_agent(&notification("$/cancel_request", &params));
        }
    }

    /// Handles a client's response to a question. The first answer counts.
    fn handle_answer(
        &mut self,
        client: ClientId,
        id: &RequestId,
        result: Result<Box<RawValue>, jsonrpc::Error>,
    ) {
        let Some((session_id, question)) = self.take_asked(client, id) else {
            tracing::debug!(%id, "ignoring an answer to a question that is no longer open");
            return;
        };
        // A client that cannot answer leaves the question to the others.
        if result.is_err()
            && let Some(session) = self.sessions.get_mut(&session_id)
            && session.withdraw(question, client)
        {
            return;
        }
        if let Some(closed) = self.close_question(&session_id, question, Some(client)) {
            self.send_to_agent(&response(&closed.id, &result));
        }
    }
}
