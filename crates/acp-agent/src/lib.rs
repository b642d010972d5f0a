//! A coding agent that speaks the [Agent Client Protocol](https://agentclientprotocol.com).
//!
//! [`CodingAgent`] is an [`acp::Agent`]: pass it to [`acp::agent::serve_stdio`]. It calls a [`Model`], runs the tools
//! that the model calls, and reports each step to the client as the protocol requires: messages, thoughts, tool calls
//! from `pending` to their end, diffs, terminals and the plan.
//!
//! The agent reads and writes files and runs commands through the client if the client supports that. Otherwise it
//! does so itself, confined to the session's directories. Every change must be allowed first, by the session's
//! [`Mode`], by the rules in [`RuleFiles`], or by the user.
//!
//! The agent connects to the MCP servers that the client names and to the user's own ([`CodingAgent::mcp_servers`]).
//! It offers their tools to the model, and their prompts to the user as commands.
//!
//! The system prompt describes the agent and the session, and includes the project's `AGENTS.md`. When the model's
//! context window fills up, the agent compacts the conversation.
//!
//! With [`CodingAgent::keep_sessions`], sessions survive the process, even if it is killed: see [`store`].
//!
//! A [`ProviderModel`] is a language model: Anthropic's, OpenAI's, Gemini's, or one at any URL that speaks the wire
//! format of one of them. [`OfflineModel`] is not an AI: it runs the slash commands that the user enters.
//! [`ScriptedModel`] plays a script file, for tests.

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
    ArchiveSession, AuthStatusHandler, Authentication, CloseSession, DeleteSession, ForkAtMessage,
    ForkSession, ListSessions, LoadSession, OpenedSession, Prompt, Recorder, ResumeSession,
    Session, SessionSetup, SessionStatusHandler, SetSessionTitle, SteerTurn, Turn,
};
use acp::v1::{
    Implementation, McpCapabilities, McpServer, PromptCapabilities, SessionConfigId,
    SessionConfigOption, SessionConfigOptionValue, SessionSystemPromptCapabilities,
    SessionSystemPromptModeCapabilities, SessionSystemPromptOverrideCapabilities, StopReason,
};

use acp_host::{Environment, Sandbox, SandboxError, SandboxRules};
pub use keys::{Account, KeyFile, KeyFileError, KeySources};
pub use mcp::limits::McpLimits;
use mcp::servers::ExemptTool;
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

/// The default limit on the number of rounds in a turn.
const MAX_REQUESTS: usize = 200;

/// A coding agent that calls a language model.
pub struct CodingAgent {
    /// The tools that are offered to the model. They are created in the first round, so that clients that only read the
    /// agent's capabilities do not have to wait.
    tools: LazyLock<Vec<ToolSpec>>,
    max_requests: usize,
    rules: RuleFiles,
    sessions: AgentSessions,
    /// The path of the user's own instructions, if set. The file might not exist.
    user_instructions: Option<PathBuf>,
}

impl std::fmt::Debug for CodingAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodingAgent").finish_non_exhaustive()
    }
}

impl CodingAgent {
    /// Creates an agent that uses the configured model.
    ///
    /// # Errors
    /// The model cannot be used as configured.
    pub fn new(model: &ModelConfig) -> Result<Self, ModelError> {
        ModelRegistry::from_config(model).map(Self::with_model_registry)
    }

    /// Creates an agent with a custom model.
    pub fn with_model(model: impl Model + 'static) -> Self {
        Self::with_model_registry(ModelRegistry::with_single_model(Arc::new(model)))
    }

    fn with_model_registry(choice: ModelRegistry) -> Self {
        Self {
            tools: LazyLock::new(tools::tool_specs),
            max_requests: MAX_REQUESTS,
            rules: RuleFiles::new(),
            sessions: AgentSessions::new(choice),
            user_instructions: None,
        }
    }

    /// Sets the maximum number of rounds in a turn. The default is 200. A turn that needs more ends with
    /// [`StopReason::MaxTurnRequests`].
    #[must_use]
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Sets the mode in which sessions start. The default is [`Mode::Ask`].
    #[must_use]
    pub fn mode(mut self, mode: Mode) -> Self {
        self.sessions.set_mode(mode);
        self
    }

    /// Sets the files with the user's rules. Together with the [`Mode`], they decide which actions run without a
    /// permission request. By default, only the project's rules apply, which can deny actions but not allow them.
    #[must_use]
    pub fn rules(mut self, rules: RuleFiles) -> Self {
        self.rules = rules;
        self
    }

    /// Runs the commands of each session in a [`Sandbox`]. They can write only in the session's directories, in a
    /// temporary directory of their own, and where `rules` allow it. The agent then runs all commands itself, even if
    /// the client supports terminals, because the sandbox does not confine commands that the client runs.
    ///
    /// # Errors
    /// Sandboxes are not available on this system, or not with these rules.
    pub fn sandbox(mut self, rules: SandboxRules) -> Result<Self, SandboxError> {
        // Try it now, so that an error is reported before the first session.
        Sandbox::from_rules(rules.clone())?;
        self.sessions.set_sandbox(rules);
        Ok(self)
    }

    /// Sets the environment for the commands that the agent runs itself. By default, it contains the variables that the
    /// platform needs. Commands in the client's terminals have the client's environment.
    #[must_use]
    pub fn command_environment(mut self, environment: Environment) -> Self {
        self.sessions.set_environment(environment);
        self
    }

    /// Adds the user's own MCP servers to every session, in addition to those from the client. If two servers have the
    /// same name, the client's is used.
    #[must_use]
    pub fn mcp_servers(mut self, servers: Vec<McpServer>) -> Self {
        self.sessions.set_mcp_servers(servers);
        self
    }

    /// Lets the model call this tool of this MCP server without permission, in every mode and whatever the rules say. Meant
    /// for a client that offers the tool itself and has started the agent. The client should choose a name for the
    /// server that nobody can guess.
    #[must_use]
    pub fn exempt_tool(mut self, server: impl Into<String>, tool: impl Into<String>) -> Self {
        self.sessions.set_exempt_tool(ExemptTool {
            server: server.into(),
            tool: tool.into(),
        });
        self
    }

    /// Sets the time limits for MCP servers.
    #[must_use]
    pub fn mcp_limits(mut self, limits: McpLimits) -> Self {
        self.sessions.set_mcp_limits(limits);
        self
    }

    /// Sets the path of the user's own instructions. They are used like a project's `AGENTS.md`, and come before the
    /// project's in the system prompt. The file need not exist. By default, there is none.
    #[must_use]
    pub fn user_instructions(mut self, file: impl Into<PathBuf>) -> Self {
        self.user_instructions = Some(file.into());
        self
    }

    /// Stores sessions in `store`. Each update is stored before it is sent to the client, and clients can list, open
    /// and delete sessions. By default, the agent forgets a session when it is closed, and clients cannot list, open or
    /// delete stored sessions.
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
            .image(self.sessions.registry.accepts_images())
    }

    fn mcp_capabilities(&self) -> McpCapabilities {
        McpCapabilities::new().http(true).sse(true)
    }

    fn supports_additional_directories(&self) -> bool {
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
        self.sessions.if_persistent()
    }

    fn load_session(&self) -> Option<&impl LoadSession<Self::State>> {
        self.sessions.if_persistent()
    }

    fn resume_session(&self) -> Option<&impl ResumeSession<Self::State>> {
        self.sessions.if_persistent()
    }

    fn fork_session(&self) -> Option<&impl ForkSession<Self::State>> {
        self.sessions.if_persistent()
    }

    fn fork_at_message(&self) -> Option<&impl ForkAtMessage<Self::State>> {
        self.sessions.if_persistent()
    }

    fn set_session_title(&self) -> Option<&impl SetSessionTitle<Self::State>> {
        self.sessions.if_persistent()
    }

    fn archive_session(&self) -> Option<&impl ArchiveSession<Self::State>> {
        self.sessions.if_persistent()
    }

    fn session_status(&self) -> Option<&impl SessionStatusHandler> {
        self.sessions.if_persistent()
    }

    fn steer_turn(&self) -> Option<&impl SteerTurn<Self::State>> {
        Some(&self.sessions)
    }

    fn auth_status(&self) -> Option<&impl AuthStatusHandler> {
        Some(&self.sessions)
    }

    /// Returns the capabilities that allow clients to override the system prompt. An override replaces only the part
    /// that describes the agent's role and how it works. The description of the session, the instruction files of the
    /// project and the user, and the permissions stay the same.
    fn system_prompt_capabilities(&self) -> Option<SessionSystemPromptCapabilities> {
        let overriding = SessionSystemPromptOverrideCapabilities::new();
        let modes = SessionSystemPromptModeCapabilities::new().overriding(overriding);
        Some(SessionSystemPromptCapabilities::new().mode(modes))
    }

    fn list_sessions(&self) -> Option<&impl ListSessions> {
        self.sessions.if_persistent()
    }

    fn delete_session(&self) -> Option<&impl DeleteSession> {
        self.sessions.if_persistent()
    }

    async fn new_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<OpenedSession<OpenSession>> {
        self.sessions.open_new(session, setup).await
    }

    async fn session_opened(&self, OpenSession { state, .. }: &OpenSession, session: Session) {
        let understands = state.follows_instructions();
        if let Err(error) = announce::announce_commands(&session, state, understands).await {
            tracing::debug!(%error, "cannot announce the commands");
        }
        // MCP servers announce their prompts once they are connected. Models from URLs are announced once they are
        // listed.
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
        // The library has checked that the session offers this value.
        let value = value.to_string();
        match option.as_str() {
            mode::MODE_OPTION => {
                let mode = value.parse();
                let mode =
                    mode.map_err(|e: ParseModeError| acp::Error::invalid_params(e.to_string()))?;
                state.set_mode(mode).await?;
            }
            models::MODEL_OPTION => state.choose_model(value).await?,
            models::THOUGHT_LEVEL_OPTION => state.choose_thought_level(value).await?,
            _ => {
                return Err(acp::Error::invalid_params(format!(
                    "config option not found: {option}"
                )));
            }
        }
        Ok(state.config_options())
    }

    async fn prompt(
        &self,
        OpenSession { state, .. }: &OpenSession,
        turn: Turn,
        prompt: Prompt,
    ) -> acp::Result<StopReason> {
        // The turn must stop its commands before it reports its end. Dropping it could not wait for that.
        let _cancelled = turn.take_cancellation();
        let state = Arc::clone(state);
        self.sessions.registry.refresh_in_background().await;
        self.sessions
            .registry
            .refresh_lists_for(&state.model_selection())
            .await;
        let options = state.config_options();
        if turn.config_options() != options {
            // New keys may change the model, and with it the available commands.
            turn.set_config_options(options).await?;
            announce::announce_commands(turn.session(), &state, state.follows_instructions())
                .await?;
        }
        let workspace = Workspace {
            turn,
            memory: Arc::clone(&state) as _,
        };
        let round_model = state.round_model()?;
        let running = turn::active::ActiveTurn {
            state: &state,
            round_model: &round_model,
            tools: &self.tools,
            max_requests: self.max_requests,
            user_instructions: self.user_instructions.as_deref(),
            rules: &self.rules,
            workspace: &workspace,
        };
        let ended = running.run_turn(prompt).await;
        state.fold_history(workspace.turn.id()).await;
        ended
    }
}
