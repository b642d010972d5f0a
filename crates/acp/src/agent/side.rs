//! The agent's side of a connection, which dispatches the client's messages to the agent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use acp_wire::v1::{
    self, ClientNotification, Extension, InitializeRequest, ProtocolVersion, SessionId,
};
use acp_wire::{ReadError, Request, jsonrpc, v2};
use serde_json::value::RawValue;

use super::Agent;
use super::initialize::{ClientInfo, initialize};
use super::session::Session;
use crate::connection::{Connection, Driver, Handler, Limits, NoisePolicy, Responder};
use crate::error::{CloseReason, Error, Result};
use crate::extension::ExtensionNotification;
use crate::options::Options;
use crate::pending_request::PendingRequest;
use crate::transport::Transport;
#[cfg(feature = "stdio")]
use crate::transport::stdio;

/// Serves the client on stdin and stdout until it closes its end of the connection.
///
/// # Errors
/// stdin or stdout cannot be taken over, or reading or writing fails.
#[cfg(feature = "stdio")]
pub async fn serve_stdio<A: Agent>(agent: A) -> std::io::Result<()> {
    serve(stdio()?, agent).await
}

/// Serves a client until it closes its end of the connection. Requests in flight then have two seconds to finish
/// ([`Limits::linger`]).
///
/// # Errors
/// Reading or writing fails.
pub async fn serve<A: Agent>(transport: Transport, agent: A) -> std::io::Result<()> {
    serve_with(transport, agent, Options::new().limits(default_limits())).await
}

/// Serves a client like [`serve`], but with custom options. Start from [`default_limits`] for the limits, because
/// [`Limits::linger`] is zero by default. [`Options::draft_version_2`] lets clients use the draft of version 2.
///
/// # Errors
/// Reading or writing fails.
pub async fn serve_with<A: Agent>(
    transport: Transport,
    agent: A,
    options: impl Into<Options>,
) -> std::io::Result<()> {
    let (_, driver) = start(transport, agent, options);
    to_serve_result(driver.await)
}

/// Converts the reason why a connection ended into the result of [`serve`].
pub(super) fn to_serve_result(end: CloseReason) -> std::io::Result<()> {
    match end {
        // The client exited, and a message was written before that was noticed.
        CloseReason::Transport(e) if e.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        CloseReason::Transport(e) => Err(std::io::Error::new(e.kind(), e.to_string())),
        CloseReason::Local | CloseReason::Peer => Ok(()),
    }
}

/// Starts a connection to a client and returns it with its driver, for programs that do other work as well. The
/// options, including [`Limits::linger`], are used as given.
pub fn start<A: Agent>(
    transport: Transport,
    agent: A,
    options: impl Into<Options>,
) -> (Connection, Driver) {
    start_shared(transport, Arc::new(agent), options.into())
}

pub(super) fn start_shared<A: Agent>(
    transport: Transport,
    agent: Arc<A>,
    options: Options,
) -> (Connection, Driver) {
    let side = AgentSide {
        agent,
        latest: options.latest(),
        client: OnceLock::new(),
        sessions: Mutex::default(),
    };
    Connection::new(transport, options, Arc::new(side))
}

/// Returns the limits that [`serve`] uses. They give a client that closes its end of the connection time to receive its
/// responses.
#[must_use]
pub fn default_limits() -> Limits {
    Limits {
        linger: Duration::from_secs(2),
        ..Limits::default()
    }
}

pub(crate) struct AgentSide<A: Agent> {
    pub(crate) agent: Arc<A>,
    latest: ProtocolVersion,
    client: OnceLock<Arc<ClientInfo>>,
    sessions: Mutex<HashMap<SessionId, AgentSessionEntry<A>>>,
}

/// An entry in the table of sessions that are open or being opened.
pub(crate) struct AgentSessionEntry<A: Agent> {
    pub(crate) session: Session,
    /// The agent's state, once the session is open. This is the only strong reference to it, because the agent may
    /// store a [`Session`] in the state.
    pub(crate) state: Option<Arc<A::State>>,
}

impl<A: Agent> AgentSide<A> {
    pub(crate) fn lock_sessions(&self) -> MutexGuard<'_, HashMap<SessionId, AgentSessionEntry<A>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn session(&self, id: &SessionId) -> Result<Session> {
        let session = self
            .lock_sessions()
            .get(id)
            .map(|entry| entry.session.clone());
        session.ok_or_else(|| {
            let mut error = jsonrpc::Error::resource_not_found(format!("session {id}"));
            error.data = Some(serde_json::json!({ "sessionId": id.as_str() }));
            Error::Rpc(error)
        })
    }

    /// Returns an open session and the agent's state for it.
    pub(crate) fn open_session(&self, id: &SessionId) -> Result<(Session, Arc<A::State>)> {
        let session = self.session(id)?;
        let state = session.require_agent_state::<A>()?;
        Ok((session, state))
    }

    pub(crate) fn client(&self) -> Result<Arc<ClientInfo>> {
        self.client.get().cloned().ok_or_else(|| {
            let message = "Invalid request: the first request must be initialize";
            Error::Rpc(jsonrpc::Error::new(
                jsonrpc::Error::INVALID_REQUEST,
                message,
            ))
        })
    }

    /// Returns the client's name, version and capabilities, or the defaults before `initialize`.
    pub(crate) fn client_info(&self) -> Arc<ClientInfo> {
        self.client.get().cloned().unwrap_or_default()
    }

    /// Cancels a session's turn, removes the session, and returns the agent's state for it.
    pub(crate) async fn remove_session(&self, id: &SessionId) -> Result<Option<Arc<A::State>>> {
        let session = self.session(id)?;
        session.cancel();
        drop(session.lock_turn().await);
        let removed = self.lock_sessions().remove(id);
        Ok(removed.and_then(|entry| entry.state))
    }
}

/// Returns the request, or an error if the request is invalid or arrived before `initialize`.
fn require_initialized<R>(request: Result<R, ReadError>, begun: Result<()>) -> Result<R> {
    let request = request?;
    begun.map(|()| request)
}

impl<A: Agent> Handler for AgentSide<A> {
    type Event = (Connection, Extension);

    const NOISE: NoisePolicy = NoisePolicy::Respond;

    fn handle_request(
        self: &Arc<Self>,
        method: &str,
        params: Option<&RawValue>,
        responder: Responder,
    ) {
        if method == InitializeRequest::METHOD {
            let answer = initialize(self, self.latest, params).map(|(client, answer)| {
                let _ = self.client.set(client);
                answer
            });
            return responder.spawn(async move { Ok(answer?) });
        }
        // Extensions may be used before `initialize`.
        let begun = match method.starts_with('_') {
            true => Ok(()),
            false => self.client().map(drop),
        };
        let pending = PendingRequest::new(self, responder);
        if self.client_info().is_v2() {
            match require_initialized(v2::ClientRequest::read(method, params), begun) {
                Ok(request) => request.handle(pending),
                Err(error) => pending.reject(error),
            }
        } else {
            match require_initialized(v1::ClientRequest::read(method, params), begun) {
                Ok(request) => request.handle(pending),
                Err(error) => pending.reject(error),
            }
        }
    }

    fn handle_notification(
        self: &Arc<Self>,
        conn: &Connection,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Self::Event> {
        // Both versions have the same notifications.
        match ClientNotification::read(method, params) {
            Ok(ClientNotification::Cancel(cancel)) => {
                match self.session(&cancel.session_id) {
                    Ok(session) => session.cancel(),
                    Err(error) => tracing::warn!(%error, "ignoring an invalid session/cancel"),
                }
                None
            }
            Ok(ClientNotification::Extension(extension)) => Some((conn.clone(), extension)),
            Ok(_) => None,
            Err(error) => {
                conn.0.counters.count_unread_notification();
                tracing::warn!(%error, "ignoring an invalid notification");
                None
            }
        }
    }

    async fn deliver(&self, (conn, extension): Self::Event) {
        let notification = ExtensionNotification::new(extension);
        self.agent.extension_notification(&conn, notification).await;
    }

    fn on_closed(&self, _: &CloseReason) {
        // Sessions hold the connection. Without this, neither sessions nor connection would be freed.
        let sessions = std::mem::take(&mut *self.lock_sessions());
        for entry in sessions.values() {
            entry.session.cancel();
        }
    }
}
