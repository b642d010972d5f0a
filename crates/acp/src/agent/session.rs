//! A session as an agent has it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_wire::Meta;
use acp_wire::v1::{
    AvailableCommand, AvailableCommandsUpdate, ConfigOptionUpdate, ContentBlock, ContentChunk,
    CurrentModeUpdate, Plan, PlanEntry, SessionConfigOption, SessionId, SessionInfoUpdate,
    SessionNotification, SessionUpdate, ToolCall, UsageUpdate,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::config;
use super::side::ClientInfo;
use super::tool_call::ToolCallHandle;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::session_setup::SessionSetup;

/// What an opened session has.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SessionOpened {
    /// Its config options, the most important first. The one of category `mode` is its mode.
    pub config_options: Vec<SessionConfigOption>,
    /// Custom data for the answer.
    pub meta: Option<Meta>,
}

impl SessionOpened {
    /// Without config options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the config options.
    #[must_use]
    pub fn config_options(mut self, options: Vec<SessionConfigOption>) -> Self {
        self.config_options = options;
        self
    }
}

/// A session. Cloning it is cheap; all clones are the same session.
///
/// Its methods send updates. Each waits when the client reads slowly, and fails when the connection
/// has ended.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

struct Inner {
    id: SessionId,
    cwd: String,
    roots: Vec<String>,
    conn: Connection,
    client: Arc<ClientInfo>,
    state: Mutex<State>,
    /// Turns of a session run one after the other.
    turns: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    config_options: Vec<SessionConfigOption>,
    /// Of the turns that run or wait; cancelled by `session/cancel`.
    turns: Vec<CancellationToken>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.0.id)
            .field("cwd", &self.0.cwd)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(crate) fn new(
        id: SessionId,
        setup: &SessionSetup,
        conn: Connection,
        client: Arc<ClientInfo>,
    ) -> Self {
        Self(Arc::new(Inner {
            id,
            cwd: setup.cwd.clone(),
            roots: std::iter::once(&setup.cwd)
                .chain(&setup.additional_directories)
                .cloned()
                .collect(),
            conn,
            client,
            state: Mutex::default(),
            turns: tokio::sync::Mutex::new(()),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// Its working directory, an absolute path.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.0.cwd
    }

    /// Its roots: the working directory, and the further ones.
    #[must_use]
    pub fn roots(&self) -> &[String] {
        &self.0.roots
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &ClientInfo {
        &self.0.client
    }

    /// The connection, for messages this type has no method for.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.0.conn
    }

    /// Reports a piece of the agent's message: Markdown text.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn message(&self, text: impl AsRef<str>) -> Result<()> {
        self.text_chunk("agent_message_chunk", text.as_ref()).await
    }

    /// Reports a piece of the agent's thoughts.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn thought(&self, text: impl AsRef<str>) -> Result<()> {
        self.text_chunk("agent_thought_chunk", text.as_ref()).await
    }

    /// Reports a piece of the agent's message that is not text.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn message_content(&self, content: impl Into<ContentBlock>) -> Result<()> {
        self.update(SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))
            .await
    }

    /// Replays a piece of what the person said: only when a session is loaded.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn user_message(&self, content: impl Into<ContentBlock>) -> Result<()> {
        self.update(SessionUpdate::UserMessageChunk(ContentChunk::new(content)))
            .await
    }

    /// Reports a new tool call.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn tool_call(&self, call: ToolCall) -> Result<ToolCallHandle> {
        let handle = ToolCallHandle::new(self.clone(), call.tool_call_id.clone());
        self.update(SessionUpdate::ToolCall(call)).await?;
        Ok(handle)
    }

    /// Reports the plan, whole; it replaces the one before.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn plan(&self, entries: Vec<PlanEntry>) -> Result<()> {
        self.update(SessionUpdate::Plan(Plan::new(entries))).await
    }

    /// Announces the slash commands, all of them.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn commands(&self, commands: Vec<AvailableCommand>) -> Result<()> {
        self.update(SessionUpdate::AvailableCommandsUpdate(
            AvailableCommandsUpdate::new(commands),
        ))
        .await
    }

    /// Gives the session a title.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn title(&self, title: impl Into<String>) -> Result<()> {
        self.update(SessionUpdate::SessionInfoUpdate(
            SessionInfoUpdate::new().title(title),
        ))
        .await
    }

    /// Reports how full the model's context is, and the cost.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn usage(&self, usage: UsageUpdate) -> Result<()> {
        self.update(SessionUpdate::UsageUpdate(usage)).await
    }

    /// The config options as they are.
    #[must_use]
    pub fn config_options(&self) -> Vec<SessionConfigOption> {
        self.state().config_options.clone()
    }

    /// Changes the config options, all of them, and reports it: also as a change of mode, if the
    /// option of category `mode` has another value.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn set_config_options(&self, options: Vec<SessionConfigOption>) -> Result<()> {
        let mode = self.replace_config_options(options.clone());
        let shown = config::understood(options, self.0.client.takes_boolean_options());
        self.update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(
            shown,
        )))
        .await?;
        if let Some(mode) = mode {
            self.update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(
                mode,
            )))
            .await?;
        }
        Ok(())
    }

    /// Takes over new config options; gives the mode if it has changed.
    pub(crate) fn replace_config_options(
        &self,
        options: Vec<SessionConfigOption>,
    ) -> Option<acp_wire::v1::SessionModeId> {
        let mut state = self.state();
        let before = config::current_mode(&state.config_options);
        let after = config::current_mode(&options);
        state.config_options = options;
        after.filter(|after| before.as_ref() != Some(after))
    }

    /// Sends an update in the words of version 1.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn update(&self, update: SessionUpdate) -> Result<()> {
        self.0
            .conn
            .notify(&SessionNotification::new(&self.0.id, update))
            .await
    }

    /// The message of which there are the most: written from where it lies, without a copy.
    async fn text_chunk(&self, kind: &'static str, text: &str) -> Result<()> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Params<'a> {
            session_id: &'a str,
            update: Chunk<'a>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Chunk<'a> {
            session_update: &'static str,
            content: Text<'a>,
        }
        #[derive(Serialize)]
        struct Text<'a> {
            r#type: &'static str,
            text: &'a str,
        }
        let content = Text {
            r#type: "text",
            text,
        };
        let update = Chunk {
            session_update: kind,
            content,
        };
        let params = Params {
            session_id: self.0.id.as_str(),
            update,
        };
        self.0
            .conn
            .notify_raw(
                <SessionNotification as acp_wire::Notification>::METHOD,
                &params,
            )
            .await
    }

    pub(crate) fn turn_begins(&self, cancel: CancellationToken) {
        self.state().turns.push(cancel);
    }

    /// Forgets turns that have ended: each cancels its token when it ends.
    pub(crate) fn turn_ends(&self) {
        self.state().turns.retain(|turn| !turn.is_cancelled());
    }

    /// `session/cancel`.
    pub(crate) fn cancel(&self) {
        for turn in &self.state().turns {
            turn.cancel();
        }
    }

    /// Waits until no other turn of this session runs.
    pub(crate) async fn my_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.turns.lock().await
    }

    /// The error for what the client did not say it can do.
    pub(crate) fn not_offered(what: &str) -> Error {
        Error::NotOffered {
            peer: "client",
            what: what.to_owned(),
        }
    }
}
