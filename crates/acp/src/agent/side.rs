//! What is done with what a client sends.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use acp_wire::jsonrpc;
use acp_wire::v1::{
    AgentAuthCapabilities, AgentCapabilities, AuthenticateResponse, ClientCapabilities,
    ClientNotification, ClientRequest, CloseSessionResponse, ConfigOptionUpdate, ContentBlock,
    CurrentModeUpdate, DeleteSessionResponse, Extension, Implementation, InitializeRequest,
    InitializeResponse, LoadSessionResponse, LogoutCapabilities, LogoutResponse,
    NewSessionResponse, PromptRequest, PromptResponse, ProtocolVersion, ResumeSessionResponse,
    SessionCapabilities, SessionConfigId, SessionConfigOption, SessionConfigOptionValue, SessionId,
    SessionModeState, SessionUpdate, SetSessionConfigOptionResponse, SetSessionModeResponse,
    StopReason,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::optional::{
    Authentication, CloseSession, DeleteSession, ListSessions, LoadSession, ResumeSession,
};
use super::session::{Session, SessionOpened};
use super::turn::{Prompt, Turn};
use super::{Agent, config};
use crate::connection::{Connection, Handler, Limits, NoisePolicy, Responder};
use crate::error::{CloseReason, Error, Result};
use crate::session_setup::SessionSetup;
use crate::transport::{Transport, stdio};

/// Serves the client at the other end of stdin and stdout until it closes them.
///
/// # Errors
/// stdin or stdout cannot be taken, or reading or writing fails.
pub async fn serve_stdio<A: Agent>(agent: A) -> std::io::Result<()> {
    serve(stdio()?, agent).await
}

/// Serves a client until it closes its side.
///
/// # Errors
/// Reading or writing fails.
pub async fn serve<A: Agent>(transport: Transport, agent: A) -> std::io::Result<()> {
    match start(transport, agent, limits()).closed().await {
        CloseReason::Transport(e) => Err(std::io::Error::new(e.kind(), e.to_string())),
        CloseReason::Local | CloseReason::Peer => Ok(()),
    }
}

/// Begins to serve a client, and gives the connection.
pub fn start<A: Agent>(transport: Transport, agent: A, limits: Limits) -> Connection {
    let side = AgentSide {
        agent,
        client: OnceLock::new(),
        sessions: Mutex::default(),
    };
    Connection::start(transport, limits, Arc::new(side))
}

/// An agent's limits: a client that closes its side has its answers still.
fn limits() -> Limits {
    Limits {
        linger: Duration::from_secs(2),
        ..Limits::default()
    }
}

/// What is known of a client.
#[derive(Debug, Clone, Default)]
pub struct ClientInfo {
    capabilities: ClientCapabilities,
    info: Option<Implementation>,
}

impl ClientInfo {
    /// What it can do.
    #[must_use]
    pub fn capabilities(&self) -> &ClientCapabilities {
        &self.capabilities
    }

    /// Who it is, if it said.
    #[must_use]
    pub fn info(&self) -> Option<&Implementation> {
        self.info.as_ref()
    }

    pub(crate) fn takes_boolean_options(&self) -> bool {
        let options = self
            .capabilities
            .session
            .as_ref()
            .and_then(|s| s.config_options.as_ref());
        options.is_some_and(|options| options.boolean.is_some())
    }
}

struct AgentSide<A> {
    agent: A,
    client: OnceLock<Arc<ClientInfo>>,
    sessions: Mutex<HashMap<SessionId, Session>>,
}

impl<A: Agent> AgentSide<A> {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self, id: &SessionId) -> Result<Session> {
        let session = self.sessions().get(id).cloned();
        session
            .ok_or_else(|| Error::Rpc(jsonrpc::Error::resource_not_found(format!("session {id}"))))
    }

    fn client(&self) -> Result<Arc<ClientInfo>> {
        self.client.get().cloned().ok_or_else(|| {
            let message = "Invalid request: the connection begins with initialize";
            Error::Rpc(jsonrpc::Error::new(
                jsonrpc::Error::INVALID_REQUEST,
                message,
            ))
        })
    }

    /// The agent speaks one version so far: whatever is asked for, that is the latest it speaks.
    fn initialize(&self, request: InitializeRequest) -> InitializeResponse {
        let client = ClientInfo {
            capabilities: request.client_capabilities,
            info: request.client_info,
        };
        let _ = self.client.set(Arc::new(client));
        let agent = &self.agent;
        let mut sessions = SessionCapabilities::new();
        sessions.list = agent.list_sessions().map(|_| Default::default());
        sessions.delete = agent.delete_session().map(|_| Default::default());
        sessions.resume = agent.resume_session().map(|_| Default::default());
        sessions.close = agent.close_session().map(|_| Default::default());
        sessions.additional_directories = agent.additional_directories().then(Default::default);
        let authentication = agent.authentication();
        let mut auth = AgentAuthCapabilities::new();
        auth.logout = authentication
            .filter(|a| a.can_logout())
            .map(|_| LogoutCapabilities::new());
        let capabilities = AgentCapabilities::new()
            .load_session(agent.load_session().is_some())
            .prompt_capabilities(agent.prompt_capabilities())
            .mcp_capabilities(agent.mcp_capabilities())
            .session_capabilities(sessions)
            .auth(auth);
        let mut response = InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .auth_methods(
                authentication
                    .map(Authentication::methods)
                    .unwrap_or_default(),
            );
        response.agent_info = agent.info();
        response
    }

    /// Makes a session known, so that whatever arrives next finds it.
    fn open(
        self: &Arc<Self>,
        id: SessionId,
        setup: &SessionSetup,
        conn: &Connection,
    ) -> Result<Opening<A>> {
        for path in std::iter::once(&setup.cwd).chain(&setup.additional_directories) {
            if !is_absolute(path) {
                return Err(Error::invalid_params(format!(
                    "{path:?} is not an absolute path"
                )));
            }
        }
        let session = Session::new(id.clone(), setup, conn.clone(), self.client()?);
        let before = self.sessions().insert(id, session.clone());
        let side = Arc::clone(self);
        Ok(Opening {
            side,
            session,
            before,
            succeeded: false,
        })
    }

    /// Answers what opened a session, then tells the agent that the client knows it.
    async fn opened<R: Serialize + Send + Sync>(
        &self,
        opening: Opening<A>,
        opened: Result<SessionOpened>,
        responder: Responder,
        answer: impl FnOnce(SessionId, Shown) -> R,
    ) {
        match opened {
            Ok(SessionOpened {
                config_options,
                meta,
            }) => {
                let session = &opening.session;
                session.replace_config_options(config_options.clone());
                let modes = config::modes(&config_options);
                let shown =
                    config::understood(config_options, session.client().takes_boolean_options());
                let config_options = (!shown.is_empty()).then_some(shown);
                let shown = Shown {
                    modes,
                    config_options,
                    meta,
                };
                responder
                    .answer(Ok(answer(session.id().clone(), shown)))
                    .await;
                self.agent.session_opened(opening.succeeded()).await;
            }
            Err(error) => {
                // First, so that whoever has seen the answer finds things as they are.
                drop(opening);
                responder.answer(Err::<(), _>(error)).await;
            }
        }
    }

    /// Sets a config option and reports what other clients' eyes must see: the mode, when it was
    /// set as an option; the options, when it was set as a mode.
    async fn set_option(
        &self,
        session: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
        as_mode: bool,
    ) -> Result<Vec<SessionConfigOption>> {
        config::check(&session.config_options(), option, &value)?;
        let options = self.agent.set_config_option(session, option, value).await?;
        let mode = session.replace_config_options(options.clone());
        let shown = config::understood(options, session.client().takes_boolean_options());
        if as_mode {
            let update = ConfigOptionUpdate::new(shown.clone());
            session
                .update(SessionUpdate::ConfigOptionUpdate(update))
                .await?;
        } else if let Some(mode) = mode {
            session
                .update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(
                    mode,
                )))
                .await?;
        }
        Ok(shown)
    }

    /// Begins a turn. Runs on the reader: a cancel that follows finds the turn.
    fn prompt(self: &Arc<Self>, request: PromptRequest, conn: &Connection, responder: Responder) {
        let session = match self.session(&request.session_id) {
            Ok(session) => session,
            Err(error) => return responder.spawn(async move { Err::<(), _>(error) }),
        };
        let turn = Turn::new(session, CancellationToken::new());
        let running = Running::new(&turn);
        let side = Arc::clone(self);
        let aborted = conn.0.aborted.clone();
        conn.0.tasks.spawn(async move {
            let request_cancelled = responder.cancelled().clone();
            let cancelled_by_request = async {
                request_cancelled.cancelled().await;
                running.token.cancel();
                std::future::pending::<()>().await;
            };
            let result = tokio::select! {
                biased;
                () = aborted.cancelled() => return,
                () = cancelled_by_request => return,
                result = side.turn(turn, request) => result,
            };
            drop(running);
            let result = if request_cancelled.is_cancelled() {
                Err(Error::Cancelled)
            } else {
                result
            };
            responder.answer(result).await;
        });
    }

    async fn turn(&self, turn: Turn, request: PromptRequest) -> Result<PromptResponse> {
        let session = turn.session().clone();
        let _mine = session.my_turn().await;
        if turn.is_cancelled() {
            return Ok(PromptResponse::new(StopReason::Cancelled));
        }
        self.check(&request.prompt)?;
        let prompt = Prompt {
            content: request.prompt,
            meta: request.meta,
        };
        let watch = turn.clone();
        let stop_reason = tokio::select! {
            biased;
            result = self.agent.prompt(turn, prompt) => match result {
                _ if watch.is_cancelled() => StopReason::Cancelled,
                Err(Error::Cancelled) => StopReason::Cancelled,
                result => result?,
            },
            () = watch.must_be_dropped() => StopReason::Cancelled,
        };
        Ok(PromptResponse::new(stop_reason))
    }

    fn check(&self, prompt: &[ContentBlock]) -> Result<()> {
        let takes = self.agent.prompt_capabilities();
        for block in prompt {
            let refused = match block {
                ContentBlock::Image(_) if !takes.image => "image",
                ContentBlock::Audio(_) if !takes.audio => "audio",
                ContentBlock::Resource(_) if !takes.embedded_context => "embeddedContext",
                _ => continue,
            };
            return Err(Error::invalid_params(format!(
                "the prompt has content that needs the prompt capability {refused}, which is not offered"
            )));
        }
        Ok(())
    }

    /// Ends a session's turn and forgets it.
    async fn forget(&self, id: &SessionId) -> Result<()> {
        let session = self.session(id)?;
        session.cancel();
        drop(session.my_turn().await);
        self.sessions().remove(id);
        Ok(())
    }
}

/// A session that is being opened. Unless that succeeds, things are as they were before.
struct Opening<A: Agent> {
    side: Arc<AgentSide<A>>,
    session: Session,
    /// The session of this id that was open already.
    before: Option<Session>,
    succeeded: bool,
}

impl<A: Agent> Opening<A> {
    fn succeeded(mut self) -> Session {
        self.succeeded = true;
        self.session.clone()
    }
}

impl<A: Agent> Drop for Opening<A> {
    fn drop(&mut self) {
        match (self.succeeded, self.before.take()) {
            (true, None) => {}
            // Its client can no longer cancel what runs in it.
            (true, Some(before)) => before.cancel(),
            (false, None) => drop(self.side.sessions().remove(self.session.id())),
            (false, Some(before)) => {
                self.side.sessions().insert(before.id().clone(), before);
            }
        }
    }
}

/// What a client is told of an opened session.
struct Shown {
    modes: Option<SessionModeState>,
    config_options: Option<Vec<SessionConfigOption>>,
    meta: Option<acp_wire::Meta>,
}

/// A turn that its session knows of, until this is dropped.
struct Running {
    session: Session,
    token: CancellationToken,
}

impl Running {
    fn new(turn: &Turn) -> Self {
        let (session, token) = (turn.session().clone(), turn.token().clone());
        session.turn_begins(token.clone());
        Self { session, token }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.token.cancel();
        self.session.turn_ends();
    }
}

fn is_absolute(path: &str) -> bool {
    // A client may run on another system than the agent, in a container for example.
    path.starts_with('/') || Path::new(path).is_absolute()
}

fn setup(
    cwd: String,
    additional_directories: Vec<String>,
    mcp_servers: Vec<acp_wire::v1::McpServer>,
    meta: Option<acp_wire::Meta>,
) -> SessionSetup {
    SessionSetup {
        cwd,
        additional_directories,
        mcp_servers,
        meta,
    }
}

/// Opens an old session in one of the two ways, if the agent offers it.
macro_rules! reopen {
    ($self:ident, $side:ident, $conn:ident, $responder:ident, $not_found:ident, $r:ident, $way:ident, $answer:ty) => {{
        let setup = setup($r.cwd, $r.additional_directories, $r.mcp_servers, $r.meta);
        let opened = match $self.agent.$way() {
            Some(_) => $self.open($r.session_id, &setup, &$conn),
            None => Err($not_found()),
        };
        $responder.work(async move |responder| match (opened, $side.agent.$way()) {
            (Ok(opening), Some(way)) => {
                let opened = way.$way(&opening.session, setup).await;
                let answer = |_, shown: Shown| {
                    let mut answer = <$answer>::new();
                    answer.modes = shown.modes;
                    answer.config_options = shown.config_options;
                    answer.meta = shown.meta;
                    answer
                };
                $side.opened(opening, opened, responder, answer).await;
            }
            (opened, _) => responder.answer(opened.map(drop)).await,
        });
    }};
}

impl<A: Agent> Handler for AgentSide<A> {
    type Event = (Connection, Extension);

    const NOISE: NoisePolicy = NoisePolicy::Answer;

    fn request(self: &Arc<Self>, method: &str, params: Option<&RawValue>, responder: Responder) {
        let conn = responder.connection().clone();
        let side = Arc::clone(self);
        let request = match ClientRequest::read(method, params) {
            Ok(request) => request,
            Err(error) => return responder.spawn(async move { Err::<(), _>(error.into()) }),
        };
        let first = matches!(
            request,
            ClientRequest::Initialize(_) | ClientRequest::Extension(_)
        );
        if let (false, Err(error)) = (first, self.client()) {
            return responder.spawn(async move { Err::<(), _>(error) });
        }
        let not_found = {
            let method = method.to_owned();
            move || Error::Rpc(jsonrpc::Error::method_not_found(&method))
        };
        match request {
            ClientRequest::Initialize(request) => {
                let response = self.initialize(request);
                responder.spawn(async move { Ok(response) });
            }
            ClientRequest::Prompt(request) => self.prompt(request, &conn, responder),
            ClientRequest::NewSession(r) => {
                let setup = setup(r.cwd, r.additional_directories, r.mcp_servers, r.meta);
                let id = self.agent.new_session_id();
                responder.work(async move |responder| match side.open(id, &setup, &conn) {
                    Ok(opening) => {
                        let opened = side.agent.new_session(&opening.session, setup).await;
                        side.opened(opening, opened, responder, |id, shown| {
                            let mut answer = NewSessionResponse::new(id);
                            answer.modes = shown.modes;
                            answer.config_options = shown.config_options;
                            answer.meta = shown.meta;
                            answer
                        })
                        .await;
                    }
                    Err(error) => responder.answer(Err::<(), _>(error)).await,
                });
            }
            ClientRequest::LoadSession(r) => {
                reopen!(
                    self,
                    side,
                    conn,
                    responder,
                    not_found,
                    r,
                    load_session,
                    LoadSessionResponse
                );
            }
            ClientRequest::ResumeSession(r) => {
                reopen!(
                    self,
                    side,
                    conn,
                    responder,
                    not_found,
                    r,
                    resume_session,
                    ResumeSessionResponse
                );
            }
            ClientRequest::SetSessionMode(r) => responder.spawn(async move {
                let session = side.session(&r.session_id)?;
                let option = config::mode_id(&session.config_options())
                    .ok_or_else(|| Error::invalid_params("this session has no modes"))?;
                side.set_option(&session, &option, r.mode_id.as_str().into(), true)
                    .await?;
                Ok(SetSessionModeResponse::new())
            }),
            ClientRequest::SetSessionConfigOption(r) => responder.spawn(async move {
                let session = side.session(&r.session_id)?;
                let options = side
                    .set_option(&session, &r.config_id, r.value, false)
                    .await?;
                Ok(SetSessionConfigOptionResponse::new(options))
            }),
            ClientRequest::ListSessions(r) => responder.spawn(async move {
                let list = side.agent.list_sessions().ok_or_else(not_found)?;
                list.list_sessions(r).await
            }),
            ClientRequest::CloseSession(r) => responder.spawn(async move {
                let close = side.agent.close_session().ok_or_else(not_found)?;
                side.forget(&r.session_id).await?;
                close.close_session(&r.session_id).await?;
                Ok(CloseSessionResponse::new())
            }),
            ClientRequest::DeleteSession(r) => responder.spawn(async move {
                let delete = side.agent.delete_session().ok_or_else(not_found)?;
                // A session that is not open can be deleted as well.
                let _ = side.forget(&r.session_id).await;
                delete.delete_session(&r.session_id).await?;
                Ok(DeleteSessionResponse::new())
            }),
            ClientRequest::Authenticate(r) => responder.spawn(async move {
                let authentication = side.agent.authentication().ok_or_else(not_found)?;
                authentication.authenticate(&r.method_id).await?;
                Ok(AuthenticateResponse::new())
            }),
            ClientRequest::Logout(_) => responder.spawn(async move {
                let authentication = side
                    .agent
                    .authentication()
                    .filter(|a| a.can_logout())
                    .ok_or_else(not_found)?;
                authentication.logout().await?;
                Ok(LogoutResponse::new())
            }),
            ClientRequest::Extension(Extension { method, params }) => responder
                .spawn(async move { side.agent.extension_request(&conn, &method, params).await }),
            _ => responder.spawn(async move { Err::<(), _>(not_found()) }),
        }
    }

    fn notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Self::Event> {
        match ClientNotification::read(method, params) {
            Ok(ClientNotification::Cancel(cancel)) => {
                match self.session(&cancel.session_id) {
                    Ok(session) => session.cancel(),
                    Err(error) => tracing::warn!(%error, "a cancel is passed over"),
                }
                None
            }
            Ok(ClientNotification::Extension(extension)) => Some((conn.clone(), extension)),
            Ok(_) => None,
            Err(error) => {
                conn.0.counters.unread();
                tracing::warn!(%error, "a notification is passed over");
                None
            }
        }
    }

    async fn deliver(&self, (conn, Extension { method, params }): Self::Event) {
        self.agent
            .extension_notification(&conn, &method, params)
            .await;
    }

    fn closed(&self) {
        // Sessions hold the connection: without this neither would ever be freed.
        let sessions = std::mem::take(&mut *self.sessions());
        for session in sessions.values() {
            session.cancel();
        }
    }
}
