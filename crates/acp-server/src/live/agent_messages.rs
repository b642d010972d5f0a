//! What a live agent does with a message of its agent.

use acp::jsonrpc::{self, Incoming, RequestId};
use acp::v1::SessionId;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::agent::{LiveAgent, RequestEffect, SentRequest};
use super::log::{Audience, ClientId};
use super::message::{LiveLine, notification, response, to_raw, with_line_feed};
use super::record::SessionRecord;
use super::session::{ClientRequestId, MAX_QUESTIONS, OpenState, SharedSession};
use super::setup::LiveSetup;
use super::unwritten::StoredSessionEnd;

/// The maximum number of subagents.
const MAX_SUBAGENTS: usize = 1024;

/// A notification that belongs to no session is not sent to a client that has more than this many bytes left to read.
const MAX_BROADCAST_BACKLOG: usize = 1024 * 1024;

/// The members of an update that matter here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateParams {
    session_id: SessionId,
    update: UpdateHead,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpdateHead {
    session_update: String,
    #[serde(default)]
    current_mode_id: Option<Value>,
    #[serde(default)]
    config_options: Option<Value>,
    #[serde(default)]
    title: Option<Value>,
    /// The session of a subagent.
    #[serde(default)]
    session_id: Option<SessionId>,
}

/// The members of other params that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentParams {
    #[serde(default)]
    session_id: Option<SessionId>,
    #[serde(default)]
    request_id: Option<RequestId>,
}

impl LiveAgent {
    /// Handles a line of the agent, without its line feed. Lines that are not messages are ignored.
    ///
    /// # Errors
    /// The agent cannot be used.
    pub(super) fn handle_agent_line(&mut self, line: &[u8]) -> Result<(), String> {
        // Most lines are updates, which are read in a single pass.
        if let Some(("session/update", params)) = jsonrpc::parse_plain_notification(line)
            && let Ok(params) = serde_json::from_str(params)
        {
            self.handle_update(params, with_line_feed(line));
            return Ok(());
        }
        match jsonrpc::parse(line) {
            Ok(Incoming::Notification { method, params }) => {
                self.handle_agent_notification(&method, params, line);
            }
            Ok(Incoming::Request { id, method, params }) => {
                if let Err(error) = self.handle_agent_request(&id, &method, params) {
                    self.send_to_agent(&response(&id, &Err(error)));
                }
            }
            Ok(Incoming::Response { id, result }) => return self.handle_response(&id, result),
            Err(error) => {
                let text = String::from_utf8_lossy(line.get(..200).unwrap_or(line));
                tracing::debug!(%error, line = %text, "ignoring a line that is not a message");
            }
        }
        Ok(())
    }

    /// Appends an update to the log of its session.
    fn handle_update(&mut self, params: UpdateParams, line: LiveLine) {
        let root = self.root_session(&params.session_id);
        let Some(session) = self.sessions.get_mut(&root) else {
            self.push_early(root, line);
            return;
        };
        let update = params.update;
        if session.agent_state == OpenState::Reopening {
            // The agent sends the history again, which is in the log already.
            return;
        }
        if root == params.session_id {
            match update.session_update.as_str() {
                "current_mode_update" => {
                    session
                        .setup
                        .set_mode(update.current_mode_id.unwrap_or_default());
                    session.head_changed();
                }
                "config_option_update" => {
                    let options = update.config_options.unwrap_or_default();
                    session.setup.set_config_options(options);
                    session.head_changed();
                }
                "session_info_update" => {
                    if let Some(title) = update.title {
                        session.title = title.as_str().map(str::to_owned);
                        session.head_changed();
                    }
                }
                _ => {}
            }
        }
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.count_bytes(line.len());
        }
        session.push(Audience::All, line);
        if update.session_update == "subagent_update"
            && let Some(child) = update.session_id
            && child != root
            && self.parents.len() < MAX_SUBAGENTS
        {
            self.parents.insert(child, root.clone());
        }
        self.wake_clients(&root);
    }

    fn handle_agent_notification(&mut self, method: &str, params: Option<&RawValue>, line: &[u8]) {
        let text = params.map_or("{}", RawValue::get);
        if method == "session/update" {
            match serde_json::from_str(text) {
                Ok(params) => self.handle_update(params, with_line_feed(line)),
                Err(error) => tracing::debug!(%error, "ignoring an invalid update"),
            }
            return;
        }
        let read: AgentParams = serde_json::from_str(text).unwrap_or_default();
        if method == "$/cancel_request" {
            if let Some(id) = read.request_id {
                self.cancel_question(&id);
            }
            return;
        }
        match read.session_id.map(|id| self.root_session(&id)) {
            Some(id) => match self.sessions.get_mut(&id) {
                Some(session) => {
                    session.push_event(Audience::All, with_line_feed(line));
                    self.wake_clients(&id);
                }
                None => self.push_early(id, with_line_feed(line)),
            },
            None => self.broadcast(&with_line_feed(line)),
        }
    }

    /// Sends a line that belongs to no session to all clients.
    fn broadcast(&mut self, line: &[u8]) {
        let clients: Vec<ClientId> = self.clients.keys().copied().collect();
        for client in clients {
            if self.client_backlog(client) < MAX_BROADCAST_BACKLOG {
                self.send_to_client(client, line);
            }
        }
    }

    /// Handles a request. An error is sent as the response.
    fn handle_agent_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), jsonrpc::Error> {
        let is_for_host = method.starts_with("fs/") || method.starts_with("terminal/");
        let read: AgentParams = params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let (false, Some(session)) = (is_for_host, read.session_id) else {
            return Err(jsonrpc::Error::method_not_found(method));
        };
        let root = self.root_session(&session);
        let Some(session) = self.sessions.get_mut(&root) else {
            return Err(jsonrpc::Error::resource_not_found(format!(
                "session {root}"
            )));
        };
        if session.questions().count() >= MAX_QUESTIONS {
            return Err(jsonrpc::Error::internal(format!(
                "too many open requests in session {root} (limit: {MAX_QUESTIONS})"
            )));
        }
        session.ask(id.clone(), method, params);
        self.wake_clients(&root);
        Ok(())
    }

    /// Takes back a request that the agent has cancelled.
    fn cancel_question(&mut self, id: &RequestId) {
        let found = self.sessions.values().find_map(|session| {
            let mut questions = session.questions();
            let (question, _) = questions.find(|(_, question)| question.id == *id)?;
            Some((session.id.clone(), question))
        });
        if let Some((session, question)) = found
            && self.close_question(&session, question, None).is_some()
        {
            let error = Err(jsonrpc::Error::request_cancelled());
            self.send_to_agent(&response(id, &error));
        }
    }

    fn handle_response(
        &mut self,
        id: &RequestId,
        result: Result<&RawValue, jsonrpc::Error>,
    ) -> Result<(), String> {
        let sent = self.take_sent(id);
        let result = result.map(ToOwned::to_owned);
        match sent {
            None => tracing::debug!(%id, "ignoring a response to an unknown request"),
            Some(SentRequest::Initialize) => {
                return self
                    .initialized(result.as_deref().map(RawValue::get).map_err(Clone::clone));
            }
            Some(SentRequest::NewSession {
                request,
                cwd,
                params,
            }) => {
                self.count_answered(&request);
                match result {
                    Ok(result) => self.session_opened(&request, cwd, params, &result),
                    Err(error) => {
                        self.ends_when_idle |= error.code == jsonrpc::Error::AUTH_REQUIRED;
                        self.respond(&request, &Err(error));
                    }
                }
            }
            Some(SentRequest::OpenSession(session)) => self.session_loaded(&session, result),
            Some(SentRequest::ReopenSession(session)) => self.session_reopened(&session, result),
            Some(SentRequest::Prompt { key, session }) => self.turn_ended(&session, &key, result),
            Some(SentRequest::CloseSession) => {}
            Some(SentRequest::ForClient {
                request,
                session,
                effect,
            }) => {
                self.count_answered(&request);
                if let (Ok(result), Some(session)) = (&result, &session) {
                    self.apply(effect, &request, session, result);
                }
                self.respond_in_order(session.as_ref(), &request, &result);
            }
        }
        Ok(())
    }

    fn count_answered(&mut self, request: &ClientRequestId) {
        if let Some(client) = self.clients.get_mut(&request.client) {
            client.requests = client.requests.saturating_sub(1);
        }
    }

    /// Adds a session that the agent has opened for a client.
    fn session_opened(
        &mut self,
        request: &ClientRequestId,
        cwd: Option<String>,
        params: Value,
        result: &RawValue,
    ) {
        let read: AgentParams = serde_json::from_str(result.get()).unwrap_or_default();
        let Some(id) = read.session_id else {
            let error = jsonrpc::Error::internal("the agent's response contains no sessionId");
            self.respond(request, &Err(error));
            return;
        };
        if id.0.contains('\0') {
            let reason = "the agent's sessionId contains a NUL character";
            self.respond(request, &Err(jsonrpc::Error::internal(reason)));
            return;
        }
        let early = self.take_early(&id);
        if !self.clients.contains_key(&request.client) {
            // Nobody knows of the session.
            if self.agent_supports(&["sessionCapabilities", "close"]) {
                let params = to_raw(&json!({ "sessionId": id }));
                self.send_request("session/close", Some(&params), SentRequest::CloseSession);
            }
            return;
        }
        // An agent must not use an id twice. If it does, the older session is gone.
        self.remove_session(&id, StoredSessionEnd::Deleted);
        let mut session = SharedSession::new(id.clone(), cwd, self.max_log_bytes);
        session.creator = self.user_name(request.client).map(ToOwned::to_owned);
        session.setup = LiveSetup::from_result(result.get());
        if self.unwritten.is_some() {
            session.log = super::log::LiveLog::stored(self.max_log_bytes, 0, []);
            session.record = Some(SessionRecord::new(params));
            self.open_in_agent.insert(id.clone());
        }
        self.sessions.insert(id.clone(), session);
        self.attach(request.client, &id, false);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.respond(request, &Ok(result.to_owned()));
            for line in early {
                session.push(Audience::All, line);
            }
        }
        self.wake_clients(&id);
    }

    /// Confirms to all clients that wait for a session that it is open.
    fn session_loaded(&mut self, id: &SessionId, result: Result<Box<RawValue>, jsonrpc::Error>) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Some(waiting) = session.loading.take() else {
            return;
        };
        match result {
            Ok(result) => {
                session.setup = LiveSetup::from_result(result.get());
                session.head_changed();
                if session.record.is_some() {
                    self.open_in_agent.insert(id.clone());
                }
                for client in waiting {
                    let request = client.request;
                    if !self.clients.contains_key(&request.client) {
                        continue;
                    }
                    if !client.with_replay {
                        self.attach(request.client, id, false);
                    }
                    match self.sessions.get_mut(id) {
                        Some(session) if session.is_attached(request.client) => {
                            session.confirm_attached(&request);
                        }
                        // The client has closed the session while it was being loaded.
                        _ => self.respond(&request, &Err(jsonrpc::Error::request_cancelled())),
                    }
                }
                self.wake_clients(id);
            }
            Err(error) => {
                self.ends_when_idle |= error.code == jsonrpc::Error::AUTH_REQUIRED;
                self.remove_session(id, StoredSessionEnd::Deleted);
                for client in waiting {
                    self.respond(&client.request, &Err(error.clone()));
                }
            }
        }
    }

    /// Applies a change that a client has made, and tells the other clients.
    fn apply(
        &mut self,
        effect: RequestEffect,
        request: &ClientRequestId,
        id: &SessionId,
        result: &RawValue,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let update = match effect {
            RequestEffect::None => return,
            RequestEffect::RemoveSession { is_deleted } => {
                let end = match is_deleted {
                    true => StoredSessionEnd::Deleted,
                    false => StoredSessionEnd::Closed,
                };
                self.remove_session(id, end);
                return;
            }
            RequestEffect::SetModel(model) => {
                session.setup.set_model(model);
                session.head_changed();
                self.wake_clients(id);
                return;
            }
            RequestEffect::SetMode(mode) => {
                session.setup.set_mode(mode.clone());
                session.head_changed();
                json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode })
            }
            RequestEffect::SetConfigOption => {
                let result: Value = serde_json::from_str(result.get()).unwrap_or_default();
                let options = &result["configOptions"];
                if !options.is_array() {
                    return;
                }
                session.setup.set_config_options(options.clone());
                session.head_changed();
                json!({ "sessionUpdate": "config_option_update", "configOptions": options })
            }
        };
        let params = json!({ "sessionId": id, "update": update });
        let line = notification("session/update", &params);
        session.push(Audience::AllExcept(request.client), line);
        self.wake_clients(id);
    }
}
