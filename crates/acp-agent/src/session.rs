//! Defines the state of an open session.
//!
//! Changes that must outlive the process are written to the [`SessionLog`] first.

mod session_tools;
pub(crate) mod steering;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp::Update;
use acp::v1::{ContentBlock, SessionConfigOption, SessionId};

use crate::context::commands::SlashCommands;
use crate::context::compaction::Compaction;
use crate::context::conversation::Conversation;
use crate::log::SessionLog;
use crate::mcp::servers::SessionMcpServers;
use crate::mode::{self, Mode};
use crate::model::error::to_acp_error;
use crate::model::message::ModelMessage;
use crate::models::{ModelRegistry, ModelSelection, RoundModel};
use crate::permission::subject::AlwaysSubject;
use crate::store::error::StoreError;
use crate::store::stored_session::{AlwaysAnswer, ClientInstructions, SessionProperties};
use crate::workspace::access::WorkspaceAccess;

use steering::Steering;

/// A handle to an open session, which the `acp` crate passes to the agent.
#[derive(Clone)]
pub struct OpenSession {
    pub(crate) state: Arc<SessionState>,
    /// Counts this session as open for as long as the session exists.
    pub(crate) _count: Arc<()>,
}

impl std::fmt::Debug for OpenSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSession").finish_non_exhaustive()
    }
}

/// The state of an open session.
pub(crate) struct SessionState {
    /// Direct access to the session's directories, or the reason why this process has none.
    access: Result<WorkspaceAccess, String>,
    log: SessionLog,
    /// The session's directories. The first one is the working directory.
    roots: Vec<String>,
    /// The models that the agent can use.
    registry: Arc<ModelRegistry>,
    /// Whether commands must run in the sandbox.
    pub(crate) is_sandboxed: bool,
    mutable: Mutex<MutableSessionState>,
    pub(crate) servers: SessionMcpServers,
    /// The conversation with the model. The running turn holds the lock.
    pub(crate) conversation: tokio::sync::Mutex<Conversation>,
    /// The slash commands that are available in the session.
    pub(crate) commands: tokio::sync::Mutex<SlashCommands>,
    /// The messages queued for the running turn.
    pub(crate) steering: Steering,
    /// The client's own instructions for the model, if any.
    pub(crate) client_prompt: Option<ClientInstructions>,
}

#[derive(Default)]
struct MutableSessionState {
    mode: Mode,
    selection: ModelSelection,
    /// The user's "always" answers, by subject. `true` means that the subject is allowed.
    always_answers: HashMap<AlwaysSubject, bool>,
    /// The number of tool calls so far.
    calls: u64,
    /// The session's title, as shown to the user.
    title: Option<String>,
    /// The cost of the session so far, in billionths of a US dollar.
    cost: u64,
}

impl SessionState {
    /// Creates the state of a session that is new or reopened.
    pub(crate) fn new(
        own: Result<WorkspaceAccess, String>,
        sandboxed: bool,
        log: SessionLog,
        roots: Vec<String>,
        choice: Arc<ModelRegistry>,
        properties: &SessionProperties,
        conversation: Vec<ModelMessage>,
    ) -> Self {
        // Answers that were given for other directories are about other files and commands.
        let here = properties.always.iter();
        let here = here.filter(|answer| answer.roots == roots);
        let changing = MutableSessionState {
            // An unknown mode, from a later version, becomes the default, which never allows more than the user chose.
            mode: properties.mode.parse().unwrap_or_default(),
            selection: ModelSelection::from_properties(properties),
            always_answers: here
                .map(|answer| (answer.subject.clone(), answer.allowed))
                .collect(),
            calls: properties.calls,
            title: properties.title.clone(),
            cost: properties.spent,
        };
        Self {
            access: own,
            is_sandboxed: sandboxed,
            log,
            roots,
            registry: choice,
            mutable: Mutex::new(changing),
            servers: SessionMcpServers::default(),
            conversation: tokio::sync::Mutex::new(Conversation::from_messages(conversation)),
            commands: tokio::sync::Mutex::default(),
            steering: Steering::default(),
            client_prompt: properties.client_prompt.clone(),
        }
    }

    fn lock_mutable(&self) -> MutexGuard<'_, MutableSessionState> {
        self.mutable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn access(&self) -> Result<&WorkspaceAccess, &str> {
        self.access.as_ref().map_err(String::as_str)
    }

    pub(crate) fn mode(&self) -> Mode {
        self.lock_mutable().mode
    }

    pub(crate) async fn set_mode(&self, mode: Mode) -> Result<(), StoreError> {
        self.log
            .change_properties(move |properties| properties.mode = mode.to_string())
            .await?;
        self.lock_mutable().mode = mode;
        Ok(())
    }

    /// Returns the model and the thought level that were chosen in the session.
    pub(crate) fn model_selection(&self) -> ModelSelection {
        self.lock_mutable().selection.clone()
    }

    pub(crate) async fn choose_model(&self, id: String) -> Result<(), StoreError> {
        let value = id.clone();
        self.log
            .change_properties(move |properties| properties.model = Some(value))
            .await?;
        self.lock_mutable().selection.model = Some(id);
        Ok(())
    }

    pub(crate) async fn choose_thought_level(&self, id: String) -> Result<(), StoreError> {
        let value = id.clone();
        self.log
            .change_properties(move |properties| properties.thought_level = Some(value))
            .await?;
        self.lock_mutable().selection.thought = Some(id);
        Ok(())
    }

    /// Returns the model for the next round.
    pub(crate) fn round_model(&self) -> acp::Result<RoundModel> {
        self.registry
            .round_model(&self.model_selection())
            .map_err(to_acp_error)
    }

    /// Returns `true` if the session's model follows instructions in natural language.
    pub(crate) fn follows_instructions(&self) -> bool {
        self.registry.follows_instructions(&self.model_selection())
    }

    /// Returns the session's config options, most important first (Session Config Options, "Option Ordering").
    pub(crate) fn config_options(&self) -> Vec<SessionConfigOption> {
        let mut options = vec![mode::config_option(self.mode())];
        options.extend(self.registry.config_options(&self.model_selection()));
        options
    }

    /// Returns the remembered answer for `subject`, if one applies in the session's directories.
    pub(crate) fn always_answer(&self, subject: &AlwaysSubject) -> Option<bool> {
        self.lock_mutable().always_answers.get(subject).copied()
    }

    pub(crate) async fn remember(
        &self,
        subject: &AlwaysSubject,
        allowed: bool,
    ) -> Result<(), StoreError> {
        let answer = AlwaysAnswer::new(subject.clone(), allowed, self.roots.clone());
        self.log
            .change_properties(move |properties| properties.always.push(answer))
            .await?;
        self.lock_mutable()
            .always_answers
            .insert(subject.clone(), allowed);
        Ok(())
    }

    /// Returns a tool call id that is unique in the session.
    pub(crate) fn next_call_id(&self) -> String {
        let mut changing = self.lock_mutable();
        changing.calls += 1;
        format!("call_{}", changing.calls)
    }

    /// Returns the cost of the session so far, in billionths of a US dollar.
    pub(crate) fn cost(&self) -> u64 {
        self.lock_mutable().cost
    }

    /// Adds `cost` to the session's total cost and stores the sum.
    pub(crate) async fn add_cost(&self, cost: u64) -> Result<(), StoreError> {
        let spent = self.cost().saturating_add(cost);
        self.log
            .change_properties(move |properties| properties.spent = spent)
            .await?;
        self.lock_mutable().cost = spent;
        Ok(())
    }

    /// Stores an update. Must be called before the update is sent to the client.
    pub(crate) async fn record(&self, update: &Update) -> Result<(), StoreError> {
        let calls = self.lock_mutable().calls;
        self.log.record_update(update, calls).await
    }

    /// Adds a message to the conversation and stores it.
    pub(crate) async fn add_message(
        &self,
        conversation: &mut Conversation,
        message: ModelMessage,
    ) -> Result<(), StoreError> {
        let value = self.log.record(&message).await;
        // The message is added even if it cannot be stored, because each call must have its result.
        conversation.push(message);
        value
    }

    /// Compacts the conversation and stores the compaction. If that cannot be stored, leaves the conversation
    /// unchanged.
    pub(crate) async fn compact(
        &self,
        conversation: &mut Conversation,
        compaction: &Compaction,
    ) -> Result<(), StoreError> {
        self.log.record_compaction(compaction).await?;
        conversation.compact(compaction);
        Ok(())
    }

    /// Derives a title from the prompt (see `title.rs`) if the session has no title yet. Returns the new title, if
    /// there is one.
    pub(crate) async fn derive_title(
        &self,
        prompt: &[ContentBlock],
    ) -> Result<Option<String>, StoreError> {
        if self.lock_mutable().title.is_some() {
            return Ok(None);
        }
        let Some(title) = crate::title::title_from_prompt(prompt) else {
            return Ok(None);
        };
        let value = title.clone();
        self.log
            .change_properties(move |properties| properties.title = Some(value))
            .await?;
        self.lock_mutable().title = Some(title.clone());
        Ok(Some(title))
    }

    /// Sets a title chosen by the user.
    pub(crate) async fn rename(&self, title: &str) -> Result<(), StoreError> {
        let value = title.to_owned();
        self.log
            .change_properties(move |properties| properties.title = Some(value))
            .await?;
        self.lock_mutable().title = Some(title.to_owned());
        Ok(())
    }

    /// Unarchives the session, so that it appears in lists again.
    pub(crate) async fn unarchive(&self) -> Result<(), StoreError> {
        self.log
            .change_properties(|properties| properties.archived = false)
            .await
    }

    /// Folds the stored history after a turn has ended.
    pub(crate) async fn fold_history(&self, id: &SessionId) {
        if let Err(error) = self.log.fold_history().await {
            // The history stays unfolded, but nothing is lost.
            tracing::warn!(session = %id, %error, "cannot fold the stored history");
        }
    }
}
