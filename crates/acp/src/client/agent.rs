//! The agent at the other end.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use acp_wire::v1::{
    self, AgentCapabilities, AuthMethod, AuthMethodId, AuthenticateRequest, DeleteSessionRequest,
    Implementation, ListSessionsRequest, ListSessionsResponse, LogoutRequest, McpServer,
    ProtocolVersion, SessionId,
};
use acp_wire::{Request, v2};

use super::Client;
use super::initialize::{NegotiatedCapabilities, initialize};
use super::mcp_servers::ClientMcpServers;
use super::open_session::SessionReopening;
use super::session::ClientSession;
use super::sessions::ClientSessions;
use super::side::ClientSide;
use crate::capabilities::{agent_capability_error, missing_mcp_capability};
use crate::connection::{Connection, Driver, RequestOptions};
use crate::error::{CloseReason, Error, Result};
use crate::options::Options;
use crate::session_setup::{SessionSetup, SystemPromptError};
use crate::transport::Transport;

/// Connects to an agent: gives a handshake to await, which negotiates (the specification's page Initialization), and a
/// driver to poll meanwhile.
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

/// As [`connect`], with limits of your own, or with an agent that may speak the draft of version 2
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
    // Until the connection is given away, an early return ends it, and so does dropping the handshake.
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

/// The beginning of a connection to an agent: it sends `initialize` and gives the connection when both sides have agreed.
/// The driver must be polled meanwhile. Dropped before that, it closes the connection.
///
/// # Errors
/// The agent answers with an error, speaks another version, or the connection ends.
#[must_use = "the agent is greeted when this is awaited"]
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

/// The agent at the other end of a connection. Cloning it is cheap; the connection ends when the
/// last clone, its sessions included, is dropped.
#[derive(Clone)]
pub struct AgentConnection(pub(crate) Arc<AgentConnectionInner>);

pub(crate) struct AgentConnectionInner {
    pub(crate) conn: ConnectionGuard,
    pub(crate) sessions: Arc<ClientSessions>,
    mcp_servers: ClientMcpServers,
    pub(super) negotiated: NegotiatedCapabilities,
}

/// A connection that ends when this is dropped.
pub(crate) struct ConnectionGuard(Option<Connection>);

impl ConnectionGuard {
    #[allow(clippy::expect_used, reason = "it is there until drop")]
    pub(crate) fn get(&self) -> &Connection {
        self.0.as_ref().expect("there until drop")
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
    /// The version of the protocol that is spoken.
    #[must_use]
    pub fn version(&self) -> ProtocolVersion {
        self.0.negotiated.version
    }

    pub(super) fn speaks_v2(&self) -> bool {
        self.version() == ProtocolVersion::V2
    }

    /// Who the agent is, if it said.
    #[must_use]
    pub fn info(&self) -> Option<&Implementation> {
        self.0.negotiated.info.as_ref()
    }

    /// What the agent can do, in the words of version 1 whichever it speaks.
    #[must_use]
    pub fn capabilities(&self) -> &AgentCapabilities {
        &self.0.negotiated.capabilities
    }

    /// How one can authenticate, as the agent said when it was connected to.
    #[must_use]
    pub fn auth_methods(&self) -> &[AuthMethod] {
        &self.0.negotiated.auth_methods
    }

    /// The connection, for messages this type has no method for.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.0.conn.get()
    }

    /// Authenticates by one of [`auth_methods`](Self::auth_methods): the specification's page
    /// Authentication. Not for methods of type `terminal`: for those the client runs the agent's
    /// program in a terminal.
    ///
    /// # Errors
    /// The agent has no such method, or it is one of type `terminal`; its error; the end of the
    /// connection.
    pub async fn authenticate(&self, method: impl Into<AuthMethodId>) -> Result<()> {
        let method = method.into();
        let known = |m: &&AuthMethod| m.id_and_name().is_some_and(|(id, _)| id == method);
        match self.auth_methods().iter().find(known) {
            Some(AuthMethod::Terminal(_)) => {
                return Err(Error::Invalid(format!(
                    "{method} is done in a terminal: run the agent with the arguments that the method names"
                )));
            }
            // Agents are known to take methods that they did not name; version 2 forbids to try.
            None if self.speaks_v2() => {
                return Err(agent_capability_error(format!("the method {method}")));
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

    /// Ends the authentication (`logout`; in version 2 `auth/logout`).
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn logout(&self) -> Result<()> {
        self.require(LogoutRequest::METHOD)?;
        if self.speaks_v2() {
            let request = v2::LogoutAuthRequest::new();
            return self.connection().request(&request).await.map(drop);
        }
        let request = LogoutRequest::new();
        self.connection().request(&request).await.map(drop)
    }

    /// Opens a new session (`session/new`): Session setup, "Creating a Session".
    ///
    /// # Errors
    /// The agent's error ([`Error::is_auth_required`] when one must authenticate first), an MCP
    /// server it does not take, or the end of the connection.
    pub async fn new_session(&self, setup: impl Into<SessionSetup>) -> Result<ClientSession> {
        let setup = self.check(setup.into())?;
        if self.speaks_v2() {
            return self
                .open(&setup.new_v2(), None, RequestOptions::default())
                .await;
        }
        self.open(&setup.new_v1(), None, RequestOptions::default())
            .await
    }

    /// Opens an old session and has it replayed (`session/load`; in version 2 `session/resume` with
    /// `replayFrom`): Session setup, "Loading Sessions". Its thread is complete when this returns.
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn load_session(
        &self,
        id: impl Into<SessionId>,
        setup: impl Into<SessionSetup>,
    ) -> Result<ClientSession> {
        let id = id.into();
        self.require(v1::LoadSessionRequest::METHOD)?;
        let setup = self.check(setup.into())?;
        // The replay comes ahead of the answer, and is seen ahead of it.
        let ask = RequestOptions {
            is_ordered: true,
            ..RequestOptions::default()
        };
        if self.speaks_v2() {
            let request = setup.resume_v2(&id).replay_from(v2::ReplayFrom::start());
            return self
                .open(&request, Some(SessionReopening::replay(self, id)), ask)
                .await;
        }
        let request = setup.load_v1(&id);
        self.open(&request, Some(SessionReopening::replay(self, id)), ask)
            .await
    }

    /// Opens an old session without having it replayed (`session/resume`).
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn resume_session(
        &self,
        id: impl Into<SessionId>,
        setup: impl Into<SessionSetup>,
    ) -> Result<ClientSession> {
        let id = id.into();
        self.require(v1::ResumeSessionRequest::METHOD)?;
        let setup = self.check(setup.into())?;
        if self.speaks_v2() {
            let request = setup.resume_v2(&id);
            return self
                .open(
                    &request,
                    Some(SessionReopening::resume(id)),
                    RequestOptions::default(),
                )
                .await;
        }
        let request = setup.resume_v1(&id);
        self.open(
            &request,
            Some(SessionReopening::resume(id)),
            RequestOptions::default(),
        )
        .await
    }

    /// A page of the sessions there are (`session/list`); the answer's `next_cursor` is for the request of
    /// the next.
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn list_sessions(
        &self,
        request: &ListSessionsRequest,
    ) -> Result<ListSessionsResponse> {
        self.require(v1::ListSessionsRequest::METHOD)?;
        if request.archived.is_some() {
            self.require(v1::ArchiveSessionRequest::METHOD)?;
        }
        self.connection().request(request).await
    }

    /// Deletes a session for good (`session/delete`).
    ///
    /// # Errors
    /// The agent does not offer it, its error, or the end of the connection.
    pub async fn delete_session(&self, id: &SessionId) -> Result<()> {
        self.require(v1::DeleteSessionRequest::METHOD)?;
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

    /// Waits until the connection has ended and nothing of it runs any more, and tells why it did.
    pub async fn closed(&self) -> CloseReason {
        self.connection().closed().await
    }

    pub(super) fn session(&self, id: SessionId) -> ClientSession {
        let thread = self.0.sessions.claim(&id);
        ClientSession::new(self.clone(), id, thread)
    }

    /// That the agent offers a method, by its name in version 1.
    ///
    /// # Errors
    /// It does not: [`Error::Unsupported`].
    pub(super) fn require(&self, method: &str) -> Result<()> {
        match v1::method(method) {
            Some(method) if !method.is_offered(&self.0.negotiated.capabilities_json) => {
                Err(agent_capability_error(
                    method
                        .capability
                        .map_or(method.name, |capability| capability.path),
                ))
            }
            _ => Ok(()),
        }
    }

    /// What the agent did not say it can do is not asked of it. Of the client's own MCP servers, those
    /// that the agent does not connect to are left out.
    pub(super) fn check(&self, setup: SessionSetup) -> Result<SessionSetup> {
        if !self.0.negotiated.has_sessions {
            return Err(agent_capability_error("session"));
        }
        setup.check_paths_absolute().map_err(Error::Invalid)?;
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
                SystemPromptError::Invalid(text) => Error::Invalid(text),
            })?;
        let takes = |server: &McpServer| self.missing_mcp_capability(server).is_none();
        Ok(self.0.mcp_servers.add_to(setup, takes))
    }

    /// The capability that an MCP server needs and the agent has not.
    fn missing_mcp_capability(&self, server: &McpServer) -> Option<String> {
        let offered = &self.capabilities().mcp_capabilities;
        let missing =
            missing_mcp_capability(offered, self.0.negotiated.supports_mcp_stdio, server)?;
        // Of version 2 alone.
        Some(if missing == "stdio" {
            "session.mcp.stdio".to_owned()
        } else {
            format!("mcpCapabilities.{missing}")
        })
    }
}
