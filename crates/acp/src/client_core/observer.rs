//! Reconstructs a client's sessions by reading both sides' messages.

use std::collections::{HashMap, HashSet};

use acp_wire::jsonrpc::{self, Incoming, RequestId};
use acp_wire::v1::{
    self, ContentBlock, InitializeResponse, ProtocolVersion, RequestPermissionOutcome, SessionId,
    SessionNotification, StopReason,
};
use acp_wire::{Notification, RawObject, Request, v2};
use serde_json::value::RawValue;

use super::permission::{PermissionRequest, ReceivedPermissionRequest};
use super::session_opening::OpenSessionResult;
use super::session_table::{SessionEntry, SessionTable};
use crate::dialect;
use crate::thread::{DEFAULT_LIMIT_BYTES, Thread, ThreadHandle, TurnResult};
use crate::update::Update;

/// The maximum number of pending requests to store for each side.
const MAX_PENDING_REQUESTS: usize = 8 * 1024;

/// An observer of a connection. It reads the messages of the client and the agent, and reconstructs what the client
/// sees of each session.
///
/// It is for programs that are neither the client nor the agent, such as one that shows a recorded connection. Pass it
/// all messages in order. It reads the version from the response to `initialize`. Messages that cannot be read change
/// nothing.
pub struct Observer {
    version: ProtocolVersion,
    sessions: SessionTable<()>,
    /// The ids of all sessions seen so far, even of subagents that a replay has removed.
    seen: HashSet<SessionId>,
    max_sessions: usize,
    has_ignored_sessions: bool,
    client_requests: HashMap<RequestId, ResponseObserver>,
    agent_requests: HashMap<RequestId, ResponseObserver>,
}

/// A change to a session caused by a message.
#[derive(Debug)]
#[non_exhaustive]
pub struct ObservedChange {
    /// The session that has changed.
    pub session_id: SessionId,
    /// The session's thread, with the change already applied.
    pub thread: ThreadHandle,
    /// An event that goes with the change, if any.
    pub event: Option<ObservedEvent>,
}

/// A session event that the session's thread does not record.
#[derive(Debug)]
#[non_exhaustive]
pub enum ObservedEvent {
    /// A turn has ended, with this result.
    TurnEnded(TurnResult),
    /// The agent has requested permission.
    PermissionRequested(RequestId, Box<PermissionRequest>),
    /// The client has answered a permission request.
    PermissionAnswered(RequestId, Result<RequestPermissionOutcome, jsonrpc::Error>),
    /// A replay has started and cleared the thread.
    ReplayStarted,
    /// The replay has failed, and the thread has its earlier content again.
    ReplayFailed,
}

/// A callback that gets the response to a pending request.
type ResponseObserver =
    Box<dyn FnOnce(&mut Observer, ObservedResponse<'_>) -> Option<ObservedChange> + Send + Sync>;

type ObservedResponse<'a> = Result<&'a RawValue, &'a jsonrpc::Error>;

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer")
            .field("version", &self.version)
            .field("sessions", &self.sessions)
            .finish_non_exhaustive()
    }
}

impl Observer {
    /// Creates an observer for up to `max_sessions` sessions. Messages for any further sessions are ignored.
    #[must_use]
    pub fn new(max_sessions: usize) -> Self {
        Self {
            version: ProtocolVersion::V1,
            sessions: SessionTable::new(DEFAULT_LIMIT_BYTES),
            seen: HashSet::new(),
            max_sessions,
            has_ignored_sessions: false,
            client_requests: HashMap::new(),
            agent_requests: HashMap::new(),
        }
    }

    /// Returns `true` if any sessions were ignored because there were too many.
    #[must_use]
    pub fn has_ignored_sessions(&self) -> bool {
        self.has_ignored_sessions
    }

    /// Applies a message from the client, and returns the resulting change, if any.
    pub fn handle_client_message(&mut self, message: &Incoming<'_>) -> Option<ObservedChange> {
        match message {
            Incoming::Request { id, method, params } => {
                let (on_response, change) = self.handle_client_request(method, *params)?;
                if self.client_requests.len() < MAX_PENDING_REQUESTS {
                    self.client_requests.insert(id.clone(), on_response);
                }
                change
            }
            // Both versions have the same notifications here.
            Incoming::Notification { method, params } => {
                match v1::ClientNotification::read(method, *params).ok()? {
                    v1::ClientNotification::Cancel(cancel) => {
                        self.change_thread(cancel.session_id, Thread::cancel_turn)
                    }
                    _ => None,
                }
            }
            Incoming::Response { id, result } => {
                let on_response = self.agent_requests.remove(id)?;
                on_response(self, result.as_ref().copied())
            }
        }
    }

    /// Applies a message from the agent, and returns the resulting change, if any.
    pub fn handle_agent_message(&mut self, message: &Incoming<'_>) -> Option<ObservedChange> {
        match message {
            Incoming::Request { id, method, params } => {
                let (on_response, change) = self.handle_agent_request(id, method, *params)?;
                if self.agent_requests.len() < MAX_PENDING_REQUESTS {
                    self.agent_requests.insert(id.clone(), on_response);
                }
                change
            }
            Incoming::Notification { method, params } if method == SessionNotification::METHOD => {
                let (id, update) = dialect::read_update(self.version, *params).ok()?;
                self.apply_update(id, &update)
            }
            Incoming::Notification { .. } => None,
            Incoming::Response { id, result } => {
                let on_response = self.client_requests.remove(id)?;
                on_response(self, result.as_ref().copied())
            }
        }
    }

    fn is_v2(&self) -> bool {
        self.version == ProtocolVersion::V2
    }

    /// Returns a session, adding it if it is new and within the limit.
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
        // The number of sessions is limited, so a subagent's thread can be as large as any other.
        thread.change(|thread| thread.set_limit(DEFAULT_LIMIT_BYTES));
        Some(())
    }

    /// Applies `change` to a session.
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

    /// Applies `change` to a session's thread, and returns the observed change.
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

    fn apply_update(&mut self, id: SessionId, update: &Update) -> Option<ObservedChange> {
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

    fn handle_client_request(
        &mut self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<(ResponseObserver, Option<ObservedChange>)> {
        Some(if self.is_v2() {
            use v2::ClientRequest;
            match ClientRequest::read(method, params).ok()? {
                ClientRequest::Initialize(_) => (Box::new(Self::apply_initialize_response), None),
                ClientRequest::Prompt(r) => self.begin_turn(r.session_id, &r.prompt),
                ClientRequest::NewSession(r) => (on_opened(&r, None), None),
                ClientRequest::ForkSession(r) => (on_opened(&r, None), None),
                ClientRequest::ResumeSession(r) if r.replay_from.is_some() => {
                    self.begin_replay(&r, r.session_id.clone())
                }
                ClientRequest::ResumeSession(r) => (on_opened(&r, Some(&r.session_id)), None),
                ClientRequest::SetSessionConfigOption(r) => {
                    type Request = v2::SetSessionConfigOptionRequest;
                    let on_response = on_thread_response::<Request>(r.session_id, |thread, set| {
                        thread.set_config_options(&dialect::options_from_v2(set.config_options));
                    });
                    (on_response, None)
                }
                _ => return None,
            }
        } else {
            use v1::ClientRequest;
            match ClientRequest::read(method, params).ok()? {
                ClientRequest::Initialize(_) => (Box::new(Self::apply_initialize_response), None),
                ClientRequest::Prompt(r) => self.begin_turn(r.session_id, &r.prompt),
                ClientRequest::NewSession(r) => (on_opened(&r, None), None),
                ClientRequest::ForkSession(r) => (on_opened(&r, None), None),
                ClientRequest::LoadSession(r) => self.begin_replay(&r, r.session_id.clone()),
                ClientRequest::ResumeSession(r) => (on_opened(&r, Some(&r.session_id)), None),
                ClientRequest::SetSessionConfigOption(r) => {
                    type Request = v1::SetSessionConfigOptionRequest;
                    let on_response = on_thread_response::<Request>(r.session_id, |thread, set| {
                        thread.set_config_options(&set.config_options);
                    });
                    (on_response, None)
                }
                ClientRequest::SetSessionMode(r) => {
                    type Request = v1::SetSessionModeRequest;
                    let on_response =
                        on_thread_response::<Request>(r.session_id, move |thread, _| {
                            thread.set_mode(&r.mode_id);
                        });
                    (on_response, None)
                }
                ClientRequest::SetSessionModel(r) => {
                    type Request = v1::SetSessionModelRequest;
                    let on_response =
                        on_thread_response::<Request>(r.session_id, move |thread, _| {
                            thread.set_model(&r.model_id);
                        });
                    (on_response, None)
                }
                _ => return None,
            }
        })
    }

    fn apply_initialize_response(
        &mut self,
        result: ObservedResponse<'_>,
    ) -> Option<ObservedChange> {
        self.version = detect_response_version(result.ok()?);
        None
    }

    fn begin_turn(
        &mut self,
        id: SessionId,
        prompt: &[ContentBlock],
    ) -> (ResponseObserver, Option<ObservedChange>) {
        let change = self.change_thread(id.clone(), |thread| thread.begin_turn(prompt));
        let on_response = |this: &mut Self, result: ObservedResponse<'_>| {
            let is_v2 = this.is_v2();
            this.change(id, |entry| {
                let respond = |thread: &mut Thread| answer_prompt(thread, is_v2, result);
                let result = entry.thread.change(respond);
                result.map(ObservedEvent::TurnEnded)
            })
        };
        (Box::new(on_response), change)
    }

    fn begin_replay<R: Request<Response: OpenSessionResult>>(
        &mut self,
        request: &R,
        id: SessionId,
    ) -> (ResponseObserver, Option<ObservedChange>) {
        self.sessions.remove_subagents(&id);
        let is_known = self.sessions.get(&id).is_some();
        let change = self.change(id.clone(), |_| Some(ObservedEvent::ReplayStarted));
        let before = self.sessions.begin_replay(&id);
        let on_success = on_opened(request, Some(&id));
        let on_response = move |this: &mut Self, result: ObservedResponse<'_>| {
            if result.is_ok() {
                return on_success(this, result);
            }
            this.sessions.get_mut(&id)?.is_replaying = false;
            // A session that was not in the table before keeps what was replayed.
            this.sessions.restore(&id, before.filter(|_| is_known)?);
            this.change(id, |_| Some(ObservedEvent::ReplayFailed))
        };
        (Box::new(on_response), change)
    }

    fn handle_agent_request(
        &mut self,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<(ResponseObserver, Option<ObservedChange>)> {
        if self.is_v2() {
            return match v2::AgentRequest::read(method, params).ok()? {
                v2::AgentRequest::RequestPermission(r) => self.request_permission(id, r.into()),
                _ => None,
            };
        }
        let on_response = match v1::AgentRequest::read(method, params).ok()? {
            v1::AgentRequest::RequestPermission(r) => return self.request_permission(id, r.into()),
            v1::AgentRequest::CreateTerminal(r) => on_thread_response::<v1::CreateTerminalRequest>(
                r.session_id,
                move |thread, created| {
                    let command = [&[r.command], &*r.args].concat().join(" ");
                    thread.start_terminal(&created.terminal_id, &command, r.cwd.as_deref());
                },
            ),
            v1::AgentRequest::TerminalOutput(r) => on_thread_response::<v1::TerminalOutputRequest>(
                r.session_id,
                move |thread, printed| {
                    thread.report_terminal_output(&r.terminal_id, &printed.output);
                    if let Some(status) = &printed.exit_status {
                        thread.set_terminal_exit_status(&r.terminal_id, status);
                    }
                },
            ),
            v1::AgentRequest::WaitForTerminalExit(r) => {
                on_thread_response::<v1::WaitForTerminalExitRequest>(
                    r.session_id,
                    move |thread, exit| {
                        let mut status = v1::TerminalExitStatus::new();
                        (status.exit_code, status.signal) = (exit.exit_code, exit.signal);
                        thread.set_terminal_exit_status(&r.terminal_id, &status);
                    },
                )
            }
            v1::AgentRequest::ReleaseTerminal(r) => {
                on_thread_response::<v1::ReleaseTerminalRequest>(r.session_id, move |thread, _| {
                    thread.release_terminal(&r.terminal_id);
                })
            }
            _ => return None,
        };
        Some((on_response, None))
    }

    fn request_permission(
        &mut self,
        id: &RequestId,
        request: ReceivedPermissionRequest,
    ) -> Option<(ResponseObserver, Option<ObservedChange>)> {
        self.session(&request.session_id)?;
        let request = Box::new(self.sessions.request_permission(request)?);
        let (id, session_id) = (id.clone(), request.session_id.clone());
        let event = ObservedEvent::PermissionRequested(id.clone(), request);
        let change = self.change(session_id.clone(), |_| Some(event));
        let on_response = move |this: &mut Self, result: ObservedResponse<'_>| {
            let outcome = match result {
                Ok(result) => Ok(parse_result::<v1::RequestPermissionRequest>(result)
                    .ok()?
                    .outcome),
                Err(error) => Err(error.clone()),
            };
            let event = ObservedEvent::PermissionAnswered(id, outcome);
            this.change(session_id, |_| Some(event))
        };
        Some((Box::new(on_response), change))
    }
}

/// Returns a callback that opens the session with `id`, or the session in the response if there is no `id`.
fn on_opened<R: Request<Response: OpenSessionResult>>(
    _: &R,
    id: Option<&SessionId>,
) -> ResponseObserver {
    let id = id.cloned();
    Box::new(move |observer, result| {
        let response = parse_result::<R>(result.ok()?).ok()?;
        let change = observer.change(response.new_session().cloned().or(id)?, |_| None)?;
        let announced = response.announcement();
        observer.sessions.announce(&change.session_id, &announced);
        Some(change)
    })
}

/// Returns a callback that changes a session's thread according to the response.
fn on_thread_response<R: Request>(
    id: SessionId,
    change: impl FnOnce(&mut Thread, R::Response) + Send + Sync + 'static,
) -> ResponseObserver {
    Box::new(move |observer, result| {
        let response = parse_result::<R>(result.ok()?).ok()?;
        observer.change_thread(id, |thread| change(thread, response))
    })
}

/// Handles the response to a prompt, and returns the turn's result if the turn has ended.
fn answer_prompt(
    thread: &mut Thread,
    is_v2: bool,
    result: ObservedResponse<'_>,
) -> Option<TurnResult> {
    let result = match result {
        Ok(result) if is_v2 => match parse_result::<v2::PromptRequest>(result) {
            Ok(response) => return thread.accept_prompt(&response.message_id),
            Err(error) => Err(error),
        },
        Ok(result) => {
            parse_result::<v1::PromptRequest>(result).map(|response| response.stop_reason)
        }
        // The prompt was queued, and cancelled before it was accepted.
        Err(error) if is_v2 && error.code == jsonrpc::Error::REQUEST_CANCELLED => {
            Ok(StopReason::Cancelled)
        }
        Err(error) => Err(error.clone()),
    };
    thread.end_turn(result.as_ref().ok());
    Some(result)
}

/// Parses the response to a request of type `R`.
fn parse_result<R: Request>(result: &RawValue) -> Result<R::Response, jsonrpc::Error> {
    let response = acp_wire::read_result(R::METHOD, result);
    response.map_err(|error| jsonrpc::Error::internal(error.to_string()))
}

/// Detects the agent's version from the response to `initialize`. Some agents return whatever version was requested,
/// but the response's fields reveal which version they speak.
fn detect_response_version(result: &RawValue) -> ProtocolVersion {
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
