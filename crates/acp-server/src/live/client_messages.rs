//! What a live agent does with a client's message.

use acp::jsonrpc::{self, Incoming, RequestId};
use acp::v1::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::agent::{LiveAgent, MAX_REQUESTS, MAX_SESSIONS, RequestEffect, SentRequest};
use super::client::{AnsweredQuestions, LiveClient, ToldPositions};
use super::log::ClientId;
use super::message::{notification, response, to_raw};
use super::prompt::SessionPrompt;
use super::record::SessionRecord;
use super::session::{ClientRequestId, SharedSession, WaitingClient};
use crate::users::ClientUser;

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
    #[serde(default, rename = "_meta")]
    meta: ClientMeta,
}

#[derive(Debug, Default, Deserialize)]
struct ClientMeta {
    #[serde(default)]
    live: LiveMeta,
}

/// What a client asks for beyond the protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LiveMeta {
    /// In `initialize`: tell the client its position after each part of a log.
    positions: bool,
    /// In `initialize`: tell the client its position after each line of a log.
    line_positions: bool,
    /// In `initialize`: the client is another server.
    is_node: bool,
    /// In `initialize` of another server: the user of its client.
    user: Option<ClientUser>,
    /// In `session/resume`: the client has read everything before this position.
    from: Option<u64>,
    /// With `from`: the log that the position is in.
    log: Option<String>,
    /// With `from`: the keys of the client's own prompts.
    own_prompts: Vec<String>,
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
            // Only another server has the server's own token, and may speak for others.
            if client.user.is_none() && read.meta.live.is_node {
                client.is_node = true;
                client.user.clone_from(&read.meta.live.user);
            }
            let name = name.map(|name| name.chars().take(100).collect());
            client.name = match (client.user_name(), name) {
                (Some(user), Some(name)) => Some(format!("{user} ({name})")),
                (Some(user), None) => Some(user.to_owned()),
                (None, name) => name,
            };
            client.positions = match read.meta.live {
                LiveMeta {
                    line_positions: true,
                    ..
                } => ToldPositions::AfterLines,
                LiveMeta {
                    positions: true, ..
                } => ToldPositions::AfterParts,
                _ => ToldPositions::Never,
            };
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
        // A database cannot store it.
        if let Some(id) = &read.session_id
            && id.0.contains('\0')
        {
            let reason = "sessionId contains a NUL character";
            return Err(jsonrpc::Error::invalid_params(reason));
        }
        if client.requests >= MAX_REQUESTS {
            let reason = format!("too many requests in flight (limit: {MAX_REQUESTS})");
            return Err(jsonrpc::Error::internal(reason));
        }
        self.audit_sent(request.client, method, params)?;
        match (method, &read.session_id) {
            ("session/new", _) => self.check_session_limit(request.client).map(|()| {
                let purpose = SentRequest::NewSession {
                    request: request.clone(),
                    cwd: read.cwd(),
                    params: open_params(params),
                };
                self.forward_request(request.client, method, params, purpose);
            }),
            ("session/load" | "session/resume", Some(session)) => {
                let with_replay = method == "session/load";
                if let Some(from) = read.meta.live.from {
                    self.check_log(session, read.meta.live.log.as_deref())?;
                    let own_prompts = read.meta.live.own_prompts;
                    return self.continue_session(
                        request.client,
                        Some(request),
                        session,
                        from,
                        own_prompts,
                    );
                }
                self.open_session(request, session, params, with_replay, read.cwd())
            }
            ("session/list", _) if !self.lists_sessions_of_agent(request.client) => {
                let sessions = self.list_sessions(request.client, read.cwd().as_deref());
                let sessions = to_raw(&sessions);
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
                    "session/delete" => RequestEffect::RemoveSession { is_deleted: true },
                    "session/archive" => RequestEffect::RemoveSession { is_deleted: false },
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

    /// Returns `true` if a client gets the sessions that the agent lists. Whose they are is not known.
    fn lists_sessions_of_agent(&self, client: ClientId) -> bool {
        let client = self.clients.get(&client);
        client.is_some_and(|client| client.may_see(None))
            && self.agent_supports(&["sessionCapabilities", "list"])
    }

    fn check_session_limit(&self, client: ClientId) -> Result<(), jsonrpc::Error> {
        let user = self.clients.get(&client).and_then(|c| c.user.as_ref());
        if let Some(user) = user
            && let Some(limit) = user.max_sessions
        {
            let sessions = self.sessions.values();
            let own = sessions.filter(|session| session.creator.as_deref() == Some(&*user.name));
            if own.count() >= limit {
                return Err(jsonrpc::Error::internal(format!(
                    "too many open sessions of user {} (limit: {limit}); close or delete one",
                    user.name
                )));
            }
        }
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
        if self.is_node(request.client) {
            // The other server looks for the owner again.
            return Err(jsonrpc::Error::resource_not_found(format!(
                "live session {id}"
            )));
        }
        // `session/load` needs `mcpServers`, which a client may omit in `session/resume`.
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let mut params: serde_json::Map<String, Value> = params.unwrap_or_default();
        params.entry("mcpServers").or_insert_with(|| json!([]));
        let params = to_raw(&params);
        // With a load, the history is there for clients that attach later.
        let method = if self.agent_supports(&["loadSession"]) {
            "session/load"
        } else if self.agent_supports(&["sessionCapabilities", "resume"]) {
            "session/resume"
        } else {
            let what = format!("session {id}");
            return Err(jsonrpc::Error::resource_not_found(what));
        };
        self.check_session_limit(request.client)?;
        let mut session = SharedSession::new(id.clone(), cwd, self.max_log_bytes);
        if self.unwritten.is_some() {
            session.log = super::log::LiveLog::stored(self.max_log_bytes, 0, []);
            session.record = Some(SessionRecord::new(open_params(Some(&params))));
        }
        session.loading = Some(vec![waiting]);
        self.sessions.insert(id.clone(), session);
        if with_replay {
            self.attach(request.client, id, true);
        }
        self.send_request(method, Some(&params), SentRequest::OpenSession(id.clone()));
        Ok(())
    }

    /// Fails if a position was in another log of the session, such as one of a server that has stopped.
    fn check_log(&self, id: &SessionId, log: Option<&str>) -> Result<(), jsonrpc::Error> {
        let own = self.sessions.get(id).map(|session| session.log.id());
        match (own, log) {
            (Some(own), Some(log)) if own.as_deref() != Some(log) => Err(invalid_cursor_error(id)),
            _ => Ok(()),
        }
    }

    /// Attaches a client to a live session whose log it has read up to a position. If it waits for a response to its
    /// `request`, it gets one.
    pub(super) fn continue_session(
        &mut self,
        client: ClientId,
        request: Option<&ClientRequestId>,
        id: &SessionId,
        from: u64,
        own_prompts: Vec<String>,
    ) -> Result<(), jsonrpc::Error> {
        let session = self.sessions.get_mut(id);
        let session = session
            .ok_or_else(|| jsonrpc::Error::resource_not_found(format!("live session {id}")))?;
        if !session.continue_from(client, from, own_prompts) {
            return Err(invalid_cursor_error(id));
        }
        match request {
            Some(request) => session.confirm_attached(request),
            None => session.ask_open_questions(client),
        }
        if let Some(client) = self.clients.get_mut(&client) {
            client.sessions.insert(id.clone());
        }
        self.wake_clients(id);
        Ok(())
    }

    /// Returns the live sessions, for an agent that cannot list its sessions.
    fn list_sessions(&self, client: ClientId, cwd: Option<&str>) -> Value {
        let client = self.clients.get(&client);
        let sessions = self
            .sessions
            .values()
            .filter(|session| client.is_some_and(|c| c.may_see(session.creator.as_deref())))
            .filter(|session| cwd.is_none_or(|cwd| session.cwd.as_deref() == Some(cwd)));
        let sessions: Vec<Value> = sessions
            .map(|session| {
                json!({ "sessionId": session.id, "cwd": session.cwd, "title": session.title })
            })
            .collect();
        json!({ "sessions": sessions })
    }

    /// Returns a session that a client is attached to.
    pub(super) fn attached_session(
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

    /// Detaches a client. If it was the last one, closes the session, which ends its turn. Whoever may not prompt may not
    /// end a turn either, and only detaches.
    fn close_session(
        &mut self,
        request: &ClientRequestId,
        id: &SessionId,
        params: Option<&RawValue>,
    ) -> Result<(), jsonrpc::Error> {
        let client = self.clients.get(&request.client);
        let may_close = client.is_some_and(LiveClient::may_prompt);
        let session = self.attached_session(request.client, id)?;
        let is_last = session.clients().count() == 1 && may_close;
        let is_running = session.prompts.turn.is_some();
        if is_last && self.agent_supports(&["sessionCapabilities", "close"]) {
            let purpose = SentRequest::ForClient {
                request: request.clone(),
                session: Some(id.clone()),
                effect: RequestEffect::RemoveSession { is_deleted: false },
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

    /// Cancels a request of a client.
    fn cancel_request(&mut self, request: &ClientRequestId) {
        let mut running = None;
        for session in self.sessions.values_mut() {
            let is_cancelled =
                |prompt: &SessionPrompt| prompt.sender.request().as_ref() == Some(request);
            if let Some(prompt) = session.prompts.take_back(is_cancelled).pop() {
                let id = session.id.clone();
                self.end_prompt(&id, prompt, Err(jsonrpc::Error::request_cancelled()));
                self.announce_queue(&id);
                return;
            }
            let turn = session.prompts.turn.as_ref();
            if turn.is_some_and(|turn| is_cancelled(&turn.prompt)) {
                running = Some(session.id.clone());
            }
        }
        let sent = self.sent_requests().find(|(_, sent)| match sent {
            SentRequest::NewSession {
                request: pending, ..
            }
            | SentRequest::ForClient {
                request: pending, ..
            } => pending == request,
            SentRequest::Prompt { session, .. } => running.as_ref() == Some(session),
            SentRequest::Initialize
            | SentRequest::OpenSession(_)
            | SentRequest::ReopenSession(_)
            | SentRequest::CloseSession => false,
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
        // What cannot be recorded counts as not answered.
        let recorded = self.audit_answer(client, &session_id, question, &result);
        let result = recorded.and(result);
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

fn invalid_cursor_error(id: &SessionId) -> jsonrpc::Error {
    let reason = format!("invalid cursor: the log of session {id} no longer contains it");
    jsonrpc::Error::invalid_params(reason)
}

/// Returns those params of a request that another server needs to open the session again.
fn open_params(params: Option<&RawValue>) -> Value {
    let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let mut params: Value = params.unwrap_or_default();
    if let Some(params) = params.as_object_mut() {
        params.retain(|name, _| name == "mcpServers" || name == "additionalDirectories");
    }
    params
}

/// Returns the error for a prompt of a session that the agent cannot open any more.
pub(super) fn session_lost_error(id: &SessionId, reason: &str) -> jsonrpc::Error {
    let mut error = jsonrpc::Error::internal(format!(
        "the agent cannot open session {id} on this server: {reason}; its log can still be read, and be given to a new session"
    ));
    error.data = Some(json!({ "live": "sessionLost" }));
    error
}
