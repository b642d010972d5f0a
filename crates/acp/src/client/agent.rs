//! A client's connection to an agent.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use acp_wire::v1::{
    self, AgentCapabilities, AuthMethod, AuthMethodId, AuthenticateRequest, DeleteSessionRequest,
    Implementation, ListSessionsRequest, ListSessionsResponse, LogoutRequest, McpServer,
    ProtocolVersion, SessionId,
};
use acp_wire::{Request, extensions, v2};

use super::Client;
use super::initialize::{NegotiatedCapabilities, initialize};
use super::mcp_servers::ClientMcpServers;
use super::open_session::SessionReopening;
use super::session::ClientSession;
use super::sessions::ClientSessions;
use super::side::ClientSide;
use crate::capabilities::{agent_capability_error, check_offered, missing_mcp_capability};
use crate::connection::{Connection, Driver};
use crate::error::{CloseReason, Error, Result};
use crate::options::Options;
use crate::session_setup::{SessionSetup, SystemPromptError};
use crate::transport::Transport;

/// Connects to an agent. Returns a handshake to await, which negotiates the version and the capabilities, and a driver
/// to poll concurrently. See the specification's page "Initialization".
///
/// ```
/// # use acp::testing::NoopClient;
/// # async fn example(transport: acp::Transport) -> acp::Result<()> {
/// let (handshake, driver) = acp::client::connect(transport, NoopClient);
/// tokio::spawn(driver);
/// let agent = handshake.await?;
/// # let _ = agent;
/// # Ok(())
/// # }
/// ```
pub fn connect<C: Client>(transport: Transport, client: C) -> (Handshake, Driver) {
    connect_with(transport, client, Options::default())
}

/// Connects to an agent like [`connect`], with options such as limits or the version 2 draft
/// ([`Options::draft_version_2`]).
pub fn connect_with<C: Client>(
    transport: Transport,
    client: C,
    options: impl Into<Options>,
) -> (Handshake, Driver) {
    connect_shared(transport, Arc::new(client), options.into())
}

pub(super) fn connect_shared<C: Client>(
    transport: Transport,
    client: Arc<C>,
    options: Options,
) -> (Handshake, Driver) {
    let sessions = Arc::new(ClientSessions::new(options.limits.thread, &client));
    let spoken = Arc::new(OnceLock::new());
    let side = Arc::new(ClientSide {
        client,
        sessions: Arc::clone(&sessions),
        negotiated_version: Arc::clone(&spoken),
    });
    let (capabilities, info) = (side.capabilities(), side.client.info());
    let own_servers = ClientMcpServers::from_client(&side.client);
    let latest = options.latest();
    let (conn, driver) = Connection::new(transport, options, side);
    // Until the connection is returned, this guard closes it on an early return or when the handshake is dropped.
    let conn = ConnectionGuard(Some(conn));
    let handshake = async move {
        let agreed = initialize(conn.get(), latest, capabilities, info, spoken).await?;
        let inner = AgentConnectionInner {
            conn,
            sessions,
            mcp_servers: own_servers,
            negotiated: agreed,
        };
        Ok(AgentConnection(Arc::new(inner)))
    };
    (Handshake(Box::pin(handshake)), driver)
}

/// A future that sends `initialize` and resolves to the connection once the agent has responded. The driver must be
/// polled concurrently. Dropping the handshake early closes the connection.
///
/// # Errors
/// The agent responds with an error or speaks another version, or the connection ends.
#[must_use = "a handshake does nothing unless it is awaited"]
pub struct Handshake(Pin<Box<dyn Future<Output = Result<AgentConnection>> + Send>>);

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake").finish_non_exhaustive()
    }
}

impl Future for Handshake {
    type Output = Result<AgentConnection>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

/// A connection to an agent. It is cheap to clone, and closes when the last clone and the last session are dropped.
#[derive(Clone)]
pub struct AgentConnection(pub(crate) Arc<AgentConnectionInner>);

pub(crate) struct AgentConnectionInner {
    pub(crate) conn: ConnectionGuard,
    pub(crate) sessions: Arc<ClientSessions>,
    mcp_servers: ClientMcpServers,
    pub(super) negotiated: NegotiatedCapabilities,
}

/// A guard that closes its connection when dropped.
pub(crate) struct ConnectionGuard(Option<Connection>);

impl ConnectionGuard {
    #[allow(
        clippy::expect_used,
        reason = "the connection exists until the guard is dropped"
    )]
    pub(crate) fn get(&self) -> &Connection {
        self.0
            .as_ref()
            .expect("the connection exists until the guard is dropped")
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        if let Some(conn) = self.0.take() {
            conn.close();
        }
    }
}

impl std::fmt::Debug for AgentConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentConnection")
            .field("agreed", &self.0.negotiated)
            .finish_non_exhaustive()
    }
}

impl AgentConnection {
    /// Returns the negotiated protocol version.
    #[must_use]
    pub fn version(&self) -> ProtocolVersion {
        self.0.negotiated.version
    }

    pub(super) fn speaks_v2(&self) -> bool {
        self.version() == ProtocolVersion::V2
    }

    /// Returns the agent's name and version, if it sent them.
    #[must_use]
    pub fn info(&self) -> Option<&Implementation> {
        self.0.negotiated.info.as_ref()
    }

    /// Returns the agent's capabilities, always in version 1 form.
    #[must_use]
    pub fn capabilities(&self) -> &AgentCapabilities {
        &self.0.negotiated.capabilities
    }

    /// Returns the agent's auth methods, as sent in `initialize`.
    #[must_use]
    pub fn auth_methods(&self) -> &[AuthMethod] {
        &self.0.negotiated.auth_methods
    }

    /// Returns the underlying connection, for sending messages that this type has no method for.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.0.conn.get()
    }

    /// Authenticates with one of the [`auth_methods`](Self::auth_methods). For a method of type `terminal`, run the
    /// agent's program in a terminal instead. See the specification's page "Authentication".
    ///
    /// # Errors
    /// The agent has no such method, or its type is `terminal`; the agent returned an error; or the connection has
    /// ended.
    pub async fn authenticate(&self, method: impl Into<AuthMethodId>) -> Result<()> {
        let method = method.into();
        let known = |m: &&AuthMethod| m.id_and_name().is_some_and(|(id, _)| id == method);
        match self.auth_methods().iter().find(known) {
            Some(AuthMethod::Terminal(_)) => {
                return Err(Error::InvalidRequest(format!(
                    "to use the auth method {method}, run the agent in a terminal with the method's arguments"
                )));
            }
            // Some agents accept methods that they did not list. Version 2 does not allow this.
            None if self.speaks_v2() => {
                return Err(agent_capability_error(format!("auth method {method}")));
            }
            _ => {}
        }
        if self.speaks_v2() {
            let request = v2::LoginAuthRequest::new(method);
            return self.connection().request(&request).await.map(drop);
        }
        let request = AuthenticateRequest::new(method);
        self.connection().request(&request).await.map(drop)
    }

    /// Logs out of the agent (`logout`; in version 2, `auth/logout`).
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn logout(&self) -> Result<()> {
        self.require_method(LogoutRequest::METHOD)?;
        if self.speaks_v2() {
            let request = v2::LogoutAuthRequest::new();
            return self.connection().request(&request).await.map(drop);
        }
        let request = LogoutRequest::new();
        self.connection().request(&request).await.map(drop)
    }

    /// Opens a new session (`session/new`). See "Creating a Session" on the specification's page "Session Setup".
    ///
    /// # Errors
    /// The agent returned an error ([`Error::is_auth_required`] if it requires authentication first), it does not
    /// support the transport of an MCP server, or the connection has ended.
    pub async fn new_session(&self, setup: impl Into<SessionSetup>) -> Result<ClientSession> {
        let setup = self.prepare_setup(setup.into())?;
        if self.speaks_v2() {
            return self.open(&setup.new_v2(), None).await;
        }
        self.open(&setup.new_v1(), None).await
    }

    /// Opens an existing session with a replay (`session/load`; in version 2, `session/resume` with `replayFrom`). The
    /// thread is complete when this method returns. See "Loading Sessions" on the specification's page "Session Setup".
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn load_session(
        &self,
        id: impl Into<SessionId>,
        setup: impl Into<SessionSetup>,
    ) -> Result<ClientSession> {
        let id = id.into();
        self.require_method(v1::LoadSessionRequest::METHOD)?;
        let setup = self.prepare_setup(setup.into())?;
        if self.speaks_v2() {
            let request = setup.resume_v2(&id).replay_from(v2::ReplayFrom::start());
            return self
                .open(&request, Some(SessionReopening::replay(self, id)))
                .await;
        }
        let request = setup.load_v1(&id);
        self.open(&request, Some(SessionReopening::replay(self, id)))
            .await
    }

    /// Opens an existing session without a replay (`session/resume`).
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn resume_session(
        &self,
        id: impl Into<SessionId>,
        setup: impl Into<SessionSetup>,
    ) -> Result<ClientSession> {
        let id = id.into();
        self.require_method(v1::ResumeSessionRequest::METHOD)?;
        let setup = self.prepare_setup(setup.into())?;
        if self.speaks_v2() {
            let request = setup.resume_v2(&id);
            return self
                .open(&request, Some(SessionReopening::resume(id)))
                .await;
        }
        let request = setup.resume_v1(&id);
        self.open(&request, Some(SessionReopening::resume(id)))
            .await
    }

    /// Returns a page of the agent's sessions (`session/list`). For the next page, pass the `next_cursor` of the
    /// response.
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn list_sessions(
        &self,
        request: &ListSessionsRequest,
    ) -> Result<ListSessionsResponse> {
        self.require_method(v1::ListSessionsRequest::METHOD)?;
        if request.archived.is_some() {
            self.require_method(v1::ArchiveSessionRequest::METHOD)?;
        }
        self.connection().request(request).await
    }

    /// Deletes a session permanently (`session/delete`).
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn delete_session(&self, id: &SessionId) -> Result<()> {
        self.require_method(v1::DeleteSessionRequest::METHOD)?;
        self.connection()
            .request(&DeleteSessionRequest::new(id))
            .await?;
        self.0.sessions.remove(id);
        Ok(())
    }

    /// Closes the connection. If the agent is a child process, this closes its stdin.
    pub fn close(&self) {
        self.connection().close();
    }

    /// Waits until the connection has closed and all its tasks have ended, and returns the reason.
    pub async fn closed(&self) -> CloseReason {
        self.connection().closed().await
    }

    pub(super) fn session(&self, id: SessionId) -> ClientSession {
        let thread = self.0.sessions.mark_opened(&id);
        ClientSession::new(self.clone(), id, thread)
    }

    /// Checks that the agent supports a method, given by its version 1 name.
    ///
    /// # Errors
    /// The agent does not support the method: [`Error::Unsupported`].
    pub(super) fn require_method(&self, method: &str) -> Result<()> {
        check_offered(&self.0.negotiated.capabilities_json, v1::method(method))
            .map_err(agent_capability_error)
    }

    /// Checks that the agent supports an extension method.
    ///
    /// # Errors
    /// The agent does not support the method: [`Error::Unsupported`].
    pub(super) fn require_extension(&self, method: &str) -> Result<()> {
        check_offered(&self.0.negotiated.meta, extensions::method(method))
            .map_err(|missing| agent_capability_error(format!("_meta.{missing}")))
    }

    /// Checks that the agent supports everything in a session setup. Also adds the client's own MCP servers, except
    /// those that the agent does not support.
    pub(super) fn prepare_setup(&self, setup: SessionSetup) -> Result<SessionSetup> {
        if !self.0.negotiated.has_sessions {
            return Err(agent_capability_error("session"));
        }
        setup.check_paths().map_err(Error::InvalidRequest)?;
        if let Some(missing) = setup
            .mcp_servers
            .iter()
            .find_map(|s| self.missing_mcp_capability(s))
        {
            return Err(agent_capability_error(missing));
        }
        let sessions = &self.capabilities().session_capabilities;
        let roots = sessions.additional_directories.is_some();
        if !setup.additional_directories.is_empty() && !roots {
            return Err(agent_capability_error(
                "sessionCapabilities.additionalDirectories",
            ));
        }
        setup
            .check_system_prompt(sessions.system_prompt.as_ref())
            .map_err(|error| match error {
                SystemPromptError::Unsupported(name) => agent_capability_error(name),
                SystemPromptError::Invalid(text) => Error::InvalidRequest(text),
            })?;
        let takes = |server: &McpServer| self.missing_mcp_capability(server).is_none();
        Ok(self.0.mcp_servers.add_to(setup, takes))
    }

    /// Returns the capability that an MCP server requires and the agent lacks, if any.
    fn missing_mcp_capability(&self, server: &McpServer) -> Option<String> {
        let offered = &self.capabilities().mcp_capabilities;
        let missing =
            missing_mcp_capability(offered, self.0.negotiated.supports_mcp_stdio, server)?;
        // The `stdio` capability exists only in version 2.
        Some(if missing == "stdio" {
            "session.mcp.stdio".to_owned()
        } else {
            format!("mcpCapabilities.{missing}")
        })
    }
}
