//! A live agent: its clients and sessions, without I/O.
//!
//! The caller passes it each line that it reads, from a client or from the agent, and takes the lines to write.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use acp::jsonrpc::{self, RequestId};
use acp::v1::SessionId;
use acp_remote::CloseStatus;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::client::LiveClient;
use super::log::{ClientId, MAX_LOG_BYTES, QuestionId};
use super::message::{LiveLine, request, response, to_raw};
use super::session::{ClientRequestId, Question, SharedSession};
use super::unwritten::{StoredSessionEnd, Unwritten};
use crate::metrics::AgentCounters;
use crate::store::{FencingToken, LiveSessionKey};
use crate::users::AuditLog;

/// The maximum number of sessions of a live agent.
pub(super) const MAX_SESSIONS: usize = 4096;

/// The maximum number of requests of one client that the agent works on.
pub(super) const MAX_REQUESTS: usize = 1024;

/// The maximum number of updates for sessions that are not known yet.
const MAX_EARLY_LINES: usize = 256;

/// The maximum size of those updates, in bytes.
const MAX_EARLY_BYTES: usize = 4 * 1024 * 1024;

/// An agent that several clients share.
#[derive(Debug)]
pub(super) struct LiveAgent {
    pub(super) state: LiveAgentState,
    pub(super) clients: HashMap<ClientId, LiveClient>,
    pub(super) sessions: HashMap<SessionId, SharedSession>,
    /// The session that a subagent belongs to.
    pub(super) parents: HashMap<SessionId, SessionId>,
    /// The requests that the agent has not answered yet.
    sent: HashMap<i64, SentRequest>,
    /// Lines for sessions whose id is not known yet: some agents report on a session before they confirm that it is
    /// open.
    early: Vec<(SessionId, LiveLine)>,
    early_bytes: usize,
    next_request: i64,
    pub(super) next_client: u64,
    to_agent: Vec<u8>,
    agent_wake: Arc<Notify>,
    counters: Arc<AgentCounters>,
    /// The maximum size of a session's log, in bytes.
    pub(super) max_log_bytes: usize,
    /// What clients are told about the options that the agent was started with.
    pub(super) settings: Option<String>,
    /// Whether clients may stop the agent.
    pub(super) is_private: bool,
    /// Whether the agent ends as soon as it has no clients. It requires a login, after which it must be started again.
    pub(super) ends_when_idle: bool,
    /// Whether a client has stopped the agent.
    pub(super) is_stopped: bool,
    /// Where it is recorded what clients do, with the name of the agent.
    pub(super) audit: Option<(Arc<AuditLog>, String)>,
    /// What is to be written to the store, if the sessions are stored.
    pub(super) unwritten: Option<Unwritten>,
    /// The sessions that the agent's process has open.
    pub(super) open_in_agent: HashSet<SessionId>,
    /// The sessions that this server owns, but has removed from memory.
    pub(super) at_rest: HashMap<SessionId, FencingToken>,
    /// Whether no more turns are started, since another server is to continue.
    pub(super) starts_no_turns: bool,
}

/// Whether an agent can be used.
#[derive(Debug)]
pub(super) enum LiveAgentState {
    /// It has not answered `initialize` yet. These requests of clients wait for it.
    Starting(Vec<ClientRequestId>),
    /// It has answered `initialize` with this result.
    Ready(Value),
    /// It has exited or rejected `initialize`.
    Ended(String),
}

/// A request that was sent to the agent.
#[derive(Debug)]
pub(super) enum SentRequest {
    Initialize,
    /// Opens a new session for a client.
    NewSession {
        request: ClientRequestId,
        cwd: Option<String>,
        params: Value,
    },
    /// Loads or resumes a session.
    OpenSession(SessionId),
    Prompt {
        key: String,
        session: SessionId,
    },
    /// Opens a session whose log is in the store.
    ReopenSession(SessionId),
    /// Closes a session that nobody is attached to any more.
    CloseSession,
    /// Any other request of a client. Its response is passed on.
    ForClient {
        request: ClientRequestId,
        session: Option<SessionId>,
        effect: RequestEffect,
    },
}

/// What the success of a client's request changes for other clients.
#[derive(Debug)]
pub(super) enum RequestEffect {
    None,
    SetMode(Value),
    SetModel(Value),
    SetConfigOption,
    /// The session is not open any more. If it `is_deleted`, it cannot be loaded again.
    RemoveSession {
        is_deleted: bool,
    },
}

impl LiveAgent {
    /// Creates an agent that has just been started. `agent_wake` is notified when there is something to write to it.
    pub(super) fn new(agent_wake: Arc<Notify>, counters: Arc<AgentCounters>) -> Self {
        let mut agent = Self {
            state: LiveAgentState::Starting(Vec::new()),
            clients: HashMap::new(),
            sessions: HashMap::new(),
            parents: HashMap::new(),
            sent: HashMap::new(),
            early: Vec::new(),
            early_bytes: 0,
            next_request: 1,
            next_client: 1,
            to_agent: Vec::new(),
            agent_wake,
            counters,
            max_log_bytes: MAX_LOG_BYTES,
            settings: None,
            is_private: false,
            ends_when_idle: false,
            is_stopped: false,
            audit: None,
            unwritten: None,
            open_in_agent: HashSet::new(),
            at_rest: HashMap::new(),
            starts_no_turns: false,
        };
        agent.initialize();
        agent
    }

    /// Returns `true` if the agent has nothing to do: no client is connected, no turn is running, and no question is
    /// open.
    pub(super) fn is_idle(&self) -> bool {
        self.clients.is_empty() && !self.has_work()
    }

    /// Returns `true` if a turn is running or a question is open.
    pub(super) fn has_work(&self) -> bool {
        self.sessions.values().any(SharedSession::is_busy)
    }

    /// Returns `true` if the agent has exited, or will not be used any more.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, LiveAgentState::Ended(_))
    }

    /// Ends the agent if it is idle, so that no client is added any more.
    pub(super) fn end_if_idle(&mut self) -> bool {
        let is_idle = self.is_idle();
        if is_idle {
            self.state = LiveAgentState::Ended("the agent was not used any more".to_owned());
        }
        is_idle
    }

    /// Returns `true` if a turn is running that can end without a new client.
    pub(super) fn is_progressing(&self) -> bool {
        self.sessions.values().any(SharedSession::is_progressing)
    }

    /// Handles the end of the agent. If it `keeps_queue`, another server continues the sessions with the prompts that
    /// wait; otherwise, their senders get an error.
    pub(super) fn agent_ended(&mut self, status: &CloseStatus, keeps_queue: bool) {
        let error = Err(agent_ended_error(status.reason.clone()));
        let state = LiveAgentState::Ended(status.reason.clone());
        let mut waiting: Vec<(Option<SessionId>, ClientRequestId)> = Vec::new();
        match std::mem::replace(&mut self.state, state) {
            LiveAgentState::Starting(requests) => {
                waiting.extend(requests.into_iter().map(|request| (None, request)));
            }
            // The first reason counts.
            LiveAgentState::Ended(reason) => self.state = LiveAgentState::Ended(reason),
            LiveAgentState::Ready(_) => {}
        }
        for (_, sent) in self.sent.drain() {
            self.counters.requests_in_flight.decrement();
            match sent {
                SentRequest::NewSession { request, .. } => waiting.push((None, request)),
                SentRequest::ForClient {
                    request, session, ..
                } => waiting.push((session, request)),
                // Requests of this server, or those whose clients wait elsewhere.
                SentRequest::Initialize
                | SentRequest::OpenSession(_)
                | SentRequest::ReopenSession(_)
                | SentRequest::Prompt { .. }
                | SentRequest::CloseSession => {}
            }
        }
        for session in self.sessions.values_mut() {
            let id = session.id.clone();
            let loading = session.loading.take().into_iter().flatten();
            waiting.extend(loading.map(|client| (Some(id.clone()), client.request)));
            // In the store, the turn is still running. Whoever continues the session says that it was cut.
            let turn = session.prompts.turn.take().map(|turn| turn.prompt);
            let requests = turn.and_then(|prompt| prompt.sender.request());
            waiting.extend(requests.map(|request| (Some(id.clone()), request)));
            if keeps_queue {
                continue;
            }
            for prompt in session.prompts.take_back(|_| true) {
                let record = prompt.ended_record(&error);
                if let Some(request) = prompt.sender.request() {
                    waiting.push((Some(session.id.clone()), request));
                }
                session.prompt_changed(record);
            }
        }
        for (session, request) in waiting {
            self.respond_in_order(session.as_ref(), &request, &error);
        }
        let sessions: Vec<SessionId> = self.sessions.keys().cloned().collect();
        for session in sessions {
            self.wake_clients(&session);
        }
        self.agent_wake.notify_one();
    }

    /// Disconnects all clients when they have read everything.
    pub(super) fn close_clients(&mut self, status: &CloseStatus) {
        for client in self.clients.values_mut() {
            client.close.get_or_insert_with(|| status.clone());
            client.wake.notify_one();
        }
    }

    /// Returns the stored sessions, with the tokens of this server.
    pub(super) fn owned_sessions(&self) -> Vec<(LiveSessionKey, FencingToken)> {
        let Some(unwritten) = &self.unwritten else {
            return Vec::new();
        };
        let owned = self.sessions.values().filter_map(|session| {
            let token = session.record.as_ref()?.token;
            Some((unwritten.key(&session.id), token))
        });
        let at_rest = self.at_rest.iter();
        let at_rest = at_rest.map(|(id, token)| (unwritten.key(id), *token));
        owned.chain(at_rest).collect()
    }

    /// Returns `true` if the agent has not answered `initialize` yet.
    pub(super) fn is_starting(&self) -> bool {
        matches!(self.state, LiveAgentState::Starting(_))
    }

    /// Returns the lines to write to the agent, and removes them.
    pub(super) fn take_agent_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.to_agent)
    }

    /// Returns the number of bytes that wait to be written to the agent.
    pub(super) fn agent_backlog(&self) -> usize {
        self.to_agent.len()
    }

    /// Closes a question of a session. Returns it, or `None` if it is no longer open.
    pub(super) fn close_question(
        &mut self,
        session: &SessionId,
        question: QuestionId,
        answered_by: Option<ClientId>,
    ) -> Option<Question> {
        let name = |client: &ClientId| self.clients.get(client).and_then(|c| c.name.clone());
        let name = answered_by.as_ref().and_then(name);
        let answered_by = answered_by.map(|client| (client, name.as_deref()));
        let closed = self
            .sessions
            .get_mut(session)?
            .close_question(question, answered_by)?;
        for (client, id) in &closed.asked {
            if let Some(client) = self.clients.get_mut(client) {
                client.questions.remove(id);
            }
        }
        self.wake_clients(session);
        Some(closed)
    }

    /// Returns the session of a message: the root session, if the id is that of a subagent.
    pub(super) fn root_session(&self, id: &SessionId) -> SessionId {
        self.parents.get(id).unwrap_or(id).clone()
    }

    /// Wakes those who wait for a change of a session: its clients, and the store's writer.
    pub(super) fn wake_clients(&mut self, session: &SessionId) {
        if let Some(session) = self.sessions.get(session) {
            if let Some(unwritten) = &mut self.unwritten
                && session.has_unwritten()
            {
                unwritten.add(&session.id);
            }
            for client in session.clients() {
                if let Some(client) = self.clients.get(&client) {
                    client.wake.notify_one();
                }
            }
        }
    }

    /// Attaches a client to a session. If it is attached already, it first gets what it has not read yet.
    pub(super) fn attach(&mut self, client: ClientId, session: &SessionId, with_replay: bool) {
        if let Some(session) = self.sessions.get_mut(session)
            && let Some(client) = self.clients.get_mut(&client)
        {
            client.out.extend(session.take_unread(client.id));
            client.sessions.insert(session.id.clone());
            session.attach(client.id, with_replay);
        }
    }

    /// Detaches a client from a session. It still gets what it has not read yet.
    pub(super) fn detach(&mut self, client: ClientId, session: &SessionId) {
        if let Some(session) = self.sessions.get_mut(session)
            && let Some(client) = self.clients.get_mut(&client)
        {
            client.out.extend(session.take_unread(client.id));
            // Nothing of the session is sent to the client any more, so these do not wait.
            client.take_responses(session.unwritten_responses(client.id));
            client.sessions.remove(&session.id);
            session.detach(client.id);
        }
    }

    /// Removes a session and detaches its clients. Its turn and its queued prompts end as cancelled. Further messages
    /// of the agent about the session are ignored.
    pub(super) fn remove_session(&mut self, id: &SessionId, end: StoredSessionEnd) {
        self.parents.retain(|_, parent| parent != id);
        self.open_in_agent.remove(id);
        let Some(mut session) = self.sessions.remove(id) else {
            return;
        };
        for client in session.clients().collect::<Vec<_>>() {
            if let Some(client) = self.clients.get_mut(&client) {
                client.out.extend(session.take_unread(client.id));
                // What is not written is not shown, if it never will be.
                if end != StoredSessionEnd::Lost {
                    client.take_responses(session.unwritten_responses(client.id));
                }
                client.sessions.remove(id);
                client.questions.retain(|_, (session, _)| session != id);
                client.wake.notify_one();
            }
        }
        let running = session.prompts.turn.take().map(|turn| turn.prompt);
        let queued = session.prompts.take_back(|_| true);
        let cancelled = Ok(to_raw(&json!({ "stopReason": "cancelled" })));
        for prompt in running.into_iter().chain(queued) {
            session.prompt_changed(prompt.ended_record(&cancelled));
            if let Some(request) = prompt.sender.request() {
                self.respond(&request, &cancelled);
            }
        }
        if let Some(unwritten) = &mut self.unwritten {
            unwritten.end(&mut session, end);
        }
        for waiting in session.loading.into_iter().flatten() {
            let error = jsonrpc::Error::resource_not_found(format!("session {id}"));
            self.respond(&waiting.request, &Err(error));
        }
    }

    /// Sends a response that belongs to no session.
    pub(super) fn respond(
        &mut self,
        request: &ClientRequestId,
        result: &Result<Box<RawValue>, jsonrpc::Error>,
    ) {
        self.send_to_client(request.client, &response(&request.id, result));
    }

    /// Sends a line that belongs to no session.
    pub(super) fn send_to_client(&mut self, client: ClientId, line: &[u8]) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.out.extend_from_slice(line);
            client.wake.notify_one();
        }
    }

    /// Sends a response after everything that the session's log contains, or at once if the client is not attached.
    pub(super) fn respond_in_order(
        &mut self,
        session: Option<&SessionId>,
        request: &ClientRequestId,
        result: &Result<Box<RawValue>, jsonrpc::Error>,
    ) {
        let session = session.and_then(|id| self.sessions.get_mut(id));
        match session.filter(|session| session.is_attached(request.client)) {
            Some(session) => {
                session.respond(request, result);
                if let Some(client) = self.clients.get(&request.client) {
                    client.wake.notify_one();
                }
            }
            None => self.respond(request, result),
        }
    }

    /// Sends a request to the agent.
    pub(super) fn send_request(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
        purpose: SentRequest,
    ) {
        let id = self.next_request;
        self.next_request += 1;
        self.sent.insert(id, purpose);
        self.counters.requests.increment();
        self.counters.requests_in_flight.increment();
        self.send_to_agent(&request(id, method, params));
    }

    /// Returns the requests that the agent has not answered yet, with their ids.
    pub(super) fn sent_requests(&self) -> impl Iterator<Item = (i64, &SentRequest)> {
        self.sent.iter().map(|(id, sent)| (*id, sent))
    }

    /// Removes and returns the request that a response of the agent answers.
    pub(super) fn take_sent(&mut self, id: &RequestId) -> Option<SentRequest> {
        let RequestId::Number(id) = id else {
            return None;
        };
        let sent = self.sent.remove(id)?;
        self.counters.requests_in_flight.decrement();
        Some(sent)
    }

    /// Sends a line to the agent.
    pub(super) fn send_to_agent(&mut self, line: &[u8]) {
        self.to_agent.extend_from_slice(line);
        self.agent_wake.notify_one();
    }

    /// Stores an update for a session that is not known yet.
    pub(super) fn push_early(&mut self, session: SessionId, line: LiveLine) {
        let opens_session = |sent: &SentRequest| matches!(sent, SentRequest::NewSession { .. });
        let has_room =
            self.early.len() < MAX_EARLY_LINES && self.early_bytes + line.len() <= MAX_EARLY_BYTES;
        if has_room && self.sent.values().any(opens_session) {
            self.early_bytes += line.len();
            self.early.push((session, line));
        } else {
            tracing::debug!(%session, "ignoring a message about an unknown session");
        }
    }

    /// Returns the updates that arrived before their session was confirmed. Without requests for new sessions, drops
    /// those of all other sessions.
    pub(super) fn take_early(&mut self, session: &SessionId) -> Vec<LiveLine> {
        let early = std::mem::take(&mut self.early);
        let (of_session, others): (Vec<_>, Vec<_>) =
            early.into_iter().partition(|(id, _)| id == session);
        let opens_session = |sent: &SentRequest| matches!(sent, SentRequest::NewSession { .. });
        if self.sent.values().any(opens_session) {
            self.early = others;
        }
        self.early_bytes = self.early.iter().map(|(_, line)| line.len()).sum();
        of_session.into_iter().map(|(_, line)| line).collect()
    }
}

/// Returns the error for a request that the agent can no longer answer. Programs recognize it by its data.
pub(super) fn agent_ended_error(reason: String) -> jsonrpc::Error {
    let mut error = jsonrpc::Error::internal(reason);
    error.data = Some(json!({ "live": "agentEnded" }));
    error
}
