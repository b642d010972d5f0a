//! A client's handle to an open session.

use std::sync::Arc;

use acp_wire::v1::{
    CancelNotification, CloseSessionRequest, ContentBlock, PromptRequest, PromptResponse,
    ProtocolVersion, SessionConfigId, SessionConfigKind, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigOptionValue, SessionId,
    SetSessionConfigOptionRequest, SetSessionModeRequest, SetSessionModeResponse,
    SetSessionModelRequest, SetSessionModelResponse, StopReason, TerminalId, ToolCallId,
};
use acp_wire::{Meta, Request as _, jsonrpc, v2};
use tokio_util::sync::CancellationToken;

use super::agent::AgentConnection;
use super::sessions::ClientSessions;
use crate::capabilities::{agent_capability_error, missing_prompt_capability};
use crate::connection::RequestOptions;
use crate::dialect;
use crate::error::{Error, Result};
use crate::thread::ThreadHandle;

/// Options for prompts. The reader handles the response, because messages after the response are not part of the turn.
const PROMPT_OPTIONS: RequestOptions = RequestOptions {
    is_ordered: true,
    cancel_on_drop: false,
};

/// A handle to an open session, through which a client sends prompts to the agent. Clones are cheap and refer to the
/// same session.
#[derive(Debug, Clone)]
pub struct ClientSession {
    agent: AgentConnection,
    id: SessionId,
    thread: ThreadHandle,
}

impl ClientSession {
    pub(crate) fn new(agent: AgentConnection, id: SessionId, thread: ThreadHandle) -> Self {
        Self { agent, id, thread }
    }

    /// Returns the session's id, chosen by the agent.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the thread, with everything that the user sees of the session.
    #[must_use]
    pub fn thread(&self) -> &ThreadHandle {
        &self.thread
    }

    /// Returns the client's state for the session. Returns `None` if the session is closed, or if the connection's
    /// client is not a `C`.
    #[must_use]
    pub fn state<C: super::Client>(&self) -> Option<Arc<C::State>> {
        self.sessions().client_state::<C>(&self.id)
    }

    /// Returns the connection to the session's agent.
    #[must_use]
    pub fn agent(&self) -> &AgentConnection {
        &self.agent
    }

    fn sessions(&self) -> &Arc<ClientSessions> {
        &self.agent.0.sessions
    }

    /// Runs a turn (`session/prompt`). Sends the prompt, and returns when the turn has ended and all its updates have
    /// been delivered. Dropping the future cancels the turn.
    ///
    /// # Errors
    /// A turn is running, or the session is closed or being loaded ([`Error::InvalidRequest`]); the prompt has content that
    /// the agent does not accept ([`Error::Unsupported`]); the agent returned an error; or the connection has ended.
    /// A cancelled turn is not an error but a stop reason.
    pub async fn prompt(&self, prompt: impl Into<PromptContent>) -> Result<StopReason> {
        let prompt = prompt.into();
        self.check_content(&prompt.content)?;
        self.sessions().begin_turn(&self.id, &prompt.content)?;
        let mut turn = CancelOnDropGuard {
            session: self,
            finished: false,
        };
        let end = match self.agent.version() {
            ProtocolVersion::V2 => self.prompt_v2(prompt).await,
            _ => self.prompt_v1(prompt).await,
        };
        turn.finished = true;
        end
    }

    /// Runs a turn in version 1, where the response ends the turn.
    async fn prompt_v1(&self, prompt: PromptContent) -> Result<StopReason> {
        let mut request = PromptRequest::new(&self.id, prompt.content);
        request.meta = prompt.meta;
        let (sessions, id) = (Arc::clone(self.sessions()), self.id.clone());
        let on_answer = move |answer: Result<&PromptResponse, &Error>| {
            let stop_reason = match answer {
                Ok(answer) => {
                    sessions.set_turn_usage(&id, answer.usage.as_ref());
                    Some(&answer.stop_reason)
                }
                // The prompt was dropped before it was sent.
                Err(Error::Cancelled) => Some(&StopReason::Cancelled),
                Err(_) => None,
            };
            sessions.end_turn(&id, stop_reason);
        };
        let conn = self.agent.connection();
        let answer = conn
            .request_with(&request, PROMPT_OPTIONS, on_answer)
            .await?;
        Ok(answer.stop_reason)
    }

    /// Runs a turn in version 2, where the response confirms only that the prompt was accepted, as described in
    /// `thread/turn.rs`.
    async fn prompt_v2(&self, prompt: PromptContent) -> Result<StopReason> {
        // The prompt was queued, and cancelled before it was accepted.
        let was_queued = |error: &Error| matches!(error, Error::Rpc(e) if e.code == jsonrpc::Error::REQUEST_CANCELLED);
        let mut request = v2::PromptRequest::new(&self.id, prompt.content);
        request.meta = prompt.meta;
        let end = self.sessions().wait_for_turn(&self.id);
        let (sessions, id) = (Arc::clone(self.sessions()), self.id.clone());
        let on_answer = move |answer: Result<&v2::PromptResponse, &Error>| match answer {
            Ok(answer) => drop(sessions.accept_prompt(&id, &answer.message_id)),
            Err(error) => {
                let is_cancelled = matches!(error, Error::Cancelled) || was_queued(error);
                sessions.end_turn(&id, is_cancelled.then_some(&StopReason::Cancelled));
            }
        };
        let conn = self.agent.connection();
        match conn.request_with(&request, PROMPT_OPTIONS, on_answer).await {
            // If the session is closed, no end of the turn is reported.
            Ok(_) => end.await.unwrap_or(Ok(StopReason::Cancelled)),
            Err(error) if was_queued(&error) => Ok(StopReason::Cancelled),
            Err(error) => Err(error),
        }
    }

    /// Cancels the running turn, if any. Pending permission requests get the outcome `cancelled`. The turn ends with
    /// [`StopReason::Cancelled`] when the agent confirms the cancellation. See "Cancellation" on the specification's
    /// page "Prompt Turn".
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn cancel(&self) -> Result<()> {
        if let Some(turn) = self.begin_cancel() {
            let cancel = CancelNotification::new(&self.id);
            let sent = self.agent.connection().notify(&cancel).await;
            turn.cancel();
            sent?;
        }
        Ok(())
    }

    /// Cancels one tool call without ending the turn (`tool_call/cancel`, version 2). The agent reports the
    /// cancellation with an update.
    ///
    /// # Errors
    /// The agent does not declare that the call can be cancelled; the agent returned an error; or the connection has
    /// ended.
    #[cfg(feature = "unstable-v2")]
    pub async fn cancel_tool_call(&self, id: impl Into<ToolCallId>) -> Result<()> {
        let id = id.into();
        let offered = self.thread.read(|thread| {
            let call = thread.tool_call(&id);
            call.and_then(|call| call.capabilities.as_ref()?.cancel.as_ref())
                .is_some()
        });
        if !offered {
            return Err(agent_capability_error(format!("cancelling tool call {id}")));
        }
        let request = v2::CancelToolCallRequest::new(&self.id, id);
        let conn = self.agent.connection();
        conn.request(&request).await.map(drop)
    }

    /// Terminates a display terminal's command without ending the turn (`terminal/cancel`, version 2). The agent
    /// reports the exit status with an update.
    ///
    /// # Errors
    /// The agent does not declare that the command can be cancelled; the agent returned an error; or the connection has
    /// ended.
    #[cfg(feature = "unstable-v2")]
    pub async fn cancel_terminal(&self, id: impl Into<TerminalId>) -> Result<()> {
        let id = id.into();
        let offered = self.thread.read(|thread| {
            let terminal = thread.terminal(&id);
            terminal
                .and_then(|terminal| terminal.capabilities.as_ref()?.cancel.as_ref())
                .is_some()
        });
        if !offered {
            return Err(agent_capability_error(format!("cancelling terminal {id}")));
        }
        let request = v2::CancelTerminalRequest::new(&self.id, id);
        let conn = self.agent.connection();
        conn.request(&request).await.map(drop)
    }

    /// Marks the running turn as cancelled in the thread, and returns the turn's token, or `None` if no turn is
    /// running. Cancelling the token resolves pending permission requests. The caller must first notify the agent. An
    /// agent that gets the outcome `cancelled` before it knows about the cancellation may treat it as a rejection, and
    /// end the turn with another stop reason.
    fn begin_cancel(&self) -> Option<CancellationToken> {
        let turn = self.sessions().running_turn(&self.id)?;
        self.thread.change(crate::thread::Thread::cancel_turn);
        Some(turn)
    }

    /// Sets the session's mode with a config option or `session/set_mode`, whichever the agent supports.
    ///
    /// # Errors
    /// The agent has no modes, or does not have the requested one; the agent returned an error; or the connection has
    /// ended.
    pub async fn set_mode(&self, mode: &str) -> Result<()> {
        let option = self.thread.read(|thread| {
            let is_mode = |o: &&acp_wire::v1::SessionConfigOption| {
                o.category == Some(SessionConfigOptionCategory::Mode)
            };
            thread
                .config_options()
                .iter()
                .find(is_mode)
                .map(|o| o.id.clone())
        });
        let option = option.ok_or_else(|| agent_capability_error("modes"))?;
        self.set_config_option(&option, mode).await
    }

    /// Sets a config option. By the time this method returns, the thread contains the new value. A boolean can be
    /// passed as the string `true` or `false`. See "From the Client" on the specification's page "Session Config
    /// Options".
    ///
    /// # Errors
    /// The option or the value does not exist ([`Error::InvalidRequest`], which lists the valid ones); the agent returned an
    /// error; or the connection has ended.
    pub async fn set_config_option(
        &self,
        option: impl Into<SessionConfigId>,
        value: impl Into<SessionConfigOptionValue>,
    ) -> Result<()> {
        let (option, value) = (option.into(), value.into());
        let value = self.check_option(&option, value)?;
        let thread = self.thread.clone();
        let conn = self.agent.connection();
        if let SessionConfigOptionValue::Id(value) = &value {
            let (modes_only, models_only) = self
                .thread
                .read(|thread| (thread.uses_set_mode(), thread.uses_set_model()));
            if modes_only && option.as_str() == crate::thread::MODE_OPTION_ID {
                let request = SetSessionModeRequest::new(&self.id, value.as_str());
                let mode = request.mode_id.clone();
                let on_answer = move |answer: Result<&SetSessionModeResponse, &Error>| {
                    if answer.is_ok() {
                        thread.change(|thread| thread.set_mode(&mode));
                    }
                };
                conn.request_with(&request, RequestOptions::default(), on_answer)
                    .await?;
                return Ok(());
            }
            if models_only && option.as_str() == crate::thread::MODEL_OPTION_ID {
                let request = SetSessionModelRequest::new(&self.id, value.as_str());
                let model = request.model_id.clone();
                let on_answer = move |answer: Result<&SetSessionModelResponse, &Error>| {
                    if answer.is_ok() {
                        thread.change(|thread| thread.set_model(&model));
                    }
                };
                conn.request_with(&request, RequestOptions::default(), on_answer)
                    .await?;
                return Ok(());
            }
        }
        let replace = move |options: &[SessionConfigOption]| {
            thread.change(|thread| thread.set_config_options(options));
        };
        if self.agent.version() == ProtocolVersion::V2 {
            let request = v2::SetSessionConfigOptionRequest::new(&self.id, option, value);
            conn.request_with(&request, RequestOptions::default(), move |answer| {
                if let Ok(answer) = answer {
                    replace(&dialect::options_from_v2(answer.config_options.clone()));
                }
            })
            .await?;
            return Ok(());
        }
        let request = SetSessionConfigOptionRequest::new(&self.id, option, value);
        conn.request_with(&request, RequestOptions::default(), move |answer| {
            if let Ok(answer) = answer {
                replace(&answer.config_options);
            }
        })
        .await?;
        Ok(())
    }

    /// Checks that the option and the value exist, and converts a boolean that was passed as a string.
    fn check_option(
        &self,
        id: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<SessionConfigOptionValue> {
        self.thread.read(|thread| {
            let options = thread.config_options();
            let Some(option) = options.iter().find(|o| o.id == *id) else {
                let known: Vec<&str> = options.iter().map(|o| o.id.as_str()).collect();
                return Err(Error::InvalidRequest(format!(
                    "config option not found: {id}; available options: {}",
                    join_or_none(&known)
                )));
            };
            match (&option.kind, value) {
                (SessionConfigKind::Select(select), SessionConfigOptionValue::Id(value)) => {
                    if select.options.iter().any(|o| o.value == value) {
                        return Ok(SessionConfigOptionValue::Id(value));
                    }
                    let known: Vec<&str> =
                        select.options.iter().map(|o| o.value.as_str()).collect();
                    Err(Error::InvalidRequest(format!(
                        "invalid value {value} for config option {id}; valid values: {}",
                        join_or_none(&known)
                    )))
                }
                (SessionConfigKind::Boolean { .. }, SessionConfigOptionValue::Id(value)) => value
                    .as_str()
                    .parse()
                    .map(SessionConfigOptionValue::Boolean)
                    .map_err(|_| {
                        Error::InvalidRequest(format!("invalid value {value} for config option {id}; valid values: true, false"))
                    }),
                (SessionConfigKind::Select(_), SessionConfigOptionValue::Boolean(value)) => {
                    Err(Error::InvalidRequest(format!("invalid value {value} for config option {id}")))
                }
                (_, value) => Ok(value),
            }
        })
    }

    /// Closes the session (`session/close`). The agent cancels the turn and frees the session's resources.
    ///
    /// # Errors
    /// The agent does not support the method, the agent returned an error, or the connection has ended.
    pub async fn close(&self) -> Result<()> {
        self.agent.require_method(CloseSessionRequest::METHOD)?;
        self.agent
            .connection()
            .request(&CloseSessionRequest::new(&self.id))
            .await?;
        self.sessions().remove(&self.id);
        Ok(())
    }

    /// Checks that the agent accepts every content block of a prompt. See "User Message" on the specification's page
    /// "Prompt Turn".
    pub(super) fn check_content(&self, content: &[ContentBlock]) -> Result<()> {
        let takes = &self.agent.capabilities().prompt_capabilities;
        match missing_prompt_capability(takes, content) {
            Some(missing) => Err(agent_capability_error(format!(
                "promptCapabilities.{missing}"
            ))),
            None => Ok(()),
        }
    }
}

fn join_or_none(known: &[&str]) -> String {
    if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    }
}

/// A guard that cancels the turn when the turn's future is dropped.
struct CancelOnDropGuard<'a> {
    session: &'a ClientSession,
    finished: bool,
}

impl Drop for CancelOnDropGuard<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if let Some(turn) = self.session.begin_cancel() {
            let cancel = CancelNotification::new(&self.session.id);
            self.session.agent.connection().notify_now(cancel);
            turn.cancel();
        }
    }
}

/// The content of a prompt. It can be created from a string (`session.prompt("…")`) or a list of content blocks. See
/// "User Message" on the specification's page "Prompt Turn".
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PromptContent {
    /// The content blocks, in order. In addition to text and resource links, an agent accepts the types that it
    /// declares in [`AgentCapabilities::prompt_capabilities`](acp_wire::v1::AgentCapabilities::prompt_capabilities).
    pub content: Vec<ContentBlock>,
    /// Custom data (`_meta`).
    pub meta: Option<Meta>,
}

impl PromptContent {
    /// Creates a prompt from content blocks, without custom data.
    #[must_use]
    pub fn new(content: Vec<ContentBlock>) -> Self {
        Self {
            content,
            meta: None,
        }
    }

    /// Sets custom data (`_meta`).
    #[must_use]
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }
}

impl From<&str> for PromptContent {
    fn from(text: &str) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }
}

impl From<String> for PromptContent {
    fn from(text: String) -> Self {
        Self::new(vec![ContentBlock::text(text)])
    }
}

impl From<Vec<ContentBlock>> for PromptContent {
    fn from(content: Vec<ContentBlock>) -> Self {
        Self::new(content)
    }
}
