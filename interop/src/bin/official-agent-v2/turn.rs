//! A turn of a session, from the prompt to the state `idle`.
//!
//! The first word of the prompt determines what happens:
//!
//! | prompt                         | what happens                                                    |
//! |--------------------------------|-----------------------------------------------------------------|
//! | `work`                         | a whole turn: reads `note.txt`, rewrites it, runs two commands  |
//! | `wait`                         | sends `waiting` and continues until it is cancelled             |
//! | `wait-permission`              | requests permission, and sends the outcome as text              |
//! | `wait-command`                 | runs a command that does not exit, until it is cancelled        |
//! | `ask-command`                  | requests permission for a command, without a tool call          |
//! | `ask-person`, `ask-web`        | requests input by a form or on a web page, and sends it as text |
//! | `ask-extension`                | sends `_interop/told` and `_interop/ask` to the client          |
//! | `ask-unknown`, `ask-withdraw`  | sends a request that fails, or cancels its own request          |
//! | `settings`, `content`          | sends the config options, or the types of content in the prompt |
//! | `refuse`, `max-tokens`, `fail` | ends the turn in the way that the prompt names                  |
//! | anything else                  | is repeated                                                     |

use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::v2::ConnectionTo;
use agent_client_protocol::v2::schema::{
    AgentMessage, CommandPermissionSubject, CompleteElicitationNotification, ConfigOptionUpdate,
    ContentBlock, ContentChunk, CreateElicitationRequest, ElicitationAction,
    ElicitationContentValue, ElicitationFormMode, ElicitationMode, ElicitationSchema,
    ElicitationSessionScope, ElicitationUrlMode, ErrorStopReason, IdleStateUpdate,
    IntegerPropertySchema, MessageId, PermissionOption, PermissionOptionKind,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionSubject,
    RequiresActionStateUpdate, RunningStateUpdate, SessionId, SessionUpdate, StateUpdate,
    StopReason, ToolCallStatus, ToolCallUpdate, ToolKind, UpdateSessionNotification, UserMessage,
};
use agent_client_protocol::{Client, Error, JsonRpcRequest, Result, UntypedMessage};
use interop::{QuestionNotification, QuestionRequest};
use serde_json::json;
use tokio::sync::{OwnedMutexGuard, watch};

use crate::sessions::{OfficialV2Session, OfficialV2Sessions};

pub(crate) struct OfficialV2Turn {
    pub(crate) sessions: Arc<OfficialV2Sessions>,
    pub(crate) peer: ConnectionTo<Client>,
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    /// The id of the current message.
    pub(crate) message: MessageId,
    cancel_count: watch::Receiver<u64>,
    /// Prevents other turns of the session while this one runs.
    turn_guard: OwnedMutexGuard<()>,
}

/// Returns the schema of a form that asks for a number.
pub(crate) fn loudness() -> ElicitationSchema {
    let number = IntegerPropertySchema::new().minimum(0).maximum(11);
    ElicitationSchema::new().property("loudness", number, true)
}

impl OfficialV2Turn {
    /// Waits until this turn can run. Returns `None` if the turn is cancelled first, or if the session is not open.
    pub(crate) fn wait(
        sessions: &Arc<OfficialV2Sessions>,
        id: &SessionId,
        peer: &ConnectionTo<Client>,
    ) -> Option<impl Future<Output = Option<Self>> + Send + 'static> {
        let (cwd, mut cancels, turns) = sessions.with_session(id, |session| {
            let cancels = session.cancel_count.subscribe();
            (session.cwd.clone(), cancels, Arc::clone(&session.turn_lock))
        })?;
        let (sessions, id, peer) = (Arc::clone(sessions), id.clone(), peer.clone());
        Some(async move {
            let alone = tokio::select! {
                biased;
                _ = cancels.changed() => return None,
                alone = turns.lock_owned() => alone,
            };
            let mut turn = Self {
                sessions,
                peer,
                id,
                cwd,
                message: MessageId::new(""),
                cancel_count: cancels,
                turn_guard: alone,
            };
            turn.message = turn.new_id("message").into();
            Some(turn)
        })
    }

    /// Returns an id that is new in the session.
    pub(crate) fn new_id(&self, kind: &str) -> String {
        let number = self.session(|session| {
            session.id_count += 1;
            session.id_count
        });
        format!("{kind}-{}", number.unwrap_or_default())
    }

    pub(crate) fn session<T>(&self, f: impl FnOnce(&mut OfficialV2Session) -> T) -> Option<T> {
        self.sessions.with_session(&self.id, f)
    }

    /// Sends an update, and stores it if a replay must include it.
    pub(crate) fn update(&self, update: SessionUpdate) -> Result<()> {
        self.session(|session| {
            if let SessionUpdate::SessionInfoUpdate(info) = &update {
                session.title = info.title.value().cloned();
            }
            if !matches!(update, SessionUpdate::StateUpdate(_)) {
                session.history.push(update.clone());
            }
        });
        let update = UpdateSessionNotification::new(self.id.clone(), update);
        self.peer.send_notification(update)
    }

    pub(crate) fn chunk(text: impl Into<String>, message: MessageId) -> ContentChunk {
        ContentChunk::new(ContentBlock::from(text.into()), message)
    }

    pub(crate) fn say(&self, text: impl Into<String>) -> Result<()> {
        let chunk = Self::chunk(text, self.message.clone());
        self.update(SessionUpdate::AgentMessageChunk(chunk))
    }

    pub(crate) fn change(&self, call: ToolCallUpdate) -> Result<()> {
        self.update(SessionUpdate::ToolCallUpdate(call))
    }

    /// Sends a new message as a whole.
    pub(crate) fn say_whole(&mut self, text: &str) -> Result<()> {
        self.message = self.new_id("message").into();
        let whole = AgentMessage::new(self.message.clone()).content(vec![ContentBlock::from(text)]);
        self.update(SessionUpdate::AgentMessage(whole))
    }

    /// Reports all config options with their current values.
    pub(crate) fn send_settings(&self) -> Result<()> {
        let options = self.session(|session| session.settings.config_options());
        let update = ConfigOptionUpdate::new(options.unwrap_or_default());
        self.update(SessionUpdate::ConfigOptionUpdate(update))
    }

    fn send_state(&self, state: StateUpdate) -> Result<()> {
        self.update(SessionUpdate::StateUpdate(state))
    }

    fn send_running(&self) -> Result<()> {
        self.send_state(StateUpdate::Running(RunningStateUpdate::new()))
    }

    pub(crate) async fn cancelled(&self) {
        // The sender is dropped with the session, which is cancelled first.
        let _ = self.cancel_count.clone().changed().await;
    }

    pub(crate) async fn run(mut self, message: String, prompt: Vec<ContentBlock>) -> Result<()> {
        let said = UserMessage::new(message).content(prompt.clone());
        self.update(SessionUpdate::UserMessage(said))?;
        self.send_running()?;
        // The prompt has been accepted, so a failure ends the turn and not the request.
        let reason = self
            .run_prompt(&prompt)
            .await
            .unwrap_or_else(|error| StopReason::Error(ErrorStopReason::new().error(to_v2(error))));
        self.sessions.store(&self.id)?;
        self.send_state(StateUpdate::Idle(
            IdleStateUpdate::new().stop_reason(reason),
        ))?;
        drop(self.turn_guard);
        Ok(())
    }

    async fn send_request<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response>
    where
        R::Response: Send,
    {
        self.peer.send_request(request).block_task().await
    }

    /// Sends a request to the user. The turn does nothing else until the response arrives.
    async fn ask_user<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response>
    where
        R::Response: Send,
    {
        self.send_state(StateUpdate::RequiresAction(RequiresActionStateUpdate::new()))?;
        let answer = self.send_request(request).await;
        self.send_running()?;
        answer
    }

    pub(crate) async fn ask_permission(
        &self,
        title: &str,
        subject: impl Into<RequestPermissionSubject>,
    ) -> Result<RequestPermissionOutcome> {
        let options = vec![
            PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
            PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
        ];
        let request =
            RequestPermissionRequest::new(self.id.clone(), title, options).subject(subject.into());
        Ok(self.ask_user(request).await?.outcome)
    }

    async fn run_prompt(&mut self, prompt: &[ContentBlock]) -> Result<StopReason> {
        let text: String = prompt
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        match text.split_whitespace().next().unwrap_or_default() {
            "work" => return self.run_work().await,
            "wait" => {
                self.say("waiting")?;
                self.cancelled().await;
                return Ok(StopReason::Cancelled);
            }
            "wait-permission" => return self.wait_permission().await,
            "wait-command" => return self.wait_command().await,
            "ask-command" => {
                let subject = CommandPermissionSubject::new("make clean", self.cwd.as_path());
                let outcome = self.ask_permission("May it be run?", subject).await?;
                self.say(match &outcome {
                    RequestPermissionOutcome::Selected(chosen) => &*chosen.option_id.0,
                    _ => "no answer",
                })?;
            }
            "ask-person" => {
                let scope = ElicitationSessionScope::new(self.id.clone());
                let form = ElicitationFormMode::new(scope, loudness());
                let request =
                    CreateElicitationRequest::new(ElicitationMode::Form(form), "How loud?");
                let answer = self.ask_user(request).await?;
                self.say(match answer.action {
                    ElicitationAction::Accept(accepted) => {
                        let filled = accepted.content.unwrap_or_default();
                        match filled.get("loudness") {
                            Some(ElicitationContentValue::Integer(loudness)) => {
                                format!("accept {loudness}")
                            }
                            other => format!("accept {other:?}"),
                        }
                    }
                    other => format!("{other:?}"),
                })?;
            }
            "ask-web" => {
                let scope = ElicitationSessionScope::new(self.id.clone());
                let page = ElicitationUrlMode::new(scope, "page-1", "https://example.com/page");
                let request =
                    CreateElicitationRequest::new(ElicitationMode::Url(page), "Look at this.");
                let answer = self.ask_user(request).await?;
                let accepted = matches!(answer.action, ElicitationAction::Accept(_));
                self.peer
                    .send_notification(CompleteElicitationNotification::new("page-1"))?;
                self.say(if accepted { "accept" } else { "no" })?;
            }
            "ask-extension" => {
                self.peer.send_notification(QuestionNotification {
                    what: "a turn runs".to_owned(),
                })?;
                let question = "how are you".to_owned();
                self.say(
                    self.send_request(QuestionRequest { question })
                        .await?
                        .answer,
                )?;
            }
            "ask-unknown" => {
                let request = UntypedMessage::new("terminal/explode", json!({}))?;
                self.send_error(self.send_request(request).await)?;
            }
            "ask-withdraw" => {
                let request = UntypedMessage::new("_interop/wait", json!({}))?;
                let asked = self.peer.send_request(request);
                asked.cancel()?;
                self.send_error(asked.block_task().await)?;
            }
            "settings" => {
                let settings = self.session(|session| session.settings.clone());
                if let Some(set) = settings {
                    self.say(format!("{} {} {}", set.mode, set.model, set.loud))?;
                }
            }
            "content" => {
                for block in prompt {
                    let json = serde_json::to_value(block).map_err(Error::into_internal_error)?;
                    self.say(format!("{} ", json["type"].as_str().unwrap_or("?")))?;
                }
            }
            "refuse" => return Ok(StopReason::Refusal),
            "max-tokens" => return Ok(StopReason::MaxTokens),
            "fail" => {
                let error = Error::new(-32050, "the model is on holiday");
                return Err(error.data(json!({"until": "Monday"})));
            }
            _ => self.say(text)?,
        }
        Ok(StopReason::EndTurn)
    }

    /// Waits for the response `cancelled`, which a client must send when it cancels the turn.
    async fn wait_permission(&self) -> Result<StopReason> {
        let call = ToolCallUpdate::new("ask").title("Ask").kind(ToolKind::Edit);
        self.change(call.status(ToolCallStatus::Pending))?;
        let asked = self.ask_permission("Ask?", ToolCallUpdate::new("ask"));
        if !matches!(asked.await?, RequestPermissionOutcome::Cancelled(_)) {
            self.say("there was an answer")?;
            return Ok(StopReason::EndTurn);
        }
        self.say("the question was withdrawn")?;
        self.cancelled().await;
        Ok(StopReason::Cancelled)
    }

    async fn wait_command(&self) -> Result<StopReason> {
        let script = "echo $$ > pid; echo started; exec sleep 600";
        let exit = self.run_command("run", "Wait", script, self.cancelled());
        if exit.await?.signal.is_none() {
            return Ok(StopReason::EndTurn);
        }
        self.say("the command was ended")?;
        Ok(StopReason::Cancelled)
    }

    fn send_error<T>(&self, answer: Result<T>) -> Result<()> {
        let code = answer.err().map_or(0, |error| i32::from(error.code));
        self.say(format!("error {code}"))
    }
}

fn to_v2(error: Error) -> agent_client_protocol::v2::schema::Error {
    agent_client_protocol::v2::schema::Error::new(error.code.into(), error.message).data(error.data)
}
