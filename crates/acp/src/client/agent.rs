//! The agent at the other end.

use std::sync::Arc;

use acp_wire::v1::{
    AgentCapabilities, AuthMethod, AuthMethodId, AuthenticateRequest, DeleteSessionRequest,
    Implementation, InitializeRequest, InitializeResponse, ListSessionsRequest,
    ListSessionsResponse, LoadSessionRequest, LogoutRequest, McpServer, NewSessionRequest,
    ProtocolVersion, ResumeSessionRequest, SessionId,
};

use super::Client;
use super::mcp_servers::OwnServers;
use super::request::not_offered;
use super::session::Session;
use super::sessions::Sessions;
use super::side::ClientSide;
use crate::connection::{Ask, Connection, Limits};
use crate::error::{CloseReason, Error, Result};
use crate::session_setup::SessionSetup;
use crate::transport::Transport;

/// Connects to an agent and negotiates: the specification's page Initialization.
///
/// # Errors
/// The agent answers with an error, speaks another version, or the connection ends.
pub async fn connect<C: Client>(transport: Transport, client: C) -> Result<AgentConnection> {
    connect_with(transport, client, Limits::default()).await
}

/// As [`connect`], with limits of your own.
///
/// # Errors
/// As [`connect`].
pub async fn connect_with<C: Client>(
    transport: Transport,
    client: C,
    limits: Limits,
) -> Result<AgentConnection> {
    let client = Arc::new(client);
    let sessions = Arc::new(Sessions::new({
        let client = Arc::clone(&client);
        move |id, thread| client.session_seen(id, thread)
    }));
    let side = Arc::new(ClientSide {
        client,
        sessions: Arc::clone(&sessions),
    });
    let mut request =
        InitializeRequest::new(ProtocolVersion::V1).client_capabilities(side.capabilities());
    if let Some(info) = side.client.info() {
        request = request.client_info(info);
    }
    let own_servers = OwnServers::of(&side.client);
    // Until the connection is given away, an early return ends it.
    let conn = OpenConnection(Some(Connection::start(transport, limits, side)));
    let answer = conn.get().request(&request).await?;
    if answer.protocol_version != ProtocolVersion::V1 {
        return Err(Error::Version {
            theirs: answer.protocol_version.0,
            ours: ProtocolVersion::V1.0,
        });
    }
    let inner = Inner {
        conn,
        sessions,
        own_servers,
        answer,
    };
    Ok(AgentConnection(Arc::new(inner)))
}

/// The agent at the other end of a connection. Cloning it is cheap; the connection ends when the
/// last clone, its sessions included, is dropped.
#[derive(Clone)]
pub struct AgentConnection(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) conn: OpenConnection,
    pub(crate) sessions: Arc<Sessions>,
    own_servers: OwnServers,
    answer: InitializeResponse,
}

/// A connection that ends when this is dropped.
pub(crate) struct OpenConnection(Option<Connection>);

impl OpenConnection {
    #[allow(clippy::expect_used, reason = "it is there until drop")]
    pub(crate) fn get(&self) -> &Connection {
        self.0.as_ref().expect("there until drop")
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            conn.close();
        }
    }
}

impl std::fmt::Debug for AgentConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentConnection")
            .field("initialize", &self.0.answer)
            .finish_non_exhaustive()
    }
}

impl AgentConnection {
    /// Who the agent is, if it said.
    #[must_use]
    pub fn info(&self) -> Option<&Implementation> {
        self.0.answer.agent_info.as_ref()
    }

    /// What the agent can do.
    #[must_use]
    pub fn capabilities(&self) -> &AgentCapabilities {
        &self.0.answer.agent_capabilities
    }

    /// How one can authenticate.
    #[must_use]
    pub fn auth_methods(&self) -> &[AuthMethod] {
        &self.0.answer.auth_methods
    }

    /// The connection, for messages this type has no method for.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.0.conn.get()
    }

    /// Authenticates by one of [`auth_methods`](Self::auth_methods).
    ///
    /// # Errors
    /// The agent's error, or the end of the connection.
    pub async fn authenticate(&self, method: impl Into<AuthMethodId>) -> Result<()> {
        self.connection()
            .request(&AuthenticateRequest::new(method))
            .await
            .map(drop)
    }

    /// Ends the authentication.
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn logout(&self) -> Result<()> {
        if self.capabilities().auth.logout.is_none() {
            return Err(not_offered("auth.logout"));
        }
        self.connection()
            .request(&LogoutRequest::new())
            .await
            .map(drop)
    }

    /// Opens a new session.
    ///
    /// # Errors
    /// The agent's error ([`Error::is_auth_required`] when one must authenticate first), an MCP
    /// server it does not take, or the end of the connection.
    pub async fn new_session(&self, setup: impl Into<SessionSetup>) -> Result<Session> {
        let setup = self.0.own_servers.join(setup.into());
        self.check(&setup)?;
        let mut request = NewSessionRequest::new(setup.cwd, setup.mcp_servers)
            .additional_directories(setup.additional_directories);
        request.meta = setup.meta;
        let sessions = Arc::clone(&self.0.sessions);
        let answer = self
            .connection()
            .request_with(&request, Ask::default(), move |answer| {
                if let Ok(answer) = answer {
                    let options = answer.config_options.as_deref();
                    sessions.opened(&answer.session_id, answer.modes.as_ref(), options);
                }
            })
            .await?;
        Ok(self.session(answer.session_id))
    }

    /// Opens an old session and has it replayed; its thread is complete when this returns.
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn load_session(
        &self,
        id: impl Into<SessionId>,
        setup: impl Into<SessionSetup>,
    ) -> Result<Session> {
        let (id, setup) = (id.into(), self.0.own_servers.join(setup.into()));
        if !self.capabilities().load_session {
            return Err(not_offered("loadSession"));
        }
        self.check(&setup)?;
        let mut request = LoadSessionRequest::new(&id, setup.cwd, setup.mcp_servers)
            .additional_directories(setup.additional_directories);
        request.meta = setup.meta;
        let before = self.0.sessions.claim_for_replay(&id);
        let (sessions, opened) = (Arc::clone(&self.0.sessions), id.clone());
        let ask = Ask {
            ordered: true,
            ..Ask::default()
        };
        self.connection()
            .request_with(&request, ask, move |answer| match answer {
                Ok(answer) => {
                    let options = answer.config_options.as_deref();
                    sessions.opened(&opened, answer.modes.as_ref(), options);
                }
                Err(_) => sessions.restore(&opened, before),
            })
            .await?;
        Ok(self.session(id))
    }

    /// Opens an old session without having it replayed.
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn resume_session(
        &self,
        id: impl Into<SessionId>,
        setup: impl Into<SessionSetup>,
    ) -> Result<Session> {
        let (id, setup) = (id.into(), self.0.own_servers.join(setup.into()));
        if self.capabilities().session_capabilities.resume.is_none() {
            return Err(not_offered("sessionCapabilities.resume"));
        }
        self.check(&setup)?;
        let mut request = ResumeSessionRequest::new(&id, setup.cwd)
            .mcp_servers(setup.mcp_servers)
            .additional_directories(setup.additional_directories);
        request.meta = setup.meta;
        let (sessions, opened) = (Arc::clone(&self.0.sessions), id.clone());
        self.connection()
            .request_with(&request, Ask::default(), move |answer| {
                if let Ok(answer) = answer {
                    let options = answer.config_options.as_deref();
                    sessions.opened(&opened, answer.modes.as_ref(), options);
                }
            })
            .await?;
        Ok(self.session(id))
    }

    /// A page of the sessions there are.
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn list_sessions(
        &self,
        request: &ListSessionsRequest,
    ) -> Result<ListSessionsResponse> {
        if self.capabilities().session_capabilities.list.is_none() {
            return Err(not_offered("sessionCapabilities.list"));
        }
        self.connection().request(request).await
    }

    /// Deletes a session for good.
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn delete_session(&self, id: &SessionId) -> Result<()> {
        if self.capabilities().session_capabilities.delete.is_none() {
            return Err(not_offered("sessionCapabilities.delete"));
        }
        self.connection()
            .request(&DeleteSessionRequest::new(id))
            .await?;
        self.0.sessions.remove(id);
        Ok(())
    }

    /// Closes the connection; an agent that runs as a child sees its stdin end.
    pub fn close(&self) {
        self.connection().close();
    }

    /// Waits until the connection has ended.
    pub async fn closed(&self) -> CloseReason {
        self.connection().closed().await
    }

    fn session(&self, id: SessionId) -> Session {
        let thread = self.0.sessions.claim(&id);
        Session::new(self.clone(), id, thread)
    }

    fn check(&self, setup: &SessionSetup) -> Result<()> {
        let offered = &self.capabilities().mcp_capabilities;
        for server in &setup.mcp_servers {
            match server {
                McpServer::Http(_) if !offered.http => {
                    return Err(not_offered("mcpCapabilities.http"));
                }
                McpServer::Sse(_) if !offered.sse => {
                    return Err(not_offered("mcpCapabilities.sse"));
                }
                _ => {}
            }
        }
        let roots = self
            .capabilities()
            .session_capabilities
            .additional_directories
            .is_some();
        if !setup.additional_directories.is_empty() && !roots {
            return Err(not_offered("sessionCapabilities.additionalDirectories"));
        }
        Ok(())
    }
}
