//! What is done with what a client sends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use acp_wire::v1::{
    self, AuthenticateResponse, ClientNotification, CloseSessionResponse, ConfigOptionUpdate,
    CurrentModeUpdate, DeleteSessionResponse, Extension, InitializeRequest, ListSessionsRequest,
    ListSessionsResponse, LogoutResponse, ProtocolVersion, SessionConfigId, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionValue, SessionId, SessionInfo, SessionUpdate,
    SetSessionConfigOptionResponse, SetSessionModeResponse, SetSessionModelResponse,
};
use acp_wire::{Request, jsonrpc, v2};
use serde_json::value::RawValue;

use super::authentication::AuthContext;
use super::initialize::{ClientInfo, initialize};
use super::optional::{Authentication, CancelWork, CloseSession, DeleteSession, ListSessions};
use super::request::{Answer, Call, v1_answer, v2_answer};
use super::session::Session;
use super::{Agent, config};
use crate::connection::{Connection, Handler, Limits, NoisePolicy, Responder};
use crate::convert;
use crate::error::{CloseReason, Error, Result};
use crate::options::Options;
use crate::transport::{Transport, stdio};

/// Serves the client at the other end of stdin and stdout until it closes them.
///
/// # Errors
/// stdin or stdout cannot be taken, or reading or writing fails.
pub async fn serve_stdio<A: Agent>(agent: A) -> std::io::Result<()> {
    serve(stdio()?, agent).await
}

/// Serves a client until it closes its side. What it asked for before that is worked on for two seconds more
/// at most ([`Limits::linger`]).
///
/// # Errors
/// Reading or writing fails.
pub async fn serve<A: Agent>(transport: Transport, agent: A) -> std::io::Result<()> {
    serve_with(transport, agent, Options::new().limits(limits())).await
}

/// As [`serve`], with limits of your own ([`limits`] has those of [`serve`]), or for clients that
/// may speak the draft of version 2 ([`Options::draft_version_2`]).
///
/// # Errors
/// As [`serve`].
pub async fn serve_with<A: Agent>(
    transport: Transport,
    agent: A,
    options: impl Into<Options>,
) -> std::io::Result<()> {
    match start(transport, agent, options).closed().await {
        // The client is gone, and was told something before its side was seen to be closed.
        CloseReason::Transport(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        CloseReason::Transport(e) => Err(std::io::Error::new(e.kind(), e.to_string())),
        CloseReason::Local | CloseReason::Peer => Ok(()),
    }
}

/// Begins to serve a client, and gives the connection: for a program that does something beside it. Its
/// options are used as they are, [`Limits::linger`] included. Must be called within a Tokio runtime.
pub fn start<A: Agent>(transport: Transport, agent: A, options: impl Into<Options>) -> Connection {
    let options = options.into();
    let side = AgentSide {
        agent,
        latest: options.latest(),
        client: OnceLock::new(),
        sessions: Mutex::default(),
    };
    Connection::start(transport, options, Arc::new(side))
}

/// The limits of [`serve`]: a client that closes its side has its answers still.
#[must_use]
pub fn limits() -> Limits {
    Limits {
        linger: Duration::from_secs(2),
        ..Limits::default()
    }
}

pub(crate) struct AgentSide<A> {
    pub(crate) agent: A,
    latest: ProtocolVersion,
    client: OnceLock<Arc<ClientInfo>>,
    sessions: Mutex<HashMap<SessionId, Session>>,
}

impl<A: Agent> AgentSide<A> {
    pub(crate) fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn session(&self, id: &SessionId) -> Result<Session> {
        let session = self.sessions().get(id).cloned();
        session.ok_or_else(|| {
            let mut error = jsonrpc::Error::resource_not_found(format!("session {id}"));
            error.data = Some(serde_json::json!({ "sessionId": id.as_str() }));
            Error::Rpc(error)
        })
    }

    pub(crate) fn client(&self) -> Result<Arc<ClientInfo>> {
        self.client.get().cloned().ok_or_else(|| {
            let message = "Invalid request: the connection begins with initialize";
            Error::Rpc(jsonrpc::Error::new(
                jsonrpc::Error::INVALID_REQUEST,
                message,
            ))
        })
    }

    /// Sets a config option and reports what other clients' eyes must see: the mode, when it was
    /// set as an option; the options, when it was set as a mode.
    async fn set_option(
        &self,
        session: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
        as_option: bool,
    ) -> Result<Vec<SessionConfigOption>> {
        config::check(&session.config_options(), option, &value)?;
        let options = self.agent.set_config_option(session, option, value).await?;
        let mode = session.replace_config_options(options.clone());
        let client = session.client();
        let shown = config::understood(options, client.takes_boolean_options());
        if !as_option {
            let update = ConfigOptionUpdate::new(shown.clone());
            session
                .update(SessionUpdate::ConfigOptionUpdate(update))
                .await?;
        } else if let (Some(mode), false) = (mode, client.speaks_v2()) {
            let update = CurrentModeUpdate::new(mode);
            session
                .update(SessionUpdate::CurrentModeUpdate(update))
                .await?;
        }
        Ok(shown)
    }

    /// Sets the option of a category, for clients that do not know it as one.
    async fn set_by_category(
        &self,
        session: &SessionId,
        category: &SessionConfigOptionCategory,
        value: &str,
    ) -> Result<()> {
        let session = self.session(session)?;
        let option = config::option_of(&session.config_options(), category)
            .ok_or_else(|| Error::invalid_params(format!("this session has no {category}s")))?;
        self.set_option(&session, &option, value.into(), false)
            .await?;
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

    async fn close(&self, id: &SessionId, v2: bool) -> Result<()> {
        let close = self.agent.close_session();
        if v2 {
            // Every agent of version 2 closes, and what is closed already stays so.
            let _ = self.forget(id).await;
        } else if close.is_some() {
            self.forget(id).await?;
        } else {
            return Err(self.not_found(v1::CloseSessionRequest::METHOD));
        }
        match close {
            Some(close) => close.close_session(id).await,
            None => Ok(()),
        }
    }

    async fn list(&self, request: ListSessionsRequest, v2: bool) -> Result<ListSessionsResponse> {
        match self.agent.list_sessions() {
            Some(list) => list.list_sessions(request).await,
            // Every agent of version 2 lists: what is open at least.
            None if v2 => {
                let sessions = self.sessions();
                let here = sessions
                    .values()
                    .filter(|s| request.cwd.as_deref().is_none_or(|cwd| cwd == s.cwd()));
                let mut infos: Vec<SessionInfo> = here
                    .map(|session| SessionInfo::new(session.id(), session.cwd()))
                    .collect();
                infos.sort_by(|a, b| a.session_id.cmp(&b.session_id));
                Ok(ListSessionsResponse::new(infos))
            }
            None => Err(self.not_found(ListSessionsRequest::METHOD)),
        }
    }

    async fn authenticate(&self, cx: &AuthContext, method: v1::AuthMethodId) -> Result<Answer> {
        let offered = self.agent.authentication();
        let Some(authentication) = offered else {
            return Err(self.not_found(v1::AuthenticateRequest::METHOD));
        };
        let known = authentication
            .methods()
            .into_iter()
            .find(|known| known.id_and_name().is_some_and(|(id, _)| id == method));
        match known {
            None => {
                return Err(Error::invalid_params(format!(
                    "there is no authentication method {method}"
                )));
            }
            Some(v1::AuthMethod::Terminal(_)) => {
                return Err(Error::invalid_params(format!(
                    "{method} is done by running the agent in a terminal"
                )));
            }
            Some(_) => {}
        }
        authentication.authenticate(cx, &method).await?;
        Ok(if cx.client().speaks_v2() {
            v2_answer!(Login(v2::LoginAuthResponse::new()))
        } else {
            v1_answer!(Authenticate(AuthenticateResponse::new()))
        })
    }

    async fn logout(&self, v2: bool) -> Result<Answer> {
        // In version 2 whoever authenticates also ends it.
        let authentication = self.agent.authentication();
        let Some(authentication) = authentication.filter(|a| v2 || a.can_logout()) else {
            return Err(self.not_found(v1::LogoutRequest::METHOD));
        };
        authentication.logout().await?;
        Ok(if v2 {
            v2_answer!(Logout(v2::LogoutAuthResponse::new()))
        } else {
            v1_answer!(Logout(LogoutResponse::new()))
        })
    }

    #[allow(clippy::unused_self, reason = "reads as what it is")]
    fn not_found(&self, method: &str) -> Error {
        Error::Rpc(jsonrpc::Error::method_not_found(method))
    }

    /// Does what takes no place in an order of its own.
    async fn call(&self, call: Call, cx: &AuthContext) -> Result<Answer> {
        let v2 = cx.client().speaks_v2();
        Ok(match call {
            Call::Authenticate(method) => self.authenticate(cx, method).await?,
            Call::Logout => self.logout(v2).await?,
            Call::List(request) => {
                let page = self.list(request, v2).await?;
                if v2 {
                    v2_answer!(ListSessions(page))
                } else {
                    v1_answer!(ListSessions(page))
                }
            }
            Call::Close(request) => {
                self.close(&request.session_id, v2).await?;
                v1_answer!(CloseSession(CloseSessionResponse::new()))
            }
            Call::Delete(request) => {
                let delete = self.agent.delete_session();
                let delete =
                    delete.ok_or_else(|| self.not_found(v1::DeleteSessionRequest::METHOD))?;
                // A session that is not open can be deleted as well.
                let _ = self.forget(&request.session_id).await;
                delete.delete_session(&request.session_id).await?;
                v1_answer!(DeleteSession(DeleteSessionResponse::new()))
            }
            Call::SetMode(session, mode) => {
                let category = SessionConfigOptionCategory::Mode;
                self.set_by_category(&session, &category, &mode).await?;
                v1_answer!(SetSessionMode(SetSessionModeResponse::new()))
            }
            Call::SetModel(session, model) => {
                let category = SessionConfigOptionCategory::Model;
                self.set_by_category(&session, &category, &model).await?;
                v1_answer!(SetSessionModel(SetSessionModelResponse::new()))
            }
            Call::SetOption(session, option, value) => {
                let session = self.session(&session)?;
                let options = self.set_option(&session, &option, value, true).await?;
                if v2 {
                    let options = convert::options_to_v2(options);
                    let answer = v2::SetSessionConfigOptionResponse::new(options);
                    v2_answer!(SetSessionConfigOption(answer))
                } else {
                    let answer = SetSessionConfigOptionResponse::new(options);
                    v1_answer!(SetSessionConfigOption(answer))
                }
            }
            Call::CancelToolCall(session, tool_call) => {
                let session = self.session(&session)?;
                let Some(work) = self.agent.cancel_work() else {
                    return Err(not_cancellable("tool call", tool_call.as_str()));
                };
                work.cancel_tool_call(&session, &tool_call).await?;
                v2_answer!(CancelToolCall(v2::CancelToolCallResponse::new()))
            }
            Call::CancelTerminal(session, terminal) => {
                let session = self.session(&session)?;
                let Some(work) = self.agent.cancel_work() else {
                    return Err(not_cancellable("terminal", terminal.as_str()));
                };
                work.cancel_terminal(&session, &terminal).await?;
                v2_answer!(CancelTerminal(v2::CancelTerminalResponse::new()))
            }
            Call::Extension(Extension { method, params }) => {
                let conn = cx.connection();
                let answer = self.agent.extension_request(conn, &method, params).await?;
                v1_answer!(Extension(answer))
            }
            Call::Prompt(_) | Call::NewSession(_) | Call::Reopen(..) | Call::Fork(..) => {
                return Err(Error::internal("it has been worked on elsewhere"));
            }
        })
    }
}

/// It was never said that it can be cancelled.
fn not_cancellable(what: &str, id: &str) -> Error {
    Error::invalid_params(format!("the {what} {id} cannot be cancelled"))
}

impl<A: Agent> Handler for AgentSide<A> {
    type Event = (Connection, Extension);

    const NOISE: NoisePolicy = NoisePolicy::Answer;

    fn request(self: &Arc<Self>, method: &str, params: Option<&RawValue>, responder: Responder) {
        let side = Arc::clone(self);
        if method == InitializeRequest::METHOD {
            let answer = initialize(&self.agent, self.latest, params).map(|(client, answer)| {
                let _ = self.client.set(client);
                answer
            });
            return responder.spawn(async move { Ok(answer?) });
        }
        let client = self.client();
        let version = client.as_ref().map_or(ProtocolVersion::V1, |c| c.version());
        let call = match Call::read(version, method, params) {
            Ok(call) => call,
            Err(error) => return responder.spawn(async move { Err::<(), _>(error) }),
        };
        let client = match (client, &call) {
            (Ok(client), _) => client,
            // Extensions may have a beginning of their own.
            (Err(_), Call::Extension(_)) => Arc::default(),
            (Err(error), _) => return responder.spawn(async move { Err::<(), _>(error) }),
        };
        let method = method.to_owned();
        match call {
            Call::Prompt(call) => {
                let conn = responder.connection().clone();
                self.prompt(call, &conn, responder);
            }
            Call::NewSession(setup) => {
                responder.work(async move |responder| side.new_session(setup, responder).await);
            }
            Call::Reopen(id, setup, way) => responder.work(async move |responder| {
                side.reopen(id, setup, way, &method, responder).await;
            }),
            Call::Fork(id, setup) => responder.work(async move |responder| {
                side.fork(id, setup, &method, responder).await;
            }),
            call => {
                let cx = AuthContext::new(&responder, client);
                responder.spawn(async move { side.call(call, &cx).await });
            }
        }
    }

    fn notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Self::Event> {
        // Both versions have the same ones.
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

    fn closed(&self, _: &CloseReason) {
        // Sessions hold the connection: without this neither would ever be freed.
        let sessions = std::mem::take(&mut *self.sessions());
        for session in sessions.values() {
            session.cancel();
        }
    }
}
