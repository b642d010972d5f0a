//! Tracks the state of each agent in the chat: idle, starting, running or ended.

use std::sync::Arc;
use std::time::Instant;

use acp::client::AgentConnection;
use acp::v1::{AuthMethod, ListSessionsResponse, ProtocolVersion, SessionId};
use acp_config::EditingMode;
use acp_host::AgentProcess;
use tokio::sync::Notify;

use super::overlay::ChatOverlay;
use super::tab::{Tab, TabPhase};
use super::{AgentKey, AgentStart, App, ChatEffect};
use crate::agent::{AgentFailure, ChatNotes, QuestionQueue, RunningAgent, SHUTDOWN_GRACE_PERIOD};
use crate::setup::{AgentSpec, InitialOptions, SessionSource};

/// An agent of the chat, with its settings and its current state.
pub(super) struct ChatAgent {
    pub(super) spec: Arc<AgentSpec>,
    pub(super) state: AgentState,
    pub(super) questions: Arc<QuestionQueue>,
    pub(super) notes: Arc<ChatNotes>,
    /// The most recently started process, even if it has exited.
    pub(super) last_process: Option<Arc<AgentProcess>>,
    /// Whether the agent is known to lack support for opening existing sessions.
    pub(super) cannot_load: bool,
    last_start: AgentStart,
}

/// The state of an agent in the chat.
pub(super) enum AgentState {
    /// Nothing has needed the agent yet, so it has not been started.
    Idle,
    /// The agent was started but has not responded yet.
    Starting {
        since: Instant,
        process: Option<Arc<AgentProcess>>,
    },
    Running(RunningAgent),
    /// The agent ended, or could not be started.
    Ended,
}

impl ChatAgent {
    pub(super) fn new(spec: Arc<AgentSpec>, wake: &Arc<Notify>) -> Self {
        Self {
            spec,
            state: AgentState::Idle,
            questions: QuestionQueue::new(Arc::clone(wake)),
            notes: Arc::default(),
            last_process: None,
            cannot_load: false,
            last_start: AgentStart::default(),
        }
    }

    pub(super) fn running_agent(&self) -> Option<RunningAgent> {
        match &self.state {
            AgentState::Running(link) => Some(link.clone()),
            _ => None,
        }
    }

    pub(super) fn connection(&self) -> Option<&AgentConnection> {
        match &self.state {
            AgentState::Running(link) => Some(&link.connection),
            _ => None,
        }
    }

    /// Returns whether the agent's sessions are live: they go on at a server when the chat ends.
    pub(super) fn is_live(&self) -> bool {
        let meta = self
            .connection()
            .and_then(|agent| agent.capabilities().meta.as_ref());
        meta.is_some_and(|meta| meta.contains_key("live"))
    }

    pub(super) fn process(&self) -> Option<Arc<AgentProcess>> {
        match &self.state {
            AgentState::Running(link) => Some(Arc::clone(&link.process)),
            AgentState::Starting { process, .. } => process.clone(),
            _ => None,
        }
    }

    /// Starts the agent if it is not running.
    pub(super) fn start(&mut self, key: AgentKey) -> Option<ChatEffect> {
        if matches!(
            self.state,
            AgentState::Starting { .. } | AgentState::Running(_)
        ) {
            return None;
        }
        self.last_start.0 += 1;
        self.state = AgentState::Starting {
            since: Instant::now(),
            process: None,
        };
        Some(ChatEffect::StartAgent {
            agent: key,
            stamp: self.last_start,
            spec: Arc::clone(&self.spec),
            questions: Arc::clone(&self.questions),
            notes: Arc::clone(&self.notes),
        })
    }

    /// Allows the draft of protocol version 2 when the agent starts next.
    pub(super) fn allow_version_2(&mut self) {
        let mut spec = AgentSpec::clone(&self.spec);
        spec.options = spec.options.draft_version_2();
        self.spec = Arc::new(spec);
    }

    /// Returns the name that the agent reported, or its configured name if it reported none.
    pub(super) fn name(&self) -> String {
        let info = self.connection().and_then(AgentConnection::info);
        let name = info.map(|info| info.title.as_ref().unwrap_or(&info.name));
        match name {
            Some(name) if !name.trim().is_empty() => acp_host::terminal_text::clean_line(name),
            _ => self.spec.name.clone(),
        }
    }
}

impl App {
    /// Adds a tab, switches to it, and opens a session in it.
    pub(super) fn new_tab(&mut self, agent: AgentKey, open: SessionSource) -> Vec<ChatEffect> {
        let key = super::TabKey(self.next_tab);
        self.next_tab += 1;
        let storage_key = self.spec(agent).map(|spec| spec.storage_key.clone());
        let storage_key = storage_key.unwrap_or_default();
        let (files, history) = (self.files.clone(), self.history.clone());
        let mut tab = Tab::new(key, agent, storage_key, open, files, history);
        tab.editor.set_vim(self.setup.editing == EditingMode::Vim);
        self.tabs.push(tab);
        self.active = self.tabs.len() - 1;
        self.focus = super::ChatFocus::Input;
        self.open_tab(key)
    }

    /// Opens a tab's session. Starts the agent first if necessary.
    pub(super) fn open_tab(&mut self, key: super::TabKey) -> Vec<ChatEffect> {
        let Some(tab) = self.tab_mut(key) else {
            return Vec::new();
        };
        let (agent_key, how, mut initial_options) = (
            tab.agent,
            tab.session_source.clone(),
            tab.initial_options.clone(),
        );
        // Every new session starts with the options of the command line, which are for the first agent. A session that
        // replaces another one has the other's options.
        if how == SessionSource::New
            && agent_key == AgentKey(0)
            && initial_options == InitialOptions::default()
        {
            initial_options = self.setup.initial_options.clone();
        }
        let Some(agent) = self.agent_mut(agent_key) else {
            return Vec::new();
        };
        match agent.running_agent() {
            Some(link) => {
                let spec = Arc::clone(&agent.spec);
                let since = Instant::now();
                if let Some(tab) = self.tab_mut(key) {
                    tab.phase = TabPhase::Opening(since);
                }
                vec![ChatEffect::OpenSession {
                    tab: key,
                    since,
                    link,
                    spec,
                    how,
                    initial_options,
                }]
            }
            None => {
                let effect = agent.start(agent_key);
                if let Some(tab) = self.tab_mut(key) {
                    tab.phase = TabPhase::Starting;
                }
                effect.into_iter().collect()
            }
        }
    }

    fn is_current(&self, key: AgentKey, stamp: AgentStart) -> bool {
        self.agent(key)
            .is_some_and(|agent| agent.last_start == stamp)
    }

    pub(super) fn on_spawned(
        &mut self,
        key: AgentKey,
        stamp: AgentStart,
        spawned: Arc<AgentProcess>,
    ) -> Vec<ChatEffect> {
        let current = self.is_current(key, stamp);
        if let Some(agent) = self.agent_mut(key)
            && current
            && let AgentState::Starting { process, .. } = &mut agent.state
        {
            agent.last_process = Some(Arc::clone(&spawned));
            *process = Some(spawned);
        }
        Vec::new()
    }

    pub(super) fn on_connected(
        &mut self,
        key: AgentKey,
        stamp: AgentStart,
        link: RunningAgent,
    ) -> Vec<ChatEffect> {
        if !self.is_current(key, stamp) {
            return vec![ChatEffect::StopAgent {
                process: Arc::clone(&link.process),
                link: Some(link),
                grace: SHUTDOWN_GRACE_PERIOD,
            }];
        }
        if let Some(agent) = self.agent_mut(key) {
            let can = link.connection.capabilities();
            agent.cannot_load = !can.load_session && can.session_capabilities.resume.is_none();
            agent.state = AgentState::Running(link);
        }
        let waiting: Vec<_> = self
            .tabs
            .iter()
            .filter(|tab| tab.agent == key && matches!(tab.phase, TabPhase::Starting))
            .map(|tab| tab.key)
            .collect();
        waiting
            .into_iter()
            .flat_map(|tab| self.open_tab(tab))
            .collect()
    }

    /// Handles the end of an agent. Its tabs keep their contents and show why it ended.
    pub(super) fn on_ended(
        &mut self,
        key: AgentKey,
        stamp: AgentStart,
        failure: AgentFailure,
    ) -> Vec<ChatEffect> {
        if !self.is_current(key, stamp) {
            return Vec::new();
        }
        let Some(agent) = self.agents.get_mut(key.0) else {
            return Vec::new();
        };
        agent.state = AgentState::Ended;
        let mut first = None;
        for tab in self.tabs.iter_mut().filter(|tab| tab.agent == key) {
            tab.on_agent_ended(&failure);
            first.get_or_insert(tab.key);
        }
        // One call, even if several tabs have lost their agent.
        first.map_or_else(Vec::new, |tab| self.call_user(tab, "has exited"))
    }

    /// Restarts an agent and loads its tabs' sessions.
    pub(super) fn restart(&mut self, key: AgentKey) -> Vec<ChatEffect> {
        let mut effects = Vec::new();
        if let Some(agent) = self.agent_mut(key) {
            if let Some(process) = agent.process() {
                effects.push(ChatEffect::StopAgent {
                    process,
                    link: agent.running_agent(),
                    grace: SHUTDOWN_GRACE_PERIOD,
                });
            }
            agent.state = AgentState::Idle;
        }
        let cannot_load = self.agent(key).is_some_and(|agent| agent.cannot_load);
        let tabs: Vec<_> = self
            .tabs
            .iter_mut()
            .filter(|tab| tab.agent == key)
            .map(|tab| {
                effects.extend(tab.reset());
                if cannot_load && matches!(tab.session_source, SessionSource::Existing(_)) {
                    tab.session_source = SessionSource::New;
                }
                tab.key
            })
            .collect();
        for tab in tabs {
            effects.extend(self.open_tab(tab));
        }
        effects
    }

    /// Lets the user choose an auth method. If there is only one, uses it right away.
    pub(super) fn log_in(&mut self, key: AgentKey) -> Vec<ChatEffect> {
        let Some(connection) = self.agent(key).and_then(ChatAgent::connection) else {
            self.show_note("the agent is not running");
            return Vec::new();
        };
        // In version 1, an unknown type of method is left to the agent, because methods had no types at first. Version
        // 2 forbids that.
        let first = connection.version() == ProtocolVersion::V1;
        let can = |method: &&AuthMethod| {
            first || matches!(method, AuthMethod::Agent(_) | AuthMethod::Terminal(_))
        };
        let methods: Vec<_> = connection
            .auth_methods()
            .iter()
            .filter(can)
            .cloned()
            .collect();
        match &methods[..] {
            [] => {
                self.show_note("the agent offers no way to log in; see its documentation");
                Vec::new()
            }
            [method] => {
                let method = method.clone();
                self.log_in_with(key, &method)
            }
            _ => {
                self.overlay = Some(ChatOverlay::logins(key, methods));
                Vec::new()
            }
        }
    }

    /// Stops an agent that has no open sessions before its login program runs. Agents read their credentials only at
    /// startup. An agent with open sessions keeps running.
    fn stop_unused_agent(&mut self, key: AgentKey) -> Option<RunningAgent> {
        let in_use = |tab: &Tab| tab.agent == key && tab.session.is_some();
        if self.tabs.iter().any(in_use) {
            return None;
        }
        let agent = self.agent_mut(key)?;
        let link = agent.running_agent()?;
        agent.state = AgentState::Idle;
        agent.last_start.0 += 1;
        for tab in self.tabs.iter_mut().filter(|tab| tab.agent == key) {
            tab.phase = TabPhase::Starting;
        }
        Some(link)
    }

    pub(super) fn log_in_with(&mut self, key: AgentKey, method: &AuthMethod) -> Vec<ChatEffect> {
        let (Some(connection), Some(spec)) = (
            self.agent(key).and_then(ChatAgent::connection).cloned(),
            self.spec(key),
        ) else {
            return Vec::new();
        };
        match method {
            AuthMethod::Terminal(method) => {
                let ends = self.stop_unused_agent(key);
                vec![ChatEffect::LogInInTerminal {
                    agent: key,
                    ends,
                    spec,
                    method: method.clone(),
                }]
            }
            other => match other.id_and_name() {
                Some((method, name)) => {
                    self.show_note(format!(
                        "logging in: {}",
                        acp_host::terminal_text::clean_line(&name)
                    ));
                    vec![ChatEffect::LogIn {
                        agent: key,
                        connection,
                        method,
                    }]
                }
                None => Vec::new(),
            },
        }
    }

    /// Continues the work that the login interrupted.
    pub(super) fn on_logged_in(
        &mut self,
        key: AgentKey,
        result: Result<(), AgentFailure>,
    ) -> Vec<ChatEffect> {
        let logged_in = result.is_ok();
        match result {
            Ok(()) => self.show_note("logged in"),
            Err(failure) => self.show_note(format!("login failed: {}", failure.to_text())),
        }
        // The agent was stopped for its login program.
        if matches!(
            self.agent(key).map(|agent| &agent.state),
            Some(AgentState::Idle)
        ) {
            return self.restart(key);
        }
        let waiting =
            |tab: &&Tab| tab.agent == key && matches!(tab.phase, TabPhase::LoginRequired(_));
        let waiting = self.tabs.iter().filter(waiting).map(|tab| tab.key);
        let waiting: Vec<_> = waiting.filter(|_| logged_in).collect();
        let goes_on = waiting.into_iter();
        goes_on
            .flat_map(|tab| self.continue_after_login(tab))
            .collect()
    }

    pub(super) fn continue_after_login(&mut self, key: super::TabKey) -> Vec<ChatEffect> {
        match self.tab_mut(key) {
            // The session is open, so the rejected prompt is sent again.
            Some(tab) if tab.session.is_some() => {
                tab.phase = TabPhase::Open;
                tab.send_queued()
            }
            Some(_) => self.open_tab(key),
            None => Vec::new(),
        }
    }

    pub(super) fn on_logged_out(
        &mut self,
        _: AgentKey,
        result: Result<(), AgentFailure>,
    ) -> Vec<ChatEffect> {
        match result {
            Ok(()) => self.show_note("logged out"),
            Err(failure) => self.show_note(format!("logout failed: {}", failure.to_text())),
        }
        Vec::new()
    }

    pub(super) fn on_sessions_listed(
        &mut self,
        key: AgentKey,
        result: Result<ListSessionsResponse, AgentFailure>,
        names: &[(String, SessionId)],
    ) -> Vec<ChatEffect> {
        let connection = self.agent(key).and_then(ChatAgent::connection).cloned();
        let kept = self.spec(key).and_then(|spec| spec.names.clone());
        let Some(ChatOverlay::Sessions(sessions)) = &mut self.overlay else {
            return Vec::new();
        };
        if sessions.agent != key {
            return Vec::new();
        }
        let cursor = sessions.add_page(result, names);
        if let Some(found) = sessions.take_found(names) {
            self.overlay = None;
            return self.open_session(key, found);
        }
        match (cursor, connection) {
            (Some(cursor), Some(connection)) => vec![ChatEffect::ListSessions {
                agent: key,
                connection,
                names: kept,
                cwd: self.setup.cwd.clone(),
                cursor: Some(cursor),
            }],
            _ => Vec::new(),
        }
    }

    pub(super) fn on_session_deleted(
        &mut self,
        key: AgentKey,
        id: &SessionId,
        result: Result<(), AgentFailure>,
    ) -> Vec<ChatEffect> {
        match result {
            Ok(()) => {
                if let Some(ChatOverlay::Sessions(sessions)) = &mut self.overlay
                    && sessions.agent == key
                {
                    sessions.remove(id);
                }
                self.show_note("session deleted");
            }
            Err(failure) => {
                self.show_note(format!("cannot delete the session: {}", failure.to_text()))
            }
        }
        Vec::new()
    }
}
