//! Following a connection by the messages of both sides.

use std::collections::{HashMap, HashSet};

use acp_wire::jsonrpc::{self, Incoming, RequestId};
use acp_wire::v1::{
    self, ContentBlock, InitializeResponse, ProtocolVersion, RequestPermissionOutcome, SessionId,
    StopReason, TerminalId,
};
use acp_wire::{RawObject, Request, v2};
use serde_json::value::RawValue;

use super::permission::{PermissionRequest, ReceivedPermissionRequest};
use super::session_opening::OpenedSessionResponse;
use super::session_table::{ReplayBackup, SessionEntry, SessionTable};
use crate::thread::{KEPT, Thread, ThreadHandle, TurnResult};
use crate::update::Update;

/// The limit of remembered pending requests of each side.
const PENDING: usize = 8 * 1024;

/// Follows a connection by the messages of both sides, and keeps what the client sees of each session.
///
/// For programs that are neither the client nor the agent, such as one that shows a recorded connection. They give the
/// observer each message in its order; the version is read from the response to `initialize`. Messages that cannot be
/// read change nothing.
#[derive(Debug)]
pub struct Observer {
    version: ProtocolVersion,
    sessions: SessionTable<()>,
    /// All sessions so far, including subagents that a replay has removed.
    seen: HashSet<SessionId>,
    max_sessions: usize,
    has_ignored_sessions: bool,
    client_requests: HashMap<RequestId, PendingClientRequest>,
    agent_requests: HashMap<RequestId, PendingAgentRequest>,
}

/// What a message changed in a session.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObservedChange {
    /// The id of the session.
    pub session_id: SessionId,
    /// The session's thread, which already shows the change.
    pub thread: ThreadHandle,
    /// What has changed besides the thread.
    pub event: Option<ObservedEvent>,
}

/// An event in a session that its thread does not keep.
#[derive(Debug)]
#[non_exhaustive]
pub enum ObservedEvent {
    /// A turn has ended.
    TurnEnded(TurnResult),
    /// The agent has requested permission.
    PermissionRequested(RequestId, Box<PermissionRequest>),
    /// The client has answered a permission request.
    PermissionAnswered(RequestId, Result<RequestPermissionOutcome, jsonrpc::Error>),
    /// A replay has started, which replaces the thread's content.
    ReplayStarted,
    /// The replay has failed, and the thread has its earlier content again.
    ReplayFailed,
}

/// A pending request of the client, independent of the version.
#[derive(Debug)]
enum PendingClientRequest {
    Initialize,
    Prompt(SessionId),
    /// Opens a session.
    Open {
        method: String,
        /// The session, if it already exists.
        id: Option<SessionId>,
        /// Its state before a replay.
        before: Option<ReplayBackup>,
    },
}

impl PendingClientRequest {
    fn open(method: &str, id: Option<SessionId>) -> Self {
        Self::Open {
            method: method.to_owned(),
            id,
            before: None,
        }
    }
}

/// A pending request of the agent.
#[derive(Debug)]
enum PendingAgentRequest {
    Permission(SessionId),
    CreateTerminal(v1::CreateTerminalRequest),
    TerminalOutput(SessionId, TerminalId),
    TerminalExit(SessionId, TerminalId),
}

/// Reads the version from the response to `initialize`. Some agents return whatever version was requested; the fields of
/// the response show which one they speak.
fn spoken_version(result: &RawValue) -> ProtocolVersion {
    let response: RawObject = serde_json::from_str(result.get()).unwrap_or_default();
    let version = response.read::<InitializeResponse>();
    let version = version.map_or(ProtocolVersion::V1, |said| said.protocol_version);
    let has = |key| response.get(key).is_some();
    if version < ProtocolVersion::V2 || has("agentCapabilities") && !has("capabilities") {
        ProtocolVersion::V1
    } else {
        ProtocolVersion::V2
    }
}

/// Reads the response to a request of type `R`.
fn read<R: Request>(result: &RawValue) -> Result<R::Response, jsonrpc::Error> {
    let response = acp_wire::read_result(R::METHOD, result);
    response.map_err(|error| jsonrpc::Error::internal(error.to_string()))
}

/// Reads a response to a request that opens a session.
fn read_opened(
    version: ProtocolVersion,
    method: &str,
    result: &RawValue,
) -> Option<Box<dyn OpenedSessionResponse>> {
    if version == ProtocolVersion::V2 {
        return Some(match v2::AgentResponse::read(method, result).ok()? {
            v2::AgentResponse::NewSession(response) => Box::new(response),
            v2::AgentResponse::ForkSession(response) => Box::new(response),
            v2::AgentResponse::ResumeSession(response) => Box::new(response),
            _ => return None,
        });
    }
    Some(match v1::AgentResponse::read(method, result).ok()? {
        v1::AgentResponse::NewSession(response) => Box::new(response),
        v1::AgentResponse::ForkSession(response) => Box::new(response),
        v1::AgentResponse::LoadSession(response) => Box::new(response),
        v1::AgentResponse::ResumeSession(response) => Box::new(response),
        _ => return None,
    })
}

impl Observer {
    /// Creates an observer for up to this many sessions. Messages for further sessions are ignored.
    #[must_use]
    pub fn new(max_sessions: usize) -> Self {
        Self {
            version: ProtocolVersion::V1,
            sessions: SessionTable::new(KEPT),
            seen: HashSet::new(),
            max_sessions,
            has_ignored_sessions: false,
            client_requests: HashMap::new(),
            agent_requests: HashMap::new(),
        }
    }

    /// Returns `true` if there were more sessions than the limit.
    #[must_use]
    pub fn has_ignored_sessions(&self) -> bool {
        self.has_ignored_sessions
    }

    /// Applies a message that the client has sent. Returns what it changed.
    pub fn client_sent(&mut self, message: &Incoming<'_>) -> Option<ObservedChange> {
        match message {
            Incoming::Request { id, method, params } => self.client_request(id, method, *params),
            Incoming::Notification { method, params } => {
                // The same in both versions.
                match v1::ClientNotification::read(method, *params).ok()? {
                    v1::ClientNotification::Cancel(cancel) => {
                        self.change_thread(cancel.session_id, Thread::cancel_turn)
                    }
                    _ => None,
                }
            }
            Incoming::Response { id, result } => {
                let request = self.agent_requests.remove(id)?;
                self.client_response(id, request, result.as_ref().copied())
            }
        }
    }

    /// Applies a message that the agent has sent. Returns what it changed.
    pub fn agent_sent(&mut self, message: &Incoming<'_>) -> Option<ObservedChange> {
        match message {
            Incoming::Request { id, method, params } => self.agent_request(id, method, *params),
            Incoming::Notification { method, params } => {
                let (id, update) = if self.is_v2() {
                    match v2::AgentNotification::read(method, *params).ok()? {
                        v2::AgentNotification::SessionUpdate(update) => {
                            (update.session_id, update.update.into())
                        }
                        _ => return None,
                    }
                } else {
                    match v1::AgentNotification::read(method, *params).ok()? {
                        v1::AgentNotification::SessionUpdate(update) => {
                            (update.session_id, update.update.into())
                        }
                        _ => return None,
                    }
                };
                self.update(id, &update)
            }
            Incoming::Response { id, result } => {
                let request = self.client_requests.remove(id)?;
                self.agent_response(request, result.as_ref().copied())
            }
        }
    }

    fn is_v2(&self) -> bool {
        self.version == ProtocolVersion::V2
    }

    /// Returns a session, and adds it if it is new and there is room.
    fn session(&mut self, id: &SessionId) -> Option<&mut SessionEntry<()>> {
        if self.sessions.get(id).is_none() {
            self.add(id, SessionEntry::default())?;
        }
        self.sessions.get_mut(id)
    }

    fn add(&mut self, id: &SessionId, entry: SessionEntry<()>) -> Option<()> {
        if self.seen.len() >= self.max_sessions && !self.seen.contains(id) {
            self.has_ignored_sessions = true;
            return None;
        }
        self.seen.insert(id.clone());
        let (thread, _) = self.sessions.add(id, entry, None);
        // The number of sessions is limited, so a subagent's thread may be as large as any other.
        thread.change(|thread| thread.set_limit(KEPT));
        Some(())
    }

    /// Changes a session with `change`.
    fn change(
        &mut self,
        session_id: SessionId,
        change: impl FnOnce(&mut SessionEntry<()>) -> Option<ObservedEvent>,
    ) -> Option<ObservedChange> {
        let entry = self.session(&session_id)?;
        let event = change(entry);
        Some(ObservedChange {
            thread: entry.thread.clone(),
            session_id,
            event,
        })
    }

    /// Changes the thread of a session with `change`.
    fn change_thread(
        &mut self,
        session_id: SessionId,
        change: impl FnOnce(&mut Thread),
    ) -> Option<ObservedChange> {
        self.change(session_id, |entry| {
            entry.thread.change(change);
            None
        })
    }

    fn update(&mut self, id: SessionId, update: &Update) -> Option<ObservedChange> {
        let change = self.change(id, |entry| {
            let result = entry.thread.change(|thread| thread.receive(update));
            result.map(ObservedEvent::TurnEnded)
        })?;
        if let Update::SubagentUpdate(update) = update
            && let Some(adopted) = self.sessions.adopt(&change.session_id, &update.session_id)
        {
            let entry = SessionEntry {
                thread: adopted.thread,
                is_replaying: adopted.is_replaying,
                kept: (),
            };
            self.add(&update.session_id, entry);
        }
        Some(change)
    }

    fn client_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ObservedChange> {
        use PendingClientRequest as Pending;
        let (pending, change) = if self.is_v2() {
            match v2::ClientRequest::read(method, params).ok()? {
                v2::ClientRequest::Initialize(_) => (Pending::Initialize, None),
                v2::ClientRequest::Prompt(request) => {
                    self.begin_turn(request.session_id, &request.prompt)
                }
                v2::ClientRequest::ResumeSession(request) if request.replay_from.is_some() => {
                    self.begin_replay(method, request.session_id)
                }
                v2::ClientRequest::ResumeSession(request) => {
                    (Pending::open(method, Some(request.session_id)), None)
                }
                v2::ClientRequest::NewSession(_) | v2::ClientRequest::ForkSession(_) => {
                    (Pending::open(method, None), None)
                }
                _ => return None,
            }
        } else {
            match v1::ClientRequest::read(method, params).ok()? {
                v1::ClientRequest::Initialize(_) => (Pending::Initialize, None),
                v1::ClientRequest::Prompt(request) => {
                    self.begin_turn(request.session_id, &request.prompt)
                }
                v1::ClientRequest::LoadSession(request) => {
                    self.begin_replay(method, request.session_id)
                }
                v1::ClientRequest::ResumeSession(request) => {
                    (Pending::open(method, Some(request.session_id)), None)
                }
                v1::ClientRequest::NewSession(_) | v1::ClientRequest::ForkSession(_) => {
                    (Pending::open(method, None), None)
                }
                _ => return None,
            }
        };
        if self.client_requests.len() < PENDING {
            self.client_requests.insert(id.clone(), pending);
        }
        change
    }

    fn begin_turn(
        &mut self,
        id: SessionId,
        prompt: &[ContentBlock],
    ) -> (PendingClientRequest, Option<ObservedChange>) {
        let change = self.change_thread(id.clone(), |thread| thread.begin_turn(prompt));
        (PendingClientRequest::Prompt(id), change)
    }

    fn begin_replay(
        &mut self,
        method: &str,
        id: SessionId,
    ) -> (PendingClientRequest, Option<ObservedChange>) {
        self.sessions.remove_subagents(&id);
        let is_known = self.sessions.get(&id).is_some();
        let change = self.change(id.clone(), |_| Some(ObservedEvent::ReplayStarted));
        let before = self.sessions.begin_replay(&id);
        let pending = PendingClientRequest::Open {
            method: method.to_owned(),
            id: Some(id),
            before: before.filter(|_| is_known),
        };
        (pending, change)
    }

    fn agent_response(
        &mut self,
        request: PendingClientRequest,
        result: Result<&RawValue, &jsonrpc::Error>,
    ) -> Option<ObservedChange> {
        match (request, result) {
            (PendingClientRequest::Initialize, result) => {
                self.version = spoken_version(result.ok()?);
                None
            }
            (PendingClientRequest::Prompt(id), result) => self.prompt_response(id, result),
            (PendingClientRequest::Open { method, id, .. }, Ok(result)) => {
                let opened = read_opened(self.version, &method, result)?;
                let change = self.change(opened.new_session().cloned().or(id)?, |_| None)?;
                let announced = opened.announcement();
                self.sessions.announce(&change.session_id, &announced);
                Some(change)
            }
            (PendingClientRequest::Open { id, before, .. }, Err(_)) => {
                let id = id?;
                // A session that was not there before shows what was replayed of it.
                self.sessions.get_mut(&id)?.is_replaying = false;
                self.sessions.restore(&id, before?);
                self.change(id, |_| Some(ObservedEvent::ReplayFailed))
            }
        }
    }

    fn prompt_response(
        &mut self,
        id: SessionId,
        result: Result<&RawValue, &jsonrpc::Error>,
    ) -> Option<ObservedChange> {
        let is_v2 = self.is_v2();
        let answer = |thread: &mut Thread| {
            let result = match result {
                Ok(result) if is_v2 => match read::<v2::PromptRequest>(result) {
                    Ok(response) => return thread.accept_prompt(&response.message_id),
                    Err(error) => Err(error),
                },
                Ok(result) => read::<v1::PromptRequest>(result).map(|r| r.stop_reason),
                // The prompt was queued, and cancelled before it was accepted.
                Err(error) if is_v2 && error.code == jsonrpc::Error::REQUEST_CANCELLED => {
                    Ok(StopReason::Cancelled)
                }
                Err(error) => Err(error.clone()),
            };
            thread.end_turn(result.as_ref().ok());
            Some(result)
        };
        self.change(id, |entry| {
            let result = entry.thread.change(answer);
            result.map(ObservedEvent::TurnEnded)
        })
    }

    fn agent_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<ObservedChange> {
        if self.is_v2() {
            return match v2::AgentRequest::read(method, params).ok()? {
                v2::AgentRequest::RequestPermission(request) => {
                    self.permission_request(id, request.into())
                }
                _ => None,
            };
        }
        let pending = match v1::AgentRequest::read(method, params).ok()? {
            v1::AgentRequest::RequestPermission(request) => {
                return self.permission_request(id, request.into());
            }
            v1::AgentRequest::CreateTerminal(request) => {
                PendingAgentRequest::CreateTerminal(request)
            }
            v1::AgentRequest::TerminalOutput(request) => {
                PendingAgentRequest::TerminalOutput(request.session_id, request.terminal_id)
            }
            v1::AgentRequest::WaitForTerminalExit(request) => {
                PendingAgentRequest::TerminalExit(request.session_id, request.terminal_id)
            }
            v1::AgentRequest::ReleaseTerminal(request) => {
                let release = |thread: &mut Thread| thread.release_terminal(&request.terminal_id);
                return self.change_thread(request.session_id, release);
            }
            _ => return None,
        };
        self.add_agent_request(id, pending);
        None
    }

    fn add_agent_request(&mut self, id: &RequestId, pending: PendingAgentRequest) {
        if self.agent_requests.len() < PENDING {
            self.agent_requests.insert(id.clone(), pending);
        }
    }

    fn permission_request(
        &mut self,
        id: &RequestId,
        request: ReceivedPermissionRequest,
    ) -> Option<ObservedChange> {
        self.session(&request.session_id)?;
        let request = self.sessions.request_permission(request)?;
        let session_id = request.session_id.clone();
        self.add_agent_request(id, PendingAgentRequest::Permission(session_id.clone()));
        self.change(session_id, |_| {
            let request = Box::new(request);
            Some(ObservedEvent::PermissionRequested(id.clone(), request))
        })
    }

    fn client_response(
        &mut self,
        id: &RequestId,
        request: PendingAgentRequest,
        result: Result<&RawValue, &jsonrpc::Error>,
    ) -> Option<ObservedChange> {
        match request {
            PendingAgentRequest::Permission(session_id) => {
                let outcome = match result {
                    Ok(result) => Ok(read::<v1::RequestPermissionRequest>(result).ok()?.outcome),
                    Err(error) => Err(error.clone()),
                };
                let event = ObservedEvent::PermissionAnswered(id.clone(), outcome);
                self.change(session_id, |_| Some(event))
            }
            PendingAgentRequest::CreateTerminal(request) => {
                let id = read::<v1::CreateTerminalRequest>(result.ok()?)
                    .ok()?
                    .terminal_id;
                let command = std::iter::once(request.command).chain(request.args);
                let command = command.collect::<Vec<_>>().join(" ");
                self.change_thread(request.session_id, |thread| {
                    thread.start_terminal(&id, &command, request.cwd.as_deref());
                })
            }
            PendingAgentRequest::TerminalOutput(session_id, id) => {
                let response = read::<v1::TerminalOutputRequest>(result.ok()?).ok()?;
                self.change_thread(session_id, |thread| {
                    thread.report_terminal_output(&id, &response.output);
                    if let Some(status) = &response.exit_status {
                        thread.exit_terminal(&id, status);
                    }
                })
            }
            PendingAgentRequest::TerminalExit(session_id, id) => {
                let response = read::<v1::WaitForTerminalExitRequest>(result.ok()?).ok()?;
                let mut status = v1::TerminalExitStatus::new();
                (status.exit_code, status.signal) = (response.exit_code, response.signal);
                self.change_thread(session_id, |thread| thread.exit_terminal(&id, &status))
            }
        }
    }
}
