//! A coding agent that speaks the [Agent Client Protocol](https://agentclientprotocol.com).
//!
//! [`CodingAgent`] is an [`acp::Agent`]: give it to [`acp::agent::serve_stdio`]. It asks a
//! [`Model`] what to do, carries out the tools the model calls, and reports each step to the client
//! as the protocol says: what is said and thought, tool calls from `pending` to their end, diffs,
//! terminals, the plan.
//!
//! Files are read and written, and commands run, through the client where it offers that, and by the
//! agent itself, confined to the session's directories, where it does not. What changes anything is
//! permitted by the person first, as the session's [`Mode`] and the rules in [`RuleFiles`] say.
//!
//! It connects to the MCP servers that the client names and to those of the user's own
//! ([`CodingAgent::mcp_servers`]): their tools are offered to the model, their prompts are commands.
//!
//! A model is told who and where it is, and what the project's `AGENTS.md` says; when its window fills, the
//! conversation is summarised.
//!
//! With [`CodingAgent::keep_sessions`] its sessions outlive the process, though it be killed: see
//! [`store`].
//!
//! A [`ProviderModel`] is a language model: Anthropic's, OpenAI's, Gemini's, or one at any address that speaks as
//! one of them. [`OfflineModel`] is no AI and carries out typed commands; [`ScriptedModel`] plays a file, for tests.

mod announce;
mod causes;
mod client_quirks;
mod commands;
mod context;
mod history;
mod keys;
mod log;
mod login;
mod mcp;
mod mode;
mod model;
mod models;
mod permission;
mod private_file;
mod project;
mod replay;
mod reported_call;
mod session;
mod sessions;
mod sse;
pub mod store;
mod text;
mod title;
mod tools;
mod turn;
mod web;
mod workspace;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use acp::agent::{
    ArchiveSession, Authentication, CheckAuthStatus, CheckSessionStatus, CloseSession,
    DeleteSession, ForkSession, ListSessions, LoadSession, OpenedSession, Prompt, Recorder,
    ResumeSession, Session, SessionSetup, SetSessionTitle, SteerTurn, Turn,
};
use acp::v1::{
    Implementation, McpCapabilities, McpServer, PromptCapabilities, SessionConfigId,
    SessionConfigOption, SessionConfigOptionValue, SessionSystemPromptCapabilities,
    SessionSystemPromptModeCapabilities, SessionSystemPromptOverrideCapabilities, StopReason,
};

use acp_host::{Sandbox, SandboxError, SandboxRules};
pub use keys::{Account, KeyFile, KeyFileError, KeySources};
pub use mcp::limits::McpLimits;
pub use mode::{Mode, ParseModeError};
pub use model::error::{ModelError, ModelErrorKind};
pub use model::interface::{Model, RoundRequest, ToolSpec};
pub use model::message::{ModelMessage, OpaqueParts, ToolRequest, ToolResult, ToolStatus};
pub use model::offline::OfflineModel;
pub use model::provider::backoff::RetryPolicy;
pub use model::provider::catalogue::Price;
pub use model::provider::config::ProviderModel;
pub use model::provider::models::ModelFactory;
pub use model::provider::name::{ParseProviderError, Provider};
pub use model::provider::secret::Secret;
pub use model::provider::wire_format::WireFormat;
pub use model::scripted::{ScriptError, ScriptedModel};
pub use model::step::{Step, Steps, TokenUsage};
pub use model::thought::{ParseThoughtLevelError, ThoughtLevel};
use models::ModelRegistry;
pub use models::config::{ModelChoices, ModelConfig};
pub use permission::rules::RuleFiles;
pub use session::OpenSession;
use sessions::AgentSessions;
use store::SessionStore;
use workspace::Workspace;

/// How often a model is asked in one turn, if nothing else is set.
const MAX_REQUESTS: usize = 200;

/// The agent.
pub struct CodingAgent {
    /// Made when a model is asked first: a client that only wants to know who is there need not wait for them.
    tools: LazyLock<Vec<ToolSpec>>,
    max_requests: usize,
    rules: RuleFiles,
    sessions: AgentSessions,
    /// The user's own instructions, if there may be any.
    user_instructions: Option<PathBuf>,
}

impl std::fmt::Debug for CodingAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodingAgent").finish_non_exhaustive()
    }
}

impl CodingAgent {
    /// An agent with the model that is configured.
    ///
    /// # Errors
    /// The model cannot be used as it is configured.
    pub fn new(model: &ModelConfig) -> Result<Self, ModelError> {
        ModelRegistry::of(model).map(Self::with_model_registry)
    }

    /// An agent with a model of one's own.
    pub fn with_model(model: impl Model + 'static) -> Self {
        Self::with_model_registry(ModelRegistry::only(Arc::new(model)))
    }

    fn with_model_registry(choice: ModelRegistry) -> Self {
        Self {
            tools: LazyLock::new(tools::specs),
            max_requests: MAX_REQUESTS,
            rules: RuleFiles::new(),
            sessions: AgentSessions::new(choice),
            user_instructions: None,
        }
    }

    /// How often the model may be asked in one turn; 200 if it is not set. A turn that goes on for
    /// longer ends with [`StopReason::MaxTurnRequests`].
    #[must_use]
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// The mode that sessions begin in; [`Mode::Ask`] if it is not set.
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.sessions.set_mode(mode);
        self
    }

    /// Where the user's rules are: they say beside the [`Mode`] what may be done without a question. Without
    /// this there are only those of the project, which can forbid but not allow.
    #[must_use]
    pub fn rules(mut self, rules: RuleFiles) -> Self {
        self.rules = rules;
        self
    }

    /// Runs commands in a [`Sandbox`] for each session: they write only under the session's directories, in
    /// a temporary directory of their own, and where `rules` say. They are the agent's own processes then,
    /// also where the client offers terminals: nobody knows what those may do.
    ///
    /// # Errors
    /// Sandboxes are not possible here, or not with these rules.
    pub fn sandboxed(mut self, rules: SandboxRules) -> Result<Self, SandboxError> {
        // Tried out now, so that it is known before there is any session.
        Sandbox::with(rules.clone())?;
        self.sessions.set_sandbox(rules);
        Ok(self)
    }

    /// MCP servers of the user's own, for every session, beside those that the client names for it. Of two with
    /// the same name the client's counts.
    #[must_use]
    pub fn mcp_servers(mut self, servers: Vec<McpServer>) -> Self {
        self.sessions.serve_with(servers);
        self
    }

    /// How long MCP servers are waited for.
    #[must_use]
    pub fn mcp_limits(mut self, limits: McpLimits) -> Self {
        self.sessions.wait_for_servers(limits);
        self
    }

    /// Where the user's own instructions are: a file like a project's `AGENTS.md`, which models are told in each
    /// session, ahead of the project's. It need not be there. Without this there are none.
    #[must_use]
    pub fn user_instructions(mut self, file: impl Into<PathBuf>) -> Self {
        self.user_instructions = Some(file.into());
        self
    }

    /// Keeps its sessions there: what a client is shown was kept before, and an old session can be listed,
    /// opened and deleted. Without this an agent forgets a session when it is closed, and does not offer
    /// old ones.
    #[must_use]
    pub fn keep_sessions(mut self, store: impl SessionStore) -> Self {
        self.sessions.set_store(Arc::new(store));
        self
    }
}

impl acp::Agent for CodingAgent {
    type State = OpenSession;

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp-agent", env!("CARGO_PKG_VERSION")).title("ACP Agent"))
    }

    fn prompt_capabilities(&self) -> PromptCapabilities {
        PromptCapabilities::new()
            .embedded_context(true)
            .image(self.sessions.registry.takes_images())
    }

    fn mcp_capabilities(&self) -> McpCapabilities {
        McpCapabilities::new().http(true).sse(true)
    }

    fn additional_directories(&self) -> bool {
        true
    }

    fn authentication(&self) -> Option<&impl Authentication> {
        let keys = self.sessions.registry.keys();
        keys.has_file().then_some(&self.sessions)
    }

    fn close_session(&self) -> Option<&impl CloseSession<Self::State>> {
        Some(&self.sessions)
    }

    fn recorder(&self) -> Option<&impl Recorder<Self::State>> {
        self.sessions.persistent()
    }

    fn load_session(&self) -> Option<&impl LoadSession<Self::State>> {
        self.sessions.persistent()
    }

    fn resume_session(&self) -> Option<&impl ResumeSession<Self::State>> {
        self.sessions.persistent()
    }

    fn fork_session(&self) -> Option<&impl ForkSession<Self::State>> {
        self.sessions.persistent()
    }

    fn set_session_title(&self) -> Option<&impl SetSessionTitle<Self::State>> {
        self.sessions.persistent()
    }

    fn archive_session(&self) -> Option<&impl ArchiveSession<Self::State>> {
        self.sessions.persistent()
    }

    fn session_status(&self) -> Option<&impl CheckSessionStatus> {
        self.sessions.persistent()
    }

    fn steer_turn(&self) -> Option<&impl SteerTurn<Self::State>> {
        Some(&self.sessions)
    }

    fn auth_status(&self) -> Option<&impl CheckAuthStatus> {
        Some(&self.sessions)
    }

    /// They replace who the agent says it is and how it works, and no more: what it tells of the session and what the
    /// project's and the person's files say is told all the same, and permissions stay.
    fn system_prompt_capabilities(&self) -> Option<SessionSystemPromptCapabilities> {
        let overriding = SessionSystemPromptOverrideCapabilities::new();
        let modes = SessionSystemPromptModeCapabilities::new().overriding(overriding);
        Some(SessionSystemPromptCapabilities::new().mode(modes))
    }

    fn list_sessions(&self) -> Option<&impl ListSessions> {
        self.sessions.persistent()
    }

    fn delete_session(&self) -> Option<&impl DeleteSession> {
        self.sessions.persistent()
    }

    async fn new_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        self.sessions.begin(session, setup).await
    }

    async fn session_opened(&self, OpenSession { state, .. }: &OpenSession, session: Session) {
        let understands = state.follows_instructions();
        if let Err(error) = announce::announce(&session, state, understands).await {
            tracing::debug!(%error, "cannot announce the commands");
        }
        // The servers' prompts follow when they are there, and so do models of which nobody knows yet.
        announce::announce_changes(session.clone(), state);
        self.sessions.announce_models(session, state);
    }

    async fn set_config_option(
        &self,
        OpenSession { state, .. }: &OpenSession,
        _: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> acp::Result<Vec<SessionConfigOption>> {
        // It is one of those that were offered.
        let value = value.to_string();
        match option.as_str() {
            mode::OPTION => {
                let mode = value.parse();
                let mode =
                    mode.map_err(|e: ParseModeError| acp::Error::invalid_params(e.to_string()))?;
                state.set_mode(mode).await?;
            }
            models::MODEL => state.choose_model(value).await?,
            models::THOUGHT => state.choose_thought(value).await?,
            _ => {
                return Err(acp::Error::invalid_params(format!(
                    "config option not found: {option}"
                )));
            }
        }
        Ok(state.options())
    }

    async fn prompt(
        &self,
        OpenSession { state, .. }: &OpenSession,
        turn: Turn,
        prompt: Prompt,
    ) -> acp::Result<StopReason> {
        // What a turn has begun is ended before its end is reported: dropping it cannot wait.
        let _cancelled = turn.take_cancellation();
        let state = Arc::clone(state);
        self.sessions.registry.refresh_in_background().await;
        self.sessions
            .registry
            .list_for(&state.model_selection())
            .await;
        let options = state.options();
        if turn.config_options() != options {
            // There are other keys than before, and so maybe another model, for which other things can be typed.
            turn.set_config_options(options).await?;
            announce::announce(turn.session(), &state, state.follows_instructions()).await?;
        }
        let workspace = Workspace {
            turn,
            memory: Arc::clone(&state) as _,
        };
        let asked = state.round_model()?;
        let running = turn::active::ActiveTurn {
            state: &state,
            round_model: &asked,
            tools: &self.tools,
            max_requests: self.max_requests,
            user_instructions: self.user_instructions.as_deref(),
            rules: &self.rules,
            workspace: &workspace,
        };
        let ended = running.run(prompt).await;
        state.turn_ended(workspace.turn.id()).await;
        ended
    }
}
