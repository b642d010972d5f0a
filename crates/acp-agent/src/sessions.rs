//! Manages the agent's sessions, both open and stored.

use std::sync::Arc;

use acp::Update;
use acp::agent::{
    ArchiveSession, CloseSession, DeleteSession, ForkAtMessage, ForkSession, ListSessions,
    LoadSession, OpenedSession, Prompt, Recorder, ResumeSession, Session, SessionSetup,
    SessionStatusHandler, SetSessionTitle, SteerTurn,
};
use acp::v1::{
    ListSessionsRequest, ListSessionsResponse, McpServer, MessageId, SessionArchiveFilter,
    SessionId, SessionInfo, SessionStatus,
};
use acp_host::{Environment, SandboxRules};
use jiff::Timestamp;

use crate::history::{ModelHistory, StoredHistory};
use crate::log::SessionLog;
use crate::mcp::connect::merge_servers;
use crate::mcp::limits::McpLimits;
use crate::mcp::servers::{ExemptTool, SessionMcpServers};
use crate::mode::Mode;
use crate::model::error::to_acp_error;
use crate::model::message::ModelMessage;
use crate::models::{ModelRegistry, ModelSelection};
use crate::replay::replay;
use crate::session::{OpenSession, SessionState};
use crate::store::error::StoreError;
use crate::store::session_store::SessionStore;
use crate::store::stored_session::{
    ClientInstructions, HistoryEnd, SessionFilter, SessionProperties, StoredSession,
};
use crate::workspace::access::WorkspaceAccess;

/// The number of sessions on each page of a list.
const PAGE_SIZE: usize = 100;

/// The sessions of an agent, with the settings that they share.
pub(crate) struct AgentSessions {
    pub(crate) registry: Arc<ModelRegistry>,
    /// The mode in which sessions start.
    mode: Mode,
    /// Counts the open sessions, each of which keeps a clone of this.
    open_count: Arc<()>,
    store: Option<Arc<dyn SessionStore>>,
    /// The sandbox rules for commands, or `None` if commands are not sandboxed.
    sandbox: Option<SandboxRules>,
    /// The environment for commands.
    environment: Environment,
    /// The user's own MCP servers.
    servers: Vec<McpServer>,
    limits: McpLimits,
    /// The tool of an MCP server that needs no permission, if any.
    exempt: Option<ExemptTool>,
}

impl AgentSessions {
    pub(crate) fn new(choice: ModelRegistry) -> Self {
        Self {
            registry: Arc::new(choice),
            mode: Mode::default(),
            open_count: Arc::default(),
            store: None,
            sandbox: None,
            environment: Environment::new(),
            servers: Vec::new(),
            limits: McpLimits::default(),
            exempt: None,
        }
    }

    pub(crate) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
    }

    pub(crate) fn set_store(&mut self, store: Arc<dyn SessionStore>) {
        self.store = Some(store);
    }

    pub(crate) fn set_environment(&mut self, environment: Environment) {
        self.environment = environment;
    }

    pub(crate) fn set_sandbox(&mut self, rules: SandboxRules) {
        self.sandbox = Some(rules);
    }

    pub(crate) fn set_mcp_servers(&mut self, servers: Vec<McpServer>) {
        self.servers = servers;
    }

    pub(crate) fn set_exempt_tool(&mut self, tool: ExemptTool) {
        self.exempt = Some(tool);
    }

    pub(crate) fn set_mcp_limits(&mut self, limits: McpLimits) {
        self.limits = limits;
    }

    /// Returns `true` if any session is open.
    pub(crate) fn has_open_sessions(&self) -> bool {
        Arc::strong_count(&self.open_count) > 1
    }

    /// Returns `self` if the agent stores sessions, otherwise `None`.
    pub(crate) fn if_persistent(&self) -> Option<&Self> {
        self.store.is_some().then_some(self)
    }

    fn store(&self) -> acp::Result<&Arc<dyn SessionStore>> {
        let store = self.store.as_ref();
        store.ok_or_else(|| acp::Error::internal("this agent does not store sessions"))
    }

    /// Opens a new session for a client.
    pub(crate) async fn open_new(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        self.check_authorized(&ModelSelection::default()).await?;
        let own = self.open_access(session).await?;
        let properties = SessionProperties {
            cwd: session.cwd().to_owned(),
            additional_directories: session.roots().iter().skip(1).cloned().collect(),
            mode: self.mode.to_string(),
            client_prompt: setup
                .system_prompt
                .as_ref()
                .map(ClientInstructions::from_system_prompt),
            ..SessionProperties::default()
        };
        let log = match &self.store {
            None => SessionLog::disabled(),
            Some(store) => {
                let stored = store.create(session.id().clone(), properties.clone());
                SessionLog::new(Arc::clone(store), stored.await?, Vec::new())
            }
        };
        let state = self.new_state(session, own, log, &properties, Vec::new());
        Ok(self.opened_session(session, setup, state))
    }

    /// Opens a stored session for a client.
    async fn reopen(
        &self,
        session: &Session,
        setup: SessionSetup,
        replayed: bool,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        let store = self.store()?;
        let own = self.open_access(session).await?;
        let stored = store.find(session.id().clone()).await?;
        let past = StoredHistory::new(Arc::clone(store), stored);
        self.check_authorized(&ModelSelection::from_properties(
            &past.stored_session().properties,
        ))
        .await?;
        let ModelHistory {
            messages,
            missing_messages: missing,
        } = past.model_history().await?;
        if replayed {
            replay(session, &past).await?;
        }
        let mut properties = past.stored_session().properties.clone();
        let log = SessionLog::new(Arc::clone(store), past.stored_session().clone(), missing);
        let roots = std::iter::once(&properties.cwd).chain(&properties.additional_directories);
        if !roots.eq(session.roots()) {
            let roots = session.roots().to_vec();
            log.change_properties(|properties| {
                let mut roots = roots.into_iter();
                properties.cwd = roots.next().unwrap_or_default();
                properties.additional_directories = roots.collect();
            })
            .await?;
        }
        // A new system prompt replaces the stored one. Without a new one, the stored system prompt still applies.
        let client_prompt = setup
            .system_prompt
            .as_ref()
            .map(ClientInstructions::from_system_prompt);
        if client_prompt.is_some() && client_prompt != properties.client_prompt {
            properties.client_prompt.clone_from(&client_prompt);
            log.change_properties(move |properties| properties.client_prompt = client_prompt)
                .await?;
        }
        let state = self.new_state(session, own, log, &properties, messages);
        Ok(self.opened_session(session, setup, state))
    }

    fn opened_session(
        &self,
        session: &Session,
        setup: SessionSetup,
        mut state: SessionState,
    ) -> OpenedSession<OpenSession> {
        let servers = merge_servers(setup.mcp_servers, &self.servers);
        state.servers =
            SessionMcpServers::start(servers, session, self.limits, self.exempt.clone());
        let options = state.config_options();
        let open = OpenSession {
            state: Arc::new(state),
            _count: Arc::clone(&self.open_count),
        };
        OpenedSession::with_state(open).config_options(options)
    }

    fn new_state(
        &self,
        session: &Session,
        own: Result<WorkspaceAccess, String>,
        log: SessionLog,
        properties: &SessionProperties,
        messages: Vec<ModelMessage>,
    ) -> SessionState {
        let choice = Arc::clone(&self.registry);
        let confined = self.sandbox.is_some();
        let roots = session.roots().to_vec();
        SessionState::new(own, confined, log, roots, choice, properties, messages)
    }

    /// Checks that a session with this selection can use its model (Authentication, "Session Creation"). Looks for new
    /// keys first.
    async fn check_authorized(&self, chosen: &ModelSelection) -> acp::Result<()> {
        self.registry.refresh_in_background().await;
        self.registry.check_key(chosen).map_err(to_acp_error)
    }

    /// Fetches the model lists of the servers at the user's URLs. If they have changed, sends the session's config
    /// options to the client.
    pub(crate) fn announce_models(&self, session: Session, state: &Arc<SessionState>) {
        let choice = Arc::clone(&self.registry);
        // The task must not keep a closed session alive.
        let state = Arc::downgrade(state);
        tokio::spawn(async move {
            choice.refresh_lists().await;
            let Some(state) = state.upgrade() else {
                return;
            };
            // Repeat this if the user has changed an option in the meantime.
            while session.config_options() != state.config_options() {
                if let Err(error) = session.set_config_options(state.config_options()).await {
                    tracing::debug!(%error, "cannot announce the models");
                    return;
                }
            }
        });
    }

    /// Opens direct access to a session's directories.
    async fn open_access(&self, session: &Session) -> acp::Result<Result<WorkspaceAccess, String>> {
        let own = WorkspaceAccess::open(
            session.roots(),
            self.sandbox.clone(),
            self.environment.clone(),
        )
        .await;
        // A client that gives access to its files may run where this process cannot reach them, for example in a
        // container. Without such access, the session would be useless.
        if let Err(why) = &own
            && !session.client().capabilities().fs.read_text_file
        {
            return Err(acp::Error::invalid_params(format!(
                "cannot open the session: {why}"
            )));
        }
        Ok(own)
    }
}

impl Recorder<OpenSession> for AgentSessions {
    async fn record(&self, open: &OpenSession, _: &Session, update: &Update) -> acp::Result<()> {
        Ok(open.state.record(update).await?)
    }
}

impl LoadSession<OpenSession> for AgentSessions {
    async fn load(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        self.reopen(session, setup, true).await
    }
}

impl ResumeSession<OpenSession> for AgentSessions {
    async fn resume(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        self.reopen(session, setup, false).await
    }
}

impl ForkSession<OpenSession> for AgentSessions {
    async fn fork(
        &self,
        from: &SessionId,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        let original = self.store()?.find(from.clone()).await?;
        self.fork_history(original, None, session, setup).await
    }
}

impl ForkAtMessage<OpenSession> for AgentSessions {
    async fn fork_at(
        &self,
        from: &SessionId,
        last: &MessageId,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        let store = self.store()?;
        let original = store.find(from.clone()).await?;
        let history = StoredHistory::new(Arc::clone(store), original.clone());
        let end = history.end_after(last).await?.ok_or_else(|| {
            let mut error = acp::jsonrpc::Error::invalid_params(format!(
                "session {from} has no message {last}"
            ));
            error.data = Some(serde_json::json!({ "messageId": last.as_str() }));
            acp::Error::Rpc(error)
        })?;
        self.fork_history(original, Some(end), session, setup).await
    }
}

impl AgentSessions {
    /// Opens `session` as a copy of a stored session, up to `end` if it is given.
    async fn fork_history(
        &self,
        original: StoredSession,
        end: Option<HistoryEnd>,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        let store = self.store()?;
        let (from, mut properties) = (original.id, original.properties);
        let mut roots = session.roots().iter().cloned();
        properties.cwd = roots.next().unwrap_or_default();
        properties.additional_directories = roots.collect();
        // A user who forks a session expects to see the fork in the list.
        properties.archived = false;
        let id = session.id().clone();
        store
            .fork(from.clone(), id.clone(), properties, end)
            .await?;
        let opened = self.reopen(session, setup, false).await;
        if opened.is_err() {
            // The client does not know this id yet. If the copy stays, it can be deleted like any other session.
            if let Err(error) = store.delete(id).await {
                tracing::warn!(session = %from, %error, "cannot delete a forked session that failed to open");
            }
        }
        opened
    }
}

impl ListSessions for AgentSessions {
    async fn list(&self, request: ListSessionsRequest) -> acp::Result<ListSessionsResponse> {
        let archived = match request.archived {
            Some(SessionArchiveFilter::Include) => None,
            Some(SessionArchiveFilter::Only) => Some(true),
            _ => Some(false),
        };
        let filter = SessionFilter::default().cwd(request.cwd).archived(archived);
        let listed = self
            .store()?
            .list(filter, request.cursor, PAGE_SIZE)
            .await?;
        let sessions: Vec<SessionInfo> = listed.sessions.into_iter().map(session_info).collect();
        let mut page = ListSessionsResponse::new(sessions);
        page.next_cursor = listed.cursor;
        Ok(page)
    }
}

fn session_info(stored: StoredSession) -> SessionInfo {
    let mut info = SessionInfo::new(stored.id, stored.properties.cwd)
        .additional_directories(stored.properties.additional_directories);
    // A time that is out of the calendar's range is omitted.
    info.updated_at = Timestamp::try_from(stored.updated_at)
        .ok()
        .map(format_milliseconds);
    info.title = stored.properties.title;
    info.archived = Some(stored.properties.archived);
    info
}

/// Formats a time as an RFC 3339 string with milliseconds, the form that the protocol uses.
fn format_milliseconds(time: Timestamp) -> String {
    format!("{time:.3}")
}

impl CloseSession<OpenSession> for AgentSessions {
    async fn close(&self, open: &OpenSession, _: &SessionId) -> acp::Result<()> {
        open.state.servers.close().await;
        Ok(())
    }
}

impl SetSessionTitle<OpenSession> for AgentSessions {
    async fn set_title(
        &self,
        open: Option<&OpenSession>,
        id: &SessionId,
        title: &str,
    ) -> acp::Result<String> {
        let title = crate::title::clean_user_title(title)
            .ok_or_else(|| acp::Error::invalid_params("the title must not be empty"))?;
        match open {
            Some(open) => open.state.rename(&title).await?,
            None => {
                let store = self.store()?;
                let stored = store.find(id.clone()).await?;
                let mut properties = stored.properties;
                properties.title = Some(title.clone());
                store
                    .append(id.clone(), stored.revision, Vec::new(), Some(properties))
                    .await?;
            }
        }
        Ok(title)
    }
}

impl AgentSessions {
    async fn set_archived(&self, id: &SessionId, archived: bool) -> acp::Result<()> {
        let store = self.store()?;
        let StoredSession {
            mut properties,
            revision: version,
            ..
        } = store.find(id.clone()).await?;
        if properties.archived != archived {
            properties.archived = archived;
            store
                .append(id.clone(), version, Vec::new(), Some(properties))
                .await?;
        }
        Ok(())
    }
}

impl ArchiveSession<OpenSession> for AgentSessions {
    async fn archive(&self, session: &SessionId) -> acp::Result<()> {
        self.set_archived(session, true).await
    }

    async fn unarchive(&self, open: Option<&OpenSession>, session: &SessionId) -> acp::Result<()> {
        match open {
            Some(open) => Ok(open.state.unarchive().await?),
            None => self.set_archived(session, false).await,
        }
    }
}

impl SessionStatusHandler for AgentSessions {
    async fn status(&self, session: &SessionId) -> acp::Result<Option<SessionStatus>> {
        match self.store()?.find(session.clone()).await {
            Ok(_) => Ok(Some(SessionStatus::Saved)),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl SteerTurn<OpenSession> for AgentSessions {
    async fn steer(&self, open: &OpenSession, _: &Session, message: &Prompt) -> acp::Result<bool> {
        open.state.steering.push(message.content.clone())
    }
}

impl DeleteSession for AgentSessions {
    async fn delete(&self, session: &SessionId) -> acp::Result<()> {
        match self.store()?.delete(session.clone()).await {
            // Session delete: deleting a session that does not exist succeeds.
            Ok(()) | Err(StoreError::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
