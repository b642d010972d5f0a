//! A coding agent that speaks the [Agent Client Protocol](https://agentclientprotocol.com).
//!
//! [`CodingAgent`] is an [`acp::Agent`]: give it to [`acp::agent::serve_stdio`]. It asks a
//! [`Model`] what to do, carries out the tools the model calls, and reports each step to the client
//! as the protocol says: what is said and thought, tool calls from `pending` to their end, diffs,
//! terminals, the plan.
//!
//! Files are read and written, and commands run, through the client where it offers that, and by the
//! agent itself, confined to the session's directories, where it does not. What changes anything is
//! permitted by the person first, as the session's [`Mode`] says.
//!
//! With [`CodingAgent::keep_sessions`] its sessions outlive the process, though it be killed: see
//! [`store`].
//!
//! A [`ProviderModel`] is a language model: Anthropic's, OpenAI's, Gemini's, or one at any address that speaks as
//! one of them. [`OfflineModel`] is no AI and carries out typed commands; [`ScriptedModel`] plays a file, for tests.

mod commands;
mod log;
mod mode;
mod model;
mod past;
mod permission;
mod project;
mod replay;
mod session;
mod sessions;
pub mod store;
mod tools;
mod turn;
mod workspace;

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use acp::agent::{
    CloseSession, DeleteSession, ListSessions, LoadSession, Prompt, Recorder, ResumeSession,
    Session, SessionOpened, SessionSetup, Turn,
};
use acp::v1::{
    Implementation, PromptCapabilities, SessionConfigId, SessionConfigOption,
    SessionConfigOptionValue, StopReason,
};

use acp_host::{Sandbox, SandboxError};
pub use mode::{Mode, ParseModeError};
pub use model::{
    Message, Model, ModelConfig, ModelError, ModelErrorKind, Models, OfflineModel,
    ParseProviderError, ParseThoughtLevelError, Price, Provider, ProviderModel, Request, Retries,
    ScriptError, ScriptedModel, Sealed, Secret, Step, Steps, ThoughtLevel, ToolRequest, ToolResult,
    ToolSpec, ToolStatus, Usage,
};
use sessions::Sessions;
use store::SessionStore;
use workspace::Workspace;

/// How often a model is asked in one turn, if nothing else is set.
const MAX_REQUESTS: usize = 200;

/// The agent.
pub struct CodingAgent {
    model: Arc<dyn Model>,
    /// Made when a model is asked first: a client that only wants to know who is there need not wait for them.
    tools: LazyLock<Vec<ToolSpec>>,
    max_requests: usize,
    sessions: Sessions,
}

impl std::fmt::Debug for CodingAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodingAgent")
            .field("model", &self.model.name())
            .finish_non_exhaustive()
    }
}

impl CodingAgent {
    /// An agent with the model that is configured.
    ///
    /// # Errors
    /// The model cannot be used as it is configured.
    pub fn new(model: &ModelConfig) -> Result<Self, ModelError> {
        Ok(match model {
            ModelConfig::Offline => Self::with_model(OfflineModel::new()),
            ModelConfig::Scripted(path) => Self::with_model(
                ScriptedModel::read(path).map_err(|e| ModelError::new(e.to_string()))?,
            ),
            ModelConfig::Provider(model) => {
                Self::with_shared(Models::new().model((**model).clone())?)
            }
        })
    }

    /// An agent with a model of one's own.
    pub fn with_model(model: impl Model + 'static) -> Self {
        Self::with_shared(Arc::new(model))
    }

    fn with_shared(model: Arc<dyn Model>) -> Self {
        Self {
            model,
            tools: LazyLock::new(tools::specs),
            max_requests: MAX_REQUESTS,
            sessions: Sessions::default(),
        }
    }

    /// How often the model may be asked in one turn; 200 if it is not set. A turn that goes on for
    /// longer ends with [`StopReason::MaxTurnRequests`].
    #[must_use]
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Runs commands in a [`Sandbox`] for each session: they write only under the session's directories, in
    /// a temporary directory of their own, and in `writable`. They are the agent's own processes then, also
    /// where the client offers terminals: nobody knows what those may do.
    ///
    /// # Errors
    /// Sandboxes are not possible here, or not with `writable`.
    pub fn sandboxed(mut self, writable: Vec<PathBuf>) -> Result<Self, SandboxError> {
        // Tried out now, so that it is known before there is any session.
        Sandbox::new(writable.clone())?;
        self.sessions.confine(writable);
        Ok(self)
    }

    /// Keeps its sessions there: what a client is shown was kept before, and an old session can be listed,
    /// opened and deleted. Without this an agent forgets a session when it is closed, and does not offer
    /// old ones.
    #[must_use]
    pub fn keep_sessions(mut self, store: impl SessionStore) -> Self {
        self.sessions.keep_in(Arc::new(store));
        self
    }
}

impl acp::Agent for CodingAgent {
    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("acp-agent", env!("CARGO_PKG_VERSION")).title("ACP Agent"))
    }

    fn prompt_capabilities(&self) -> PromptCapabilities {
        PromptCapabilities::new()
            .embedded_context(true)
            .image(self.model.takes_images())
    }

    fn additional_directories(&self) -> bool {
        true
    }

    fn close_session(&self) -> Option<&impl CloseSession> {
        Some(&self.sessions)
    }

    fn recorder(&self) -> Option<&impl Recorder> {
        self.sessions.kept()
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        self.sessions.kept()
    }

    fn resume_session(&self) -> Option<&impl ResumeSession> {
        self.sessions.kept()
    }

    fn list_sessions(&self) -> Option<&impl ListSessions> {
        self.sessions.kept()
    }

    fn delete_session(&self) -> Option<&impl DeleteSession> {
        self.sessions.kept()
    }

    async fn new_session(
        &self,
        session: &Session,
        setup: SessionSetup,
    ) -> acp::Result<SessionOpened> {
        sessions::without_servers(&setup);
        self.sessions.begin(session).await
    }

    async fn session_opened(&self, session: Session) {
        if let Err(error) = session.commands(commands::available()).await {
            tracing::debug!(%error, "the commands were not announced");
        }
    }

    async fn set_config_option(
        &self,
        session: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> acp::Result<Vec<SessionConfigOption>> {
        let state = self.sessions.get(session.id())?;
        if option.as_str() != mode::OPTION {
            return Err(acp::Error::invalid_params(format!(
                "there is no config option {option}"
            )));
        }
        let mode: Mode = value
            .to_string()
            .parse()
            .map_err(|e: ParseModeError| acp::Error::invalid_params(e.to_string()))?;
        state.set_mode(mode).await?;
        Ok(mode::options(mode))
    }

    async fn prompt(&self, turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
        // What a turn has begun is ended before its end is reported: dropping it cannot wait.
        let _cancelled = turn.take_cancellation();
        let state = self.sessions.get(turn.id())?;
        let running = turn::Running {
            model: &*self.model,
            tools: &self.tools,
            max_requests: self.max_requests,
            workspace: Workspace { turn, state },
        };
        let ended = running.run(prompt).await;
        let Workspace { turn, state } = &running.workspace;
        state.turn_ended(turn.id()).await;
        ended
    }
}
