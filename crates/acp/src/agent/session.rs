//! An open session, from the agent's point of view.

use std::any::Any;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use acp_wire::Meta;
use acp_wire::v1::{
    AvailableCommand, AvailableCommandsUpdate, ConfigOptionUpdate, ContentBlock, ContentChunk,
    CurrentModeUpdate, MessageId, Notice, Plan, PlanEntry, PlanId, PlanItems, PlanRemoved,
    PlanUpdate, PlanUpdateContent, SessionConfigOption, SessionId, SessionInfoUpdate,
    SessionUpdate, ToolCallId, UsageUpdate,
};
use acp_wire::v2;
use tokio_util::sync::CancellationToken;

use super::Agent;
use super::config;
use super::display_terminal::OpeningId;
use super::initialize::ClientInfo;
use super::recording::SessionRecording;
use super::tool_call::{NewToolCall, ToolCallHandle};
use super::turn_queue::TurnTicket;
use crate::connection::Connection;
use crate::error::{Error, Result};
use crate::lru_map::LruMap;
use crate::session_setup::SessionSetup;

/// The result of opening a session: the agent's own [`State`](super::Agent::State) `S`, and the config options.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct OpenedSession<S = ()> {
    /// The agent's own data for the session.
    pub state: S,
    /// The config options, most important first. The option of category `mode` is the session's mode.
    pub config_options: Vec<SessionConfigOption>,
    /// Custom data for the response.
    pub meta: Option<Meta>,
}

impl OpenedSession {
    /// Creates a result without config options, for agents whose state is `()`.
    #[must_use]
    pub fn new() -> Self {
        Self::with_state(())
    }
}

impl<S> OpenedSession<S> {
    /// Creates a result with the agent's state and without config options.
    #[must_use]
    pub fn with_state(state: S) -> Self {
        Self {
            state,
            config_options: Vec::new(),
            meta: None,
        }
    }

    /// Sets the config options that the session starts with.
    #[must_use]
    pub fn config_options(mut self, options: Vec<SessionConfigOption>) -> Self {
        self.config_options = options;
        self
    }

    /// Sets custom data for the response.
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// A handle to an open session, through which an agent sends updates to the client. Clones are cheap and refer to the
/// same session.
///
/// Its methods send updates. Each waits while the client reads slowly, and fails if the connection has ended. If the
/// agent has a [`Recorder`](super::Recorder), each also waits for the recorder, and fails with
/// [`Error::RecordFailed`] if the recorder does.
#[derive(Clone)]
pub struct Session(Arc<SessionInner>);

struct SessionInner {
    id: SessionId,
    cwd: String,
    roots: Vec<String>,
    conn: Connection,
    client: Arc<ClientInfo>,
    /// A part of generated ids that keeps them unique even if the session is opened again.
    opening_id: OpeningId,
    /// Whether updates are discarded instead of sent.
    is_muted: AtomicBool,
    /// The session's recording, if the agent has a recorder.
    recording: Option<SessionRecording>,
    state: Mutex<AgentSessionState>,
    /// The agent's `A::State`, once the session is open. [`AgentSide`](super::side::AgentSide) owns the state.
    agent_state: OnceLock<Weak<dyn Any + Send + Sync>>,
    /// Held by the running turn, so that the session runs one turn at a time.
    turn_lock: Arc<tokio::sync::Mutex<()>>,
}

/// The maximum number of unfinished tool calls whose titles are stored.
const MAX_TOOL_CALL_TITLES: usize = 1024;

#[derive(Default)]
pub(super) struct AgentSessionState {
    config_options: Vec<SessionConfigOption>,
    /// The chunk type and the id of the current message. The next chunk of the same type continues the message.
    pub(super) current_message: Option<(&'static str, MessageId)>,
    message_count: u64,
    /// The number of tool call ids that the library has generated.
    tool_call_count: u64,
    /// The titles of unfinished tool calls, for version 2 permission requests.
    titles: LruMap<String, MAX_TOOL_CALL_TITLES>,
    /// All plans. For clients that support only one plan, their steps are merged.
    plans: Vec<(PlanId, Vec<PlanEntry>)>,
    /// The number of unanswered questions to the user in the current turn.
    pending_questions: usize,
    /// A counter that changes when a turn starts or ends, so that questions from earlier turns no longer count as
    /// pending.
    work_epoch: u64,
    /// Whether a turn is running, according to the last report to version 2 clients.
    is_turn_running: bool,
    /// The cancellation token of the turn that the agent is working on.
    prompt_token: Option<CancellationToken>,
    /// The cancellation tokens of the running and queued turns, for `session/cancel`.
    turn_tokens: Vec<CancellationToken>,
}

/// A guard that marks the session as working on a prompt until dropped.
pub(super) struct PromptGuard(Session);

impl Drop for PromptGuard {
    fn drop(&mut self) {
        self.0.lock_state().prompt_token = None;
    }
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
        recording: Option<SessionRecording>,
    ) -> Self {
        Self(Arc::new(SessionInner {
            id,
            cwd: setup.cwd.clone(),
            roots: std::iter::once(&setup.cwd)
                .chain(&setup.additional_directories)
                .cloned()
                .collect(),
            conn,
            client,
            opening_id: new_opening_id(),
            is_muted: AtomicBool::new(false),
            recording,
            state: Mutex::default(),
            agent_state: OnceLock::new(),
            turn_lock: Arc::default(),
        }))
    }

    /// Creates a subagent's session, which shares the connection and the roots of this session.
    pub(super) fn new_subagent_session(&self, id: SessionId) -> Self {
        Self(Arc::new(SessionInner {
            id,
            cwd: self.0.cwd.clone(),
            roots: self.0.roots.clone(),
            conn: self.0.conn.clone(),
            client: Arc::clone(&self.0.client),
            opening_id: new_opening_id(),
            is_muted: AtomicBool::new(false),
            recording: self
                .0
                .recording
                .as_ref()
                .map(SessionRecording::new_for_subagent),
            state: Mutex::default(),
            agent_state: self.0.agent_state.clone(),
            turn_lock: Arc::default(),
        }))
    }

    /// Stores a reference to the agent's state for this session.
    pub(super) fn set_state<A: Agent>(&self, state: &Arc<A::State>) {
        let state: Arc<dyn Any + Send + Sync> = Arc::<A::State>::clone(state);
        // Each session is opened once.
        let _ = self.0.agent_state.set(Arc::downgrade(&state));
    }

    /// Returns `true` if `self` and `other` are clones of one session. Two sessions with the same id are different if
    /// they were opened separately.
    pub(super) fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the agent's state for this session, or `None` if the session is still opening or already closed.
    pub(super) fn agent_state<A: Agent>(&self) -> Option<Arc<A::State>> {
        self.0.agent_state.get()?.upgrade()?.downcast().ok()
    }

    /// Returns the agent's state for this session, or an error if the session is not open.
    ///
    /// # Errors
    /// The session is not open.
    pub(super) fn require_agent_state<A: Agent>(&self) -> Result<Arc<A::State>> {
        self.agent_state::<A>()
            .ok_or_else(|| Error::internal(format!("session not open: {}", self.id())))
    }

    pub(super) fn lock_state(&self) -> MutexGuard<'_, AgentSessionState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of the session. See "Session ID" on the specification's page "Session Setup".
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// Returns the working directory as an absolute path on the agent's or the client's system. See "Working Directory"
    /// on the specification's page "Session Setup".
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.0.cwd
    }

    /// Returns the roots as absolute paths: the working directory first, then any `additionalDirectories`.
    #[must_use]
    pub fn roots(&self) -> &[String] {
        &self.0.roots
    }

    /// Returns the client of the connection.
    #[must_use]
    pub fn client(&self) -> &ClientInfo {
        &self.0.client
    }

    /// Returns the connection, for sending messages that this type has no method for.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.0.conn
    }

    pub(crate) fn muted(&self) -> &AtomicBool {
        &self.0.is_muted
    }

    pub(super) fn recording(&self) -> Option<&SessionRecording> {
        self.0.recording.as_ref()
    }

    pub(crate) fn opening_id(&self) -> &OpeningId {
        &self.0.opening_id
    }

    /// Sends a chunk of the agent's message (`agent_message_chunk`) as Markdown text. Consecutive chunks form one
    /// message, until a tool call, a thought or the end of the turn.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn send_message(&self, text: impl AsRef<str>) -> Result<()> {
        self.send_text_chunk(AGENT_CHUNK, text.as_ref()).await
    }

    /// Sends a chunk of the agent's thoughts (`agent_thought_chunk`), as Markdown text.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn send_thought(&self, text: impl AsRef<str>) -> Result<()> {
        self.send_text_chunk(THOUGHT_CHUNK, text.as_ref()).await
    }

    /// Sends an image, a link to a file or other content as a chunk of the agent's message. See the specification's
    /// page "Content".
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn send_message_content(&self, content: impl Into<ContentBlock>) -> Result<()> {
        self.send_update(SessionUpdate::AgentMessageChunk(ContentChunk::new(content)))
            .await
    }

    /// Sends a chunk of the user's message (`user_message_chunk`). Use this only to replay a session, because the
    /// client already knows the prompts that it sends.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn replay_user_message(&self, content: impl Into<ContentBlock>) -> Result<()> {
        self.send_update(SessionUpdate::UserMessageChunk(ContentChunk::new(content)))
            .await
    }

    /// Returns the message id for the next chunk of this type.
    pub(super) fn chunk_message_id(&self, kind: &'static str) -> MessageId {
        let mut state = self.lock_state();
        match &state.current_message {
            Some((speaker, id)) if *speaker == kind => id.clone(),
            _ => {
                let id = state.next_message_id(&self.0.opening_id);
                state.current_message = Some((kind, id.clone()));
                id
            }
        }
    }

    /// Generates a new message id, unique in the session.
    pub(crate) fn new_message_id(&self) -> MessageId {
        self.lock_state().next_message_id(&self.0.opening_id)
    }

    /// Ends the current message, so that the next chunk starts a new one.
    pub(crate) fn end_message(&self) {
        self.lock_state().current_message = None;
    }

    /// Reports a new tool call. If you choose the id yourself, it must be new in the session. See "Creating" on the
    /// specification's page "Tool Calls".
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn report_tool_call(&self, call: impl Into<NewToolCall>) -> Result<ToolCallHandle> {
        let call = call
            .into()
            .into_tool_call(|| self.lock_state().next_tool_call_id(&self.0.opening_id));
        let handle = ToolCallHandle::new(self.clone(), call.tool_call_id.clone());
        self.send_update(SessionUpdate::ToolCall(call.into()))
            .await?;
        Ok(handle)
    }

    /// Returns the last reported title of an unfinished tool call.
    pub(crate) fn tool_call_title(&self, call: &ToolCallId) -> Option<String> {
        self.lock_state().titles.get(call.as_str()).cloned()
    }

    /// Reports the full plan, which replaces the previous plan. See "Creating Plans" on the specification's page "Agent
    /// Plan".
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn set_plan(&self, entries: Vec<PlanEntry>) -> Result<()> {
        self.send_update(SessionUpdate::Plan(Plan::new(entries)))
            .await
    }

    /// Reports a full plan that replaces the plan with the same id, for sessions with several plans. A client that
    /// supports only one plan (version 1, without `plan`) receives a single plan with the steps of all plans.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn set_plan_by_id(
        &self,
        id: impl Into<PlanId>,
        entries: Vec<PlanEntry>,
    ) -> Result<()> {
        let id = id.into();
        if self.0.client.supports_plans() {
            let items = PlanUpdateContent::Items(PlanItems::new(id, entries));
            let update = SessionUpdate::PlanUpdate(PlanUpdate::new(items));
            return self.send_update(update).await;
        }
        let all = self.lock_state().replace_plan(id, entries);
        self.set_plan(all).await
    }

    /// Removes a plan (`plan_removed`). A client that supports only one plan receives a single plan with the remaining
    /// steps.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn remove_plan(&self, id: impl Into<PlanId>) -> Result<()> {
        let id = id.into();
        if self.0.client.supports_plans() {
            let update = SessionUpdate::PlanRemoved(PlanRemoved::new(id));
            return self.send_update(update).await;
        }
        let all = self.lock_state().replace_plan(id, Vec::new());
        self.set_plan(all).await
    }

    /// Shows the user a notice outside the conversation. Does nothing if the client does not support notices (version
    /// 1, without `session.notices`).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn show_notice(&self, notice: Notice) -> Result<()> {
        let session = self.0.client.capabilities().session.as_ref();
        if session.is_some_and(|session| session.notices.is_some()) {
            self.send_update(SessionUpdate::Notice(notice.into()))
                .await?;
        }
        Ok(())
    }

    /// Announces the session's slash commands, replacing any announced before. See "Advertising commands" on the
    /// specification's page "Slash Commands".
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn set_commands(&self, commands: Vec<AvailableCommand>) -> Result<()> {
        self.send_update(SessionUpdate::AvailableCommandsUpdate(
            AvailableCommandsUpdate::new(commands),
        ))
        .await
    }

    /// Sets the session title that the user sees (`session_info_update`).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn set_title(&self, title: impl Into<String>) -> Result<()> {
        self.send_update(SessionUpdate::SessionInfoUpdate(
            SessionInfoUpdate::new().title(title).into(),
        ))
        .await
    }

    /// Reports the context window usage, in tokens, and the session's cost so far (`usage_update`).
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn report_usage(&self, usage: UsageUpdate) -> Result<()> {
        self.send_update(SessionUpdate::UsageUpdate(usage.into()))
            .await
    }

    /// Returns the current config options, including those that the client does not support.
    #[must_use]
    pub fn config_options(&self) -> Vec<SessionConfigOption> {
        self.lock_state().config_options.clone()
    }

    /// Replaces all config options and reports the change. If this changes the session's mode, also reports the new
    /// mode. See "From the Agent" on the specification's page "Session Config Options".
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn set_config_options(&self, options: Vec<SessionConfigOption>) -> Result<()> {
        let mode = self.replace_config_options(options.clone());
        let shown = config::supported_options(options, self.0.client.supports_boolean_options());
        self.send_update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(
            shown,
        )))
        .await?;
        if let (Some(mode), false) = (mode, self.0.client.is_v2()) {
            self.send_update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(
                mode,
            )))
            .await?;
        }
        Ok(())
    }

    /// Replaces the config options, and returns the session's new mode if it changed.
    pub(crate) fn replace_config_options(
        &self,
        options: Vec<SessionConfigOption>,
    ) -> Option<acp_wire::v1::SessionModeId> {
        let mut state = self.lock_state();
        let before = config::current_mode(&state.config_options);
        let after = config::current_mode(&options);
        state.config_options = options;
        after.filter(|after| before.as_ref() != Some(after))
    }

    /// Marks a question to the user as pending until the returned guard is dropped. `turn` is the token of the turn
    /// that asks the question. Version 2 clients are informed that the agent is waiting for the user.
    pub(crate) async fn begin_question<'a>(
        &'a self,
        turn: &'a CancellationToken,
    ) -> Result<PendingQuestion<'a>> {
        let (first, work) = {
            let mut state = self.lock_state();
            state.pending_questions += 1;
            (state.pending_questions == 1, state.work_epoch)
        };
        let question = PendingQuestion {
            session: self,
            turn,
            work_epoch: work,
            is_pending: true,
            needs_state_update: false,
        };
        if first && self.0.client.is_v2() {
            let state = v2::RequiresActionStateUpdate::new();
            self.send_state_update(v2::StateUpdate::RequiresAction(state))
                .await?;
        }
        Ok(question)
    }

    /// Sets whether a turn is running. Call this before reporting the change. Another task may then report the new
    /// state first, but the last report is always correct.
    pub(crate) fn set_working(&self, working: bool) {
        let mut state = self.lock_state();
        state.is_turn_running = working;
        state.work_epoch += 1;
        state.pending_questions = 0;
    }

    /// Marks the agent as working on a prompt until the returned guard is dropped.
    pub(super) fn begin_prompt(&self, turn: CancellationToken) -> PromptGuard {
        self.lock_state().prompt_token = Some(turn);
        PromptGuard(self.clone())
    }

    /// Returns `true` if [`Agent::prompt`] is running in a turn that has not been cancelled.
    pub(super) fn is_working(&self) -> bool {
        let state = self.lock_state();
        state
            .prompt_token
            .as_ref()
            .is_some_and(|turn| !turn.is_cancelled())
    }

    /// Returns `true` if [`Agent::prompt`] is running, even in a turn that has been cancelled.
    pub(super) fn is_prompting(&self) -> bool {
        self.lock_state().prompt_token.is_some()
    }

    /// Returns an update that reports the agent's current state: idle, running or waiting for the user.
    pub(crate) fn current_state_update(&self) -> v2::StateUpdate {
        let state = self.lock_state();
        match (state.is_turn_running, state.pending_questions) {
            (false, _) => v2::StateUpdate::Idle(v2::IdleStateUpdate::new()),
            (true, 0) => v2::StateUpdate::Running(v2::RunningStateUpdate::new()),
            (true, _) => v2::StateUpdate::RequiresAction(v2::RequiresActionStateUpdate::new()),
        }
    }

    pub(crate) fn register_turn(&self, cancel: CancellationToken) {
        self.lock_state().turn_tokens.push(cancel);
    }

    /// Returns the number of running and queued turns.
    pub(crate) fn turn_count(&self) -> usize {
        self.lock_state().turn_tokens.len()
    }

    /// Removes the turns whose tokens are cancelled. This includes all turns that have ended.
    pub(crate) fn remove_ended_turns(&self) {
        self.lock_state()
            .turn_tokens
            .retain(|turn| !turn.is_cancelled());
    }

    /// Cancels all turns (`session/cancel`).
    pub(crate) fn cancel(&self) {
        for turn in &self.lock_state().turn_tokens {
            turn.cancel();
        }
    }

    /// Waits until no turn is running in this session, and blocks new turns until the returned guard is dropped.
    pub(crate) async fn lock_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.turn_lock.lock().await
    }

    /// Returns a ticket for a new turn, which runs after all running and queued turns.
    pub(crate) fn take_turn_ticket(&self) -> TurnTicket {
        TurnTicket::take(&self.0.turn_lock)
    }

    /// Creates the error for a capability that the client does not support.
    pub(crate) fn client_capability_error(what: &str) -> Error {
        Error::Unsupported {
            peer: "client",
            what: what.to_owned(),
        }
    }
}

/// A guard that marks a question to the user as pending until dropped.
pub(crate) struct PendingQuestion<'a> {
    session: &'a Session,
    turn: &'a CancellationToken,
    work_epoch: u64,
    /// Whether the question is still pending.
    is_pending: bool,
    /// Whether the agent's new state has yet to be reported.
    needs_state_update: bool,
}

impl PendingQuestion<'_> {
    /// Marks the question as no longer pending, after an answer or an error. Reports that the agent continues, unless
    /// another question is pending.
    pub(crate) async fn finish(mut self) -> Result<()> {
        self.mark_answered();
        if self.needs_state_update {
            let sent = self
                .session
                .send_state_update(self.session.current_state_update())
                .await;
            self.needs_state_update = false;
            sent?;
        }
        Ok(())
    }

    fn mark_answered(&mut self) {
        if !std::mem::take(&mut self.is_pending) {
            return;
        }
        let mut state = self.session.lock_state();
        if state.work_epoch == self.work_epoch {
            state.pending_questions -= 1;
            self.needs_state_update = state.pending_questions == 0 && self.session.0.client.is_v2();
        }
    }
}

impl Drop for PendingQuestion<'_> {
    /// Reports that the agent continues without an answer, unless its turn was cancelled.
    fn drop(&mut self) {
        self.mark_answered();
        if self.needs_state_update && !self.turn.is_cancelled() {
            self.session
                .send_state_update_now(self.session.current_state_update());
        }
    }
}

pub(super) const USER_CHUNK: &str = "user_message_chunk";
pub(super) const AGENT_CHUNK: &str = "agent_message_chunk";
pub(super) const THOUGHT_CHUNK: &str = "agent_thought_chunk";

impl AgentSessionState {
    fn next_message_id(&mut self, mark: &str) -> MessageId {
        self.message_count += 1;
        format!("msg_{mark}_{}", self.message_count).into()
    }

    fn next_tool_call_id(&mut self, mark: &str) -> ToolCallId {
        self.tool_call_count += 1;
        format!("call_{mark}_{}", self.tool_call_count).into()
    }

    pub(super) fn update_title(
        &mut self,
        call: &ToolCallId,
        title: Option<&String>,
        finished: bool,
    ) {
        if finished {
            self.titles.remove(call.as_str());
        } else if let Some(title) = title {
            self.titles.get_or_insert(call.as_str()).clone_from(title);
        }
    }

    /// Adds or replaces a plan, or removes it if `entries` is empty. Returns the steps of all plans.
    fn replace_plan(&mut self, id: PlanId, entries: Vec<PlanEntry>) -> Vec<PlanEntry> {
        match self.plans.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = entries,
            None => self.plans.push((id, entries)),
        }
        self.plans.retain(|(_, entries)| !entries.is_empty());
        let all = self.plans.iter().flat_map(|(_, entries)| entries);
        all.cloned().collect()
    }
}

fn new_opening_id() -> OpeningId {
    let id = uuid::Uuid::new_v4().simple().to_string();
    id.get(..8).unwrap_or_default().into()
}
