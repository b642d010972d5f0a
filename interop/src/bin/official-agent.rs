//! An agent on stdin and stdout, or with `--listen ADDRESS` over the network, that is built on the official Rust SDK.
//!
//! The first word of the prompt determines what happens:
//!
//! | prompt                            | what happens                                                   |
//! |-----------------------------------|----------------------------------------------------------------|
//! | `work`                            | a whole turn: reads `note.txt`, rewrites it, runs two commands |
//! | `wait`                            | sends `waiting` and continues until it is cancelled            |
//! | `wait-permission`                 | requests permission, and sends the outcome as text             |
//! | `wait-command`                    | runs a command that does not exit, until it is cancelled       |
//! | `ask-extension`                   | sends `_interop/told` and `_interop/ask` to the client         |
//! | `ask-unknown`, `ask-missing-file` | sends a request that fails, and sends the error as text        |
//! | `content`                         | sends the types of content in the prompt as text               |
//! | `refuse`, `max-tokens`, `fail`    | ends the turn in the way that the prompt names                 |
//! | anything else                     | is repeated                                                    |
//!
//! With `--auth`, it opens sessions only after `authenticate`. With `--store FILE`, it stores the sessions' updates in
//! the file, so that another process can load them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthenticateRequest, AuthenticateResponse,
    AvailableCommand, AvailableCommandsUpdate, CancelNotification, Content, ContentBlock,
    ContentChunk, Cost, CreateTerminalRequest, CurrentModeUpdate, Diff, Implementation,
    InitializeRequest, InitializeResponse, KillTerminalRequest, LoadSessionRequest,
    LoadSessionResponse, NewSessionRequest, NewSessionResponse, PermissionOption,
    PermissionOptionKind, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, PromptRequest,
    PromptResponse, ReadTextFileRequest, ReleaseTerminalRequest, RequestPermissionOutcome,
    RequestPermissionRequest, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigSelectOption, SessionId, SessionInfoUpdate, SessionMode, SessionModeState,
    SessionNotification, SessionUpdate, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse, StopReason,
    Terminal, TerminalId, TerminalOutputRequest, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind, UsageUpdate,
    WaitForTerminalExitRequest, WriteTextFileRequest,
};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, JsonRpcRequest, Result, Stdio, UntypedMessage,
    on_receive_notification, on_receive_request,
};
use agent_client_protocol_http::AcpHttpServer;
use clap::Parser;
use interop::{QuestionNotification, QuestionRequest, QuestionResponse};
use serde_json::json;
use tokio::sync::watch;

#[derive(Parser)]
struct OfficialAgentArgs {
    /// Open sessions only after `authenticate`.
    #[arg(long)]
    auth: bool,
    /// Store the updates of sessions in this file.
    #[arg(long)]
    store: Option<PathBuf>,
    /// Serve clients over the network instead of one on stdin and stdout, and print the URL on stderr.
    #[arg(long)]
    listen: Option<SocketAddr>,
}

struct OfficialSession {
    cwd: PathBuf,
    model: String,
    history: Vec<SessionUpdate>,
    cancel: watch::Sender<bool>,
}

struct OfficialAgentState {
    args: OfficialAgentArgs,
    authenticated: AtomicBool,
    opened_count: AtomicUsize,
    sessions: Mutex<HashMap<SessionId, OfficialSession>>,
}

impl OfficialAgentState {
    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, OfficialSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, id: SessionId, cwd: PathBuf, history: Vec<SessionUpdate>) {
        let session = OfficialSession {
            cwd,
            model: "small".to_owned(),
            history,
            cancel: watch::Sender::new(false),
        };
        self.sessions().insert(id, session);
    }

    /// Reads all stored sessions by id.
    fn read_stored(&self) -> Result<HashMap<SessionId, Vec<SessionUpdate>>> {
        let Some(file) = &self.args.store else {
            return Ok(HashMap::new());
        };
        match std::fs::read(file) {
            Ok(json) => serde_json::from_slice(&json).map_err(Error::into_internal_error),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(HashMap::new()),
            Err(e) => Err(Error::into_internal_error(e)),
        }
    }

    fn store(&self, id: &SessionId) -> Result<()> {
        let Some(file) = &self.args.store else {
            return Ok(());
        };
        let mut stored = self.read_stored()?;
        if let Some(session) = self.sessions().get(id) {
            stored.insert(id.clone(), session.history.clone());
        }
        let json = serde_json::to_vec(&stored).map_err(Error::into_internal_error)?;
        std::fs::write(file, json).map_err(Error::into_internal_error)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let state = Arc::new(OfficialAgentState {
        args: OfficialAgentArgs::parse(),
        authenticated: AtomicBool::new(false),
        opened_count: AtomicUsize::new(0),
        sessions: Mutex::default(),
    });
    match state.args.listen {
        Some(address) => serve(address, state)
            .await
            .map_err(Error::into_internal_error),
        None => agent(state).connect_to(Stdio::new()).await,
    }
}

/// Serves the agent over WebSocket and streamable HTTP, as the official SDK does by itself: without a token.
async fn serve(address: SocketAddr, state: Arc<OfficialAgentState>) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(address).await?;
    eprintln!("serving http://{}/acp", listener.local_addr()?);
    let server = AcpHttpServer::new(move || agent(Arc::clone(&state)));
    axum::serve(listener, server.into_router()).await
}

/// Returns the agent for one connection.
fn agent(state: Arc<OfficialAgentState>) -> impl ConnectTo<Client> {
    let [new, load, option, prompt, cancel, authenticate] = [(); 6].map(|()| Arc::clone(&state));
    Agent
        .v1()
        .name("official-agent")
        .on_receive_request(
            async move |_: InitializeRequest, responder, _| {
                let methods = match state.args.auth {
                    true => vec![AuthMethod::Agent(AuthMethodAgent::new("key", "A key"))],
                    false => Vec::new(),
                };
                responder.respond(
                    InitializeResponse::new(ProtocolVersion::V1)
                        .agent_capabilities(
                            AgentCapabilities::new().load_session(state.args.store.is_some()),
                        )
                        .agent_info(Implementation::new("official-agent", "1.0"))
                        .auth_methods(methods),
                )
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: AuthenticateRequest, responder, _| {
                if &*request.method_id.0 != "key" {
                    return responder.respond_with_error(Error::invalid_params());
                }
                authenticate.authenticated.store(true, Ordering::Release);
                responder.respond(AuthenticateResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: NewSessionRequest, responder, _| {
                if new.args.auth && !new.authenticated.load(Ordering::Acquire) {
                    return responder.respond_with_error(Error::auth_required());
                }
                let number = new.opened_count.fetch_add(1, Ordering::Relaxed);
                let id = SessionId::new(format!("official-{}-{number}", std::process::id()));
                new.open(id.clone(), request.cwd, Vec::new());
                responder.respond(
                    NewSessionResponse::new(id)
                        .modes(modes())
                        .config_options(vec![model_option("small")]),
                )
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: LoadSessionRequest,
                        responder,
                        connection: ConnectionTo<Client>| {
                let Some(history) = load.read_stored()?.remove(&request.session_id) else {
                    let id = request.session_id;
                    let error = agent_client_protocol::v1::schema::Error::session_not_found(id);
                    return responder.respond_with_error(error.into());
                };
                for update in &history {
                    let update =
                        SessionNotification::new(request.session_id.clone(), update.clone());
                    connection.send_notification(update)?;
                }
                load.open(request.session_id, request.cwd, history);
                responder.respond(
                    LoadSessionResponse::new()
                        .modes(modes())
                        .config_options(vec![model_option("small")]),
                )
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionModeRequest,
                        responder,
                        connection: ConnectionTo<Client>| {
                let update = CurrentModeUpdate::new(request.mode_id);
                let update = SessionUpdate::CurrentModeUpdate(update);
                connection
                    .send_notification(SessionNotification::new(request.session_id, update))?;
                responder.respond(SetSessionModeResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: SetSessionConfigOptionRequest, responder, _| {
                let value =
                    serde_json::to_value(&request.value).map_err(Error::into_internal_error)?;
                let value = value
                    .get("value")
                    .or(Some(&value))
                    .and_then(|v| v.as_str())
                    .map(str::to_owned);
                let Some(value) = value.filter(|_| &*request.config_id.0 == "model") else {
                    return responder.respond_with_error(Error::invalid_params());
                };
                let options = vec![model_option(&value)];
                if let Some(session) = option.sessions().get_mut(&request.session_id) {
                    session.model = value;
                }
                responder.respond(SetSessionConfigOptionResponse::new(options))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: PromptRequest, responder, connection: ConnectionTo<Client>| {
                let begun = prompt
                    .sessions()
                    .get_mut(&request.session_id)
                    .map(|session| {
                        session.cancel.send_replace(false);
                        (session.cwd.clone(), session.cancel.subscribe())
                    });
                let Some((cwd, cancelled)) = begun else {
                    let id = request.session_id;
                    let error = agent_client_protocol::v1::schema::Error::session_not_found(id);
                    return responder.respond_with_error(error.into());
                };
                let turn = OfficialTurn {
                    state: Arc::clone(&prompt),
                    connection: connection.clone(),
                    id: request.session_id,
                    cwd,
                    cancel_receiver: cancelled,
                };
                // Handlers run in the task that reads messages, so a turn that sends requests must run elsewhere.
                connection.spawn(async move {
                    let result = turn.run(&request.prompt).await;
                    turn.state.store(&turn.id)?;
                    responder.respond_with_result(result.map(PromptResponse::new))
                })
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: QuestionRequest, responder, _| {
                responder.respond(QuestionResponse {
                    answer: format!("the official agent heard {}", request.question),
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |told: QuestionNotification, connection: ConnectionTo<Client>| {
                // Send it back, so that the sender can see that it has arrived.
                connection.send_notification(QuestionNotification {
                    what: format!("the official agent was told {}", told.what),
                })
            },
            on_receive_notification!(),
        )
        .on_receive_notification(
            async move |notification: CancelNotification, _| {
                if let Some(session) = cancel.sessions().get(&notification.session_id) {
                    session.cancel.send_replace(true);
                }
                Ok(())
            },
            on_receive_notification!(),
        )
}

fn modes() -> SessionModeState {
    SessionModeState::new(
        "ask",
        vec![
            SessionMode::new("ask", "Ask"),
            SessionMode::new("code", "Code"),
        ],
    )
}

fn model_option(current: &str) -> SessionConfigOption {
    let models = ["small", "large"]
        .map(|id| SessionConfigSelectOption::new(id, id))
        .to_vec();
    SessionConfigOption::select("model", "Model", current.to_owned(), models)
        .category(SessionConfigOptionCategory::Model)
}

struct OfficialTurn {
    state: Arc<OfficialAgentState>,
    connection: ConnectionTo<Client>,
    id: SessionId,
    cwd: PathBuf,
    cancel_receiver: watch::Receiver<bool>,
}

impl OfficialTurn {
    async fn run(&self, prompt: &[ContentBlock]) -> Result<StopReason> {
        for block in prompt {
            self.add_to_history(SessionUpdate::UserMessageChunk(ContentChunk::new(
                block.clone(),
            )));
        }
        let text: String = prompt
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            })
            .collect();
        match text.split_whitespace().next().unwrap_or_default() {
            "work" => self.run_work().await,
            "wait" => {
                self.send_text("waiting")?;
                self.wait_cancelled().await;
                Ok(StopReason::Cancelled)
            }
            "wait-permission" => self.wait_permission().await,
            "wait-command" => self.wait_command().await,
            "ask-extension" => {
                self.connection.send_notification(QuestionNotification {
                    what: "a turn runs".to_owned(),
                })?;
                let asked = self
                    .send_request(QuestionRequest {
                        question: "how are you".to_owned(),
                    })
                    .await?;
                self.send_text(asked.answer)?;
                Ok(StopReason::EndTurn)
            }
            "ask-unknown" => {
                let request =
                    UntypedMessage::new("terminal/explode", json!({"sessionId": self.id}))?;
                self.send_error(self.send_request(request).await)
            }
            "ask-missing-file" => {
                let path = self.cwd.join("missing.txt");
                let answer = self
                    .send_request(ReadTextFileRequest::new(self.id.clone(), path))
                    .await;
                self.send_error(answer)
            }
            "content" => {
                for block in prompt {
                    let json = serde_json::to_value(block).map_err(Error::into_internal_error)?;
                    self.send_text(format!("{} ", json["type"].as_str().unwrap_or("?")))?;
                }
                Ok(StopReason::EndTurn)
            }
            "refuse" => Ok(StopReason::Refusal),
            "max-tokens" => Ok(StopReason::MaxTokens),
            "fail" => {
                Err(Error::new(-32050, "the model is on holiday").data(json!({"until": "Monday"})))
            }
            _ => {
                self.send_text(text)?;
                Ok(StopReason::EndTurn)
            }
        }
    }

    /// Uses every feature once.
    async fn run_work(&self) -> Result<StopReason> {
        let file = self.cwd.join("note.txt");
        self.send_update(SessionUpdate::AgentThoughtChunk(text_chunk(
            "First I look.",
        )))?;
        for word in ["Reading ", "the ", "note."] {
            self.send_text(word)?;
        }
        self.send_plan([
            PlanEntryStatus::InProgress,
            PlanEntryStatus::Pending,
            PlanEntryStatus::Pending,
        ])?;
        self.send_update(SessionUpdate::AvailableCommandsUpdate(
            AvailableCommandsUpdate::new(vec![AvailableCommand::new(
                "work",
                "Do one of everything",
            )]),
        ))?;

        let location = vec![ToolCallLocation::new(&file).line(1)];
        self.send_update(SessionUpdate::ToolCall(
            ToolCall::new("read", "Read note.txt")
                .kind(ToolKind::Read)
                .status(ToolCallStatus::InProgress)
                .locations(location.clone()),
        ))?;
        let old = self
            .send_request(ReadTextFileRequest::new(self.id.clone(), &file))
            .await?
            .content;
        let second = ReadTextFileRequest::new(self.id.clone(), &file)
            .line(2)
            .limit(1);
        let second = self.send_request(second).await?.content;
        self.update_tool_call(
            "read",
            ToolCallUpdateFields::new()
                .status(ToolCallStatus::Completed)
                .content(vec![text_content(old.clone())])
                .raw_output(json!({"second": second})),
        )?;

        let new = old.to_uppercase();
        let diff = ToolCallContent::Diff(Diff::new(&file, new.clone()).old_text(old));
        self.send_update(SessionUpdate::ToolCall(
            ToolCall::new("edit", "Shout")
                .kind(ToolKind::Edit)
                .locations(location),
        ))?;
        if !self.is_allowed("edit", vec![diff.clone()]).await? {
            self.update_tool_call(
                "edit",
                ToolCallUpdateFields::new().status(ToolCallStatus::Failed),
            )?;
            self.send_text(" I was not allowed to.")?;
            return Ok(StopReason::EndTurn);
        }
        self.update_tool_call(
            "edit",
            ToolCallUpdateFields::new().status(ToolCallStatus::InProgress),
        )?;
        self.send_request(WriteTextFileRequest::new(self.id.clone(), &file, new))
            .await?;
        let done = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        self.update_tool_call("edit", done.content(vec![diff]))?;
        self.send_plan([
            PlanEntryStatus::Completed,
            PlanEntryStatus::InProgress,
            PlanEntryStatus::Pending,
        ])?;

        self.run_command().await?;
        self.kill_command().await?;
        self.send_plan([
            PlanEntryStatus::Completed,
            PlanEntryStatus::Completed,
            PlanEntryStatus::Completed,
        ])?;

        let usage = UsageUpdate::new(1200, 200_000).cost(Cost::new(0.25, "EUR"));
        self.send_update(SessionUpdate::UsageUpdate(usage))?;
        self.send_update(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new(
            "code",
        )))?;
        self.send_update(SessionUpdate::SessionInfoUpdate(
            SessionInfoUpdate::new().title("A loud note"),
        ))?;
        self.send_text(" Done.")?;
        Ok(StopReason::EndTurn)
    }

    /// Runs a command that fails on its own.
    async fn run_command(&self) -> Result<()> {
        self.send_update(SessionUpdate::ToolCall(
            ToolCall::new("run", "Count").kind(ToolKind::Execute),
        ))?;
        let script = "cat note.txt; echo $GREETING >&2; exit 3";
        let terminal = self.create_terminal("run", script).await?;
        let exit = self
            .send_request(WaitForTerminalExitRequest::new(
                self.id.clone(),
                terminal.clone(),
            ))
            .await?;
        let output = self
            .send_request(TerminalOutputRequest::new(
                self.id.clone(),
                terminal.clone(),
            ))
            .await?;
        self.send_request(ReleaseTerminalRequest::new(self.id.clone(), terminal))
            .await?;
        self.update_tool_call(
            "run",
            ToolCallUpdateFields::new()
                .status(ToolCallStatus::Completed)
                .raw_output(json!({
                    "code": exit.exit_status.exit_code,
                    "output": output.output,
                    "truncated": output.truncated,
                    "ended": output.exit_status.is_some(),
                })),
        )
    }

    /// Runs a command that does not exit, and kills it.
    async fn kill_command(&self) -> Result<()> {
        self.send_update(SessionUpdate::ToolCall(
            ToolCall::new("kill", "Wait").kind(ToolKind::Execute),
        ))?;
        let terminal = self.create_terminal("kill", "exec sleep 600").await?;
        let running = self
            .send_request(TerminalOutputRequest::new(
                self.id.clone(),
                terminal.clone(),
            ))
            .await?;
        self.send_request(KillTerminalRequest::new(self.id.clone(), terminal.clone()))
            .await?;
        let exit = self
            .send_request(WaitForTerminalExitRequest::new(
                self.id.clone(),
                terminal.clone(),
            ))
            .await?;
        self.send_request(ReleaseTerminalRequest::new(
            self.id.clone(),
            terminal.clone(),
        ))
        .await?;
        let gone = self
            .send_request(TerminalOutputRequest::new(self.id.clone(), terminal))
            .await;
        self.update_tool_call(
            "kill",
            ToolCallUpdateFields::new()
                .status(ToolCallStatus::Failed)
                .raw_output(json!({
                    "ran": running.exit_status.is_none(),
                    "signal": exit.exit_status.signal,
                    "gone": gone.is_err(),
                })),
        )
    }

    async fn create_terminal(&self, call: &'static str, script: &str) -> Result<TerminalId> {
        let request = CreateTerminalRequest::new(self.id.clone(), "sh")
            .args(vec!["-c".to_owned(), script.to_owned()])
            .env(vec![agent_client_protocol::v1::schema::EnvVariable::new(
                "GREETING", "hello",
            )])
            .cwd(self.cwd.clone())
            .output_byte_limit(64 * 1024);
        let terminal = self.send_request(request).await?.terminal_id;
        let shown = ToolCallContent::Terminal(Terminal::new(terminal.clone()));
        let started = ToolCallUpdateFields::new()
            .status(ToolCallStatus::InProgress)
            .content(vec![shown]);
        self.update_tool_call(call, started)?;
        Ok(terminal)
    }

    /// Waits for the response `cancelled`, which a client must send when it cancels the turn.
    async fn wait_permission(&self) -> Result<StopReason> {
        self.send_update(SessionUpdate::ToolCall(
            ToolCall::new("ask", "Ask").kind(ToolKind::Edit),
        ))?;
        let outcome = self.request_permission("ask", Vec::new()).await?;
        let cancelled = matches!(outcome, RequestPermissionOutcome::Cancelled);
        self.send_text(if cancelled {
            "the question was withdrawn"
        } else {
            "there was an answer"
        })?;
        if cancelled {
            self.wait_cancelled().await;
        }
        Ok(if cancelled {
            StopReason::Cancelled
        } else {
            StopReason::EndTurn
        })
    }

    async fn wait_command(&self) -> Result<StopReason> {
        self.send_update(SessionUpdate::ToolCall(
            ToolCall::new("run", "Wait").kind(ToolKind::Execute),
        ))?;
        let terminal = self
            .create_terminal("run", "echo $$ > pid; echo started; exec sleep 600")
            .await?;
        let exit = self.send_request(WaitForTerminalExitRequest::new(
            self.id.clone(),
            terminal.clone(),
        ));
        tokio::select! {
            exit = exit => {
                exit?;
                Ok(StopReason::EndTurn)
            }
            () = self.wait_cancelled() => {
                self.send_request(ReleaseTerminalRequest::new(self.id.clone(), terminal)).await?;
                self.send_text("the command was ended")?;
                Ok(StopReason::Cancelled)
            }
        }
    }

    async fn wait_cancelled(&self) {
        // The session keeps the sender, and is never removed.
        let _ = self
            .cancel_receiver
            .clone()
            .wait_for(|cancelled| *cancelled)
            .await;
    }

    async fn send_request<R: JsonRpcRequest>(&self, request: R) -> Result<R::Response>
    where
        R::Response: Send,
    {
        self.connection.send_request(request).block_task().await
    }

    fn send_error<T>(&self, answer: Result<T>) -> Result<StopReason> {
        let code = answer.err().map_or(0, |error| i32::from(error.code));
        self.send_text(format!("error {code}"))?;
        Ok(StopReason::EndTurn)
    }

    async fn is_allowed(&self, call: &'static str, content: Vec<ToolCallContent>) -> Result<bool> {
        let outcome = self.request_permission(call, content).await?;
        Ok(
            matches!(outcome, RequestPermissionOutcome::Selected(chosen) if &*chosen.option_id.0 == "yes"),
        )
    }

    async fn request_permission(
        &self,
        call: &'static str,
        content: Vec<ToolCallContent>,
    ) -> Result<RequestPermissionOutcome> {
        let options = vec![
            PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
            PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
        ];
        let call = ToolCallUpdate::new(call, ToolCallUpdateFields::new().content(content));
        let request = RequestPermissionRequest::new(self.id.clone(), call, options);
        Ok(self.send_request(request).await?.outcome)
    }

    fn send_plan(&self, statuses: [PlanEntryStatus; 3]) -> Result<()> {
        let steps = ["Look", "Shout", "Count"];
        let entries = steps.into_iter().zip(statuses);
        let entries =
            entries.map(|(step, status)| PlanEntry::new(step, PlanEntryPriority::Medium, status));
        self.send_update(SessionUpdate::Plan(Plan::new(entries.collect())))
    }

    fn update_tool_call(&self, call: &'static str, fields: ToolCallUpdateFields) -> Result<()> {
        self.send_update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
            call, fields,
        )))
    }

    fn send_text(&self, text: impl Into<String>) -> Result<()> {
        self.send_update(SessionUpdate::AgentMessageChunk(text_chunk(text)))
    }

    fn send_update(&self, update: SessionUpdate) -> Result<()> {
        self.add_to_history(update.clone());
        self.connection
            .send_notification(SessionNotification::new(self.id.clone(), update))
    }

    /// Adds an update to the history if a replay must include it.
    fn add_to_history(&self, update: SessionUpdate) {
        if let Some(session) = self.state.sessions().get_mut(&self.id) {
            session.history.push(update);
        }
    }
}

fn text_chunk(text: impl Into<String>) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text.into()))
}

fn text_content(text: String) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::from(text)))
}
