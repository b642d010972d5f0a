//! Opens new sessions, existing sessions and forks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use acp_wire::v1::{
    ForkSessionRequest, ForkSessionResponse, LoadSessionResponse, McpServer, MessageId,
    NewSessionResponse, ResumeSessionResponse, SessionConfigOption, SessionId,
};
use acp_wire::{Request, jsonrpc, v2};
use serde::Serialize;

use super::initialize::supported_system_prompt;
use super::methods::{ForkAtMessage, ForkSession, LoadSession, ResumeSession};
use super::session::{OpenedSession, Session};
use super::side::{AgentSessionEntry, AgentSide};
use super::{Agent, config};
use crate::capabilities::missing_mcp_capability;
use crate::connection::{Connection, Responder};
use crate::dialect;
use crate::error::{Error, Result};
use crate::fork_point;
use crate::session_setup::{MAX_ID_BYTES, SessionSetup, SystemPromptError};

/// A way to open an existing session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReopenMode {
    /// With a replay (`session/load`; in version 2, `session/resume` with `replayFrom`).
    Load,
    /// Without a replay (`session/resume`).
    Resume,
}

/// The response to a request that opened a session, in the form that the negotiated version uses.
#[derive(Serialize)]
#[serde(untagged)]
enum OpenSessionResponse {
    New(NewSessionResponse),
    Load(LoadSessionResponse),
    Resume(ResumeSessionResponse),
    Fork(ForkSessionResponse),
    NewV2(v2::NewSessionResponse),
    ResumeV2(v2::ResumeSessionResponse),
    ForkV2(v2::ForkSessionResponse),
}

/// A guard for a session that is being opened. If opening fails, the guard restores the session that was previously
/// open under the same id.
pub(crate) struct SessionOpeningGuard<A: Agent> {
    side: Arc<AgentSide<A>>,
    pub(crate) session: Session,
    /// The session that was previously open under the same id.
    previous: Option<AgentSessionEntry<A>>,
    has_succeeded: bool,
}

impl<A: Agent> SessionOpeningGuard<A> {
    /// Stores the agent's state for the session and returns the other parts of `opened`.
    fn store_state(&self, opened: OpenedSession<A::State>) -> OpenedSession {
        let state = Arc::new(opened.state);
        let mut sessions = self.side.lock_sessions();
        // The session may have been closed or opened again in the meantime.
        if let Some(entry) = sessions.get_mut(self.session.id())
            && entry.session.ptr_eq(&self.session)
        {
            self.session.set_state::<A>(&state);
            entry.state = Some(state);
        }
        OpenedSession {
            state: (),
            config_options: opened.config_options,
            meta: opened.meta,
        }
    }

    fn commit(mut self) -> Session {
        self.has_succeeded = true;
        self.session.clone()
    }
}

impl<A: Agent> Drop for SessionOpeningGuard<A> {
    fn drop(&mut self) {
        match (self.has_succeeded, self.previous.take()) {
            (true, None) => {}
            // The client can no longer cancel the turns of the previous opening.
            (true, Some(before)) => before.session.cancel(),
            // Drop the agent's state after the lock is released.
            (false, None) => {
                let failed = self.side.lock_sessions().remove(self.session.id());
                drop(failed);
            }
            (false, Some(before)) => {
                let id = before.session.id().clone();
                let failed = self.side.lock_sessions().insert(id, before);
                drop(failed);
            }
        }
    }
}

/// How a session was opened, which determines the form of the response.
#[derive(Clone, Copy)]
enum SessionOrigin {
    New,
    Fork,
    Existing(ReopenMode),
}

impl<A: Agent> AgentSide<A> {
    /// Handles `session/new`.
    pub(crate) async fn new_session(self: Arc<Self>, setup: SessionSetup, responder: Responder) {
        let id = self.agent.new_session_id();
        match self.open(id, &setup, responder.connection()) {
            Ok(opening) => {
                // A prompt that arrives early waits.
                let turn_guard = opening.session.lock_turn().await;
                let opened = self.agent.new_session(&opening.session, setup).await;
                let opened = opened.map(|opened| opening.store_state(opened));
                drop(turn_guard);
                self.finish_opening(opening, opened, responder, SessionOrigin::New)
                    .await;
            }
            Err(error) => responder.respond(Err::<(), _>(error)).await,
        }
    }

    /// Handles `session/load` and `session/resume`.
    pub(crate) async fn reopen(
        self: Arc<Self>,
        id: SessionId,
        setup: SessionSetup,
        open_method: ReopenMode,
        method: &str,
        responder: Responder,
    ) {
        let opened = match self.choose_open_call(&id, open_method, method) {
            Ok(ReopenCall::AlreadyOpen) => {
                return self.resume_open_session(&id, &setup, responder).await;
            }
            Ok(with) => self
                .open(id, &setup, responder.connection())
                .map(|opening| (opening, with)),
            Err(error) => Err(error),
        };
        let (opening, with) = match opened {
            Ok(opened) => opened,
            Err(error) => return responder.respond(Err::<(), _>(error)).await,
        };
        let session = &opening.session;
        let recorded = session.recording().is_some();
        if let (true, Some(before)) = (recorded, &opening.previous) {
            // The replay must contain everything that the client has shown.
            before.session.cancel();
            drop(before.session.lock_turn().await);
        }
        // A prompt that arrives early waits until the replay has ended and the agent's state is set.
        let turn_guard = session.lock_turn().await;
        let opened = match (with, self.agent.load_session(), self.agent.resume_session()) {
            (ReopenCall::Load { muted }, Some(load), _) => {
                session.set_muted(muted);
                session.set_replaying(true);
                let opened = load.load(session, setup).await;
                session.set_replaying(false);
                session.set_muted(false);
                opened
            }
            (ReopenCall::Resume, _, Some(resume)) => resume.resume(session, setup).await,
            _ => Err(Error::internal(
                "the agent does not support this way of opening an existing session",
            )),
        };
        let opened = opened.map(|opened| opening.store_state(opened));
        drop(turn_guard);
        if let (Ok(_), Some(before), true) = (&opened, &opening.previous, session.client().is_v2())
        {
            // The reported state belongs to the session as opened now, in which no turn is running.
            before.session.cancel();
            drop(before.session.lock_turn().await);
        }
        self.finish_opening(
            opening,
            opened,
            responder,
            SessionOrigin::Existing(open_method),
        )
        .await;
    }

    /// Handles `session/resume` for an open session, if a version 2 agent cannot reopen sessions. The session does not
    /// change, and its turns continue.
    async fn resume_open_session(
        &self,
        id: &SessionId,
        setup: &SessionSetup,
        responder: Responder,
    ) {
        let open = self.check_setup(setup).and_then(|()| self.open_session(id));
        let (session, state) = match open {
            Ok(open) => open,
            Err(error) => return responder.respond(Err::<(), _>(error)).await,
        };
        let sent = session
            .send_state_update(session.current_state_update())
            .await;
        let options = session.config_options();
        let origin = SessionOrigin::Existing(ReopenMode::Resume);
        let answer = sent.map(|()| to_v2_response(&session, options, None, origin));
        responder.respond(answer).await;
        self.agent.session_opened(&state, session).await;
    }

    /// Handles `session/fork`.
    pub(crate) async fn fork(
        self: Arc<Self>,
        id: SessionId,
        setup: SessionSetup,
        responder: Responder,
    ) {
        let Some(fork) = self.agent.fork_session() else {
            let error = Error::Rpc(jsonrpc::Error::method_not_found(ForkSessionRequest::METHOD));
            return responder.respond(Err::<(), _>(error)).await;
        };
        let last = match self.last_message_of_fork(&id, &setup) {
            Ok(last) => last,
            Err(error) => return responder.respond(Err::<(), _>(error)).await,
        };
        let new = self.agent.new_session_id();
        match self.open(new, &setup, responder.connection()) {
            Ok(opening) => {
                let turn_guard = opening.session.lock_turn().await;
                let session = &opening.session;
                let opened = match (last, self.agent.fork_at_message()) {
                    (Some(last), Some(fork)) => fork.fork_at(&id, &last, session, setup).await,
                    _ => fork.fork(&id, session, setup).await,
                };
                let opened = opened.map(|opened| opening.store_state(opened));
                drop(turn_guard);
                self.finish_opening(opening, opened, responder, SessionOrigin::Fork)
                    .await;
            }
            Err(error) => responder.respond(Err::<(), _>(error)).await,
        }
    }

    /// Returns the last message that a fork of the session `id` is to contain, or `None` if it is to contain all of them.
    fn last_message_of_fork(
        &self,
        id: &SessionId,
        setup: &SessionSetup,
    ) -> Result<Option<MessageId>> {
        let last = fork_point::read_message(setup.meta.as_ref()).map_err(Error::invalid_params)?;
        if last.is_none() {
            return Ok(None);
        }
        if self.agent.fork_at_message().is_none() {
            return Err(Error::invalid_params(
                "the agent cannot fork a session at a message, only a whole session",
            ));
        }
        // What belongs to the last turn is not known before it ends.
        if self.session(id).is_ok_and(|session| session.is_prompting()) {
            let text = format!(
                "a turn is running in session {id}; cancel it or wait for its end, then fork the session again"
            );
            let code = jsonrpc::Error::INVALID_REQUEST;
            return Err(Error::Rpc(jsonrpc::Error::new(code, text)));
        }
        Ok(last)
    }

    /// Chooses the agent's method for opening an existing session. Version 1 clients can use only the methods that the
    /// agent supports. In version 2, every agent resumes sessions as well as it can.
    fn choose_open_call(
        &self,
        id: &SessionId,
        open_method: ReopenMode,
        method: &str,
    ) -> Result<ReopenCall> {
        let v2 = self.client()?.is_v2();
        let (load, resume) = (
            self.agent.load_session().is_some(),
            self.agent.resume_session().is_some(),
        );
        Ok(match open_method {
            ReopenMode::Load if load => ReopenCall::Load { muted: false },
            ReopenMode::Load if v2 => {
                return Err(Error::invalid_params("the agent cannot replay sessions"));
            }
            ReopenMode::Resume if resume => ReopenCall::Resume,
            // The replay is discarded.
            ReopenMode::Resume if v2 && load => ReopenCall::Load { muted: true },
            ReopenMode::Resume if v2 => {
                self.session(id)?;
                ReopenCall::AlreadyOpen
            }
            _ => return Err(Error::Rpc(jsonrpc::Error::method_not_found(method))),
        })
    }

    /// Adds a session to the table of sessions, so that later messages can refer to it.
    fn open(
        self: &Arc<Self>,
        id: SessionId,
        setup: &SessionSetup,
        conn: &Connection,
    ) -> Result<SessionOpeningGuard<A>> {
        self.check_setup(setup)?;
        if id.as_str().len() > MAX_ID_BYTES {
            return Err(Error::invalid_params(format!(
                "session id too long: the limit is {MAX_ID_BYTES} bytes"
            )));
        }
        let client = self.client()?;
        let session = Session::new(
            id.clone(),
            setup,
            conn.clone(),
            client,
            self.session_recording(),
        );
        let before = {
            let mut sessions = self.lock_sessions();
            let limit = conn.0.limits.sessions;
            if sessions.len() >= limit && !sessions.contains_key(&id) {
                let text =
                    format!("too many open sessions: the limit is {limit}; close some first");
                return Err(Error::internal(text));
            }
            let entry = AgentSessionEntry {
                session: session.clone(),
                state: None,
            };
            sessions.insert(id, entry)
        };
        let side = Arc::clone(self);
        Ok(SessionOpeningGuard {
            side,
            session,
            previous: before,
            has_succeeded: false,
        })
    }

    /// Checks that the agent supports everything in a session setup.
    fn check_setup(&self, setup: &SessionSetup) -> Result<()> {
        setup.check_paths().map_err(Error::invalid_params)?;
        let offered = supported_system_prompt(&*self.agent);
        setup
            .check_system_prompt(offered.as_ref())
            .map_err(|error| match error {
                SystemPromptError::Unsupported(name) => Error::invalid_params(format!(
                    "the system prompt requires the capability {name}, which the agent does not support"
                )),
                SystemPromptError::Invalid(text) => Error::invalid_params(text),
            })?;
        self.check_servers(&setup.mcp_servers)
    }

    /// Checks that the agent supports the transports of the MCP servers.
    fn check_servers(&self, servers: &[McpServer]) -> Result<()> {
        let offered = self.agent.mcp_capabilities();
        let stdio = self.agent.supports_mcp_stdio() || !self.client()?.is_v2();
        let missing = |server| Some((server, missing_mcp_capability(&offered, stdio, server)?));
        match servers.iter().find_map(missing) {
            Some((server, missing)) => {
                let name = server.name().unwrap_or_default();
                Err(Error::invalid_params(format!(
                    "MCP server {name:?} requires the MCP capability {missing}, which the agent does not support"
                )))
            }
            None => Ok(()),
        }
    }

    /// Sends the response to the request that opened a session, and then calls [`Agent::session_opened`].
    async fn finish_opening(
        &self,
        opening: SessionOpeningGuard<A>,
        opened: Result<OpenedSession>,
        responder: Responder,
        origin: SessionOrigin,
    ) {
        let answer = match opened {
            Ok(opened) => self.to_response(&opening.session, opened, origin).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => {
                responder.respond(Ok(&answer)).await;
                let session = opening.commit();
                if let Some(state) = session.agent_state::<A>() {
                    self.agent.session_opened(&state, session).await;
                }
            }
            Err(error) => {
                // Drop the guard before the response: a client that has the response must find the previous session
                // open.
                drop(opening);
                responder.respond(Err::<(), _>(error)).await;
            }
        }
    }

    async fn to_response(
        &self,
        session: &Session,
        opened: OpenedSession,
        origin: SessionOrigin,
    ) -> Result<OpenSessionResponse> {
        let OpenedSession {
            config_options,
            meta,
            ..
        } = opened;
        session.replace_config_options(config_options.clone());
        if session.client().is_v2() {
            if let SessionOrigin::Existing(_) = origin {
                // A client that resumes a session needs its current state. Boxed, because the opening of every session
                // would reserve space for this future.
                let idle = v2::StateUpdate::Idle(v2::IdleStateUpdate::new());
                Box::pin(session.send_state_update(idle)).await?;
            }
            return Ok(to_v2_response(session, config_options, meta, origin));
        }
        let modes = config::to_mode_state(&config_options);
        let shown =
            config::supported_options(config_options, session.client().supports_boolean_options());
        let config_options = (!shown.is_empty()).then_some(shown);
        macro_rules! answer {
            ($var:ident, $answer:expr) => {{
                let mut answer = $answer;
                answer.modes = modes;
                answer.config_options = config_options;
                answer.meta = meta;
                OpenSessionResponse::$var(answer)
            }};
        }
        Ok(match origin {
            SessionOrigin::New => answer!(New, NewSessionResponse::new(session.id())),
            SessionOrigin::Fork => answer!(Fork, ForkSessionResponse::new(session.id())),
            SessionOrigin::Existing(ReopenMode::Load) => {
                answer!(Load, LoadSessionResponse::new())
            }
            SessionOrigin::Existing(ReopenMode::Resume) => {
                answer!(Resume, ResumeSessionResponse::new())
            }
        })
    }
}

/// The agent's method for opening an existing session.
enum ReopenCall {
    Load { muted: bool },
    Resume,
    AlreadyOpen,
}

fn to_v2_response(
    session: &Session,
    config_options: Vec<SessionConfigOption>,
    meta: Option<acp_wire::Meta>,
    origin: SessionOrigin,
) -> OpenSessionResponse {
    let options = dialect::options_to_v2(config_options);
    macro_rules! answer {
        ($var:ident, $answer:expr) => {{
            let mut answer = $answer.config_options(options);
            answer.meta = meta;
            OpenSessionResponse::$var(answer)
        }};
    }
    match origin {
        SessionOrigin::New => answer!(NewV2, v2::NewSessionResponse::new(session.id())),
        SessionOrigin::Fork => answer!(ForkV2, v2::ForkSessionResponse::new(session.id())),
        SessionOrigin::Existing(_) => answer!(ResumeV2, v2::ResumeSessionResponse::new()),
    }
}

impl Session {
    /// Sets whether the session's updates are discarded rather than sent.
    fn set_muted(&self, muted: bool) {
        self.muted().store(muted, Ordering::Release);
    }
}
