//! A client on the official Rust SDK that speaks the draft of version 2. It starts an agent, runs one turn, answers the
//! agent's requests to the user, and prints what happens as one line of JSON each. With an agent that supports only
//! version 1, it fails.
//!
//!     official-client-v2 [OPTIONS] PROMPT -- AGENT COMMAND...

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v2::schema::{
    CancelSessionNotification, CancelledPermissionOutcome, ClientCapabilities, CloseSessionRequest,
    CompleteElicitationNotification, CreateElicitationRequest, CreateElicitationResponse,
    DeleteSessionRequest, ElicitationAcceptAction, ElicitationAction, ElicitationCapabilities,
    ElicitationContentValue, ElicitationFormCapabilities, ElicitationFormMode, ElicitationMode,
    ElicitationPropertySchema, ElicitationUrlCapabilities, IdleStateUpdate, Implementation,
    InitializeRequest, ListSessionsRequest, LoginAuthRequest, LogoutAuthRequest, NewSessionRequest,
    PermissionOptionKind, PromptRequest, ReplayFrom, ReplayFromStart, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, ResumeSessionRequest,
    SelectedPermissionOutcome, SessionConfigOptionValue, SessionId, SessionUpdate,
    SetSessionConfigOptionRequest, StateUpdate, UpdateSessionNotification,
};
use agent_client_protocol::v2::{ConnectionTo, Responder};
use agent_client_protocol::{
    AcpAgent, AcpAgentConfig, Agent, Client, Error, JsonRpcRequest, Result, UntypedMessage,
    on_receive_notification, on_receive_request,
};
use clap::{Parser, ValueEnum};
use interop::{QuestionNotification, QuestionRequest, QuestionResponse};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

#[derive(Parser)]
struct OfficialClientV2Args {
    /// The prompt.
    prompt: String,
    /// The command that starts the agent.
    #[arg(last = true, required = true)]
    agent: Vec<String>,
    /// The working directory of the session.
    #[arg(long, default_value = ".")]
    cwd: PathBuf,
    /// Reject every permission request.
    #[arg(long)]
    reject: bool,
    /// Cancel the turn when this happens.
    #[arg(long, value_enum)]
    cancel_at: Option<CancelPointV2>,
    /// Resume this session instead of opening a new one.
    #[arg(long)]
    resume: Option<String>,
    /// Request a replay of the resumed session.
    #[arg(long)]
    replay: bool,
    /// Set a config option (KEY=VALUE) before the turn. `true` and `false` are booleans.
    #[arg(long)]
    option: Option<String>,
    /// Log in with this auth method before opening a session.
    #[arg(long)]
    authenticate: Option<String>,
    /// Log out after opening a session.
    #[arg(long)]
    logout: bool,
    /// Call this method before the turn, and print the response.
    #[arg(long)]
    call: Vec<String>,
    /// Send `_interop/ask` and `_interop/told` before the turn.
    #[arg(long)]
    extension: bool,
    /// Send a request that gets no response before the turn, and cancel it.
    #[arg(long)]
    withdraw: bool,
    /// List all sessions before the turn.
    #[arg(long)]
    list: bool,
    /// Send this prompt while the turn runs. The agent queues it until the turn has ended.
    #[arg(long)]
    meanwhile: Option<String>,
    /// Cancel the queued prompt immediately.
    #[arg(long)]
    take_back: bool,
    /// Close the session after the turn, twice.
    #[arg(long)]
    close: bool,
    /// Delete the session after the turn.
    #[arg(long)]
    delete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CancelPointV2 {
    /// The agent sends a message.
    Message,
    /// The agent requests permission.
    Permission,
    /// A command of the agent prints something.
    Output,
}

/// The state that the handlers share.
struct OfficialClientV2State {
    reject: bool,
    cancel_at: Option<CancelPointV2>,
    /// How often the agent has become idle, and its last `idle` update.
    idle: watch::Sender<(usize, IdleStateUpdate)>,
}

impl OfficialClientV2State {
    /// Cancels the turn if this is the point chosen on the command line.
    fn cancel_if_at(
        &self,
        what: CancelPointV2,
        session: &SessionId,
        agent: &ConnectionTo<Agent>,
    ) -> Result<()> {
        if self.cancel_at == Some(what) {
            agent.send_notification(CancelSessionNotification::new(session.clone()))?;
        }
        Ok(())
    }

    fn handle_update(
        &self,
        notification: UpdateSessionNotification,
        agent: &ConnectionTo<Agent>,
    ) -> Result<()> {
        let session = &notification.session_id;
        match notification.update {
            SessionUpdate::AgentMessageChunk(_) | SessionUpdate::AgentMessage(_) => {
                self.cancel_if_at(CancelPointV2::Message, session, agent)
            }
            SessionUpdate::TerminalOutputChunk(_) => {
                self.cancel_if_at(CancelPointV2::Output, session, agent)
            }
            SessionUpdate::StateUpdate(StateUpdate::Idle(idle)) => {
                self.idle.send_modify(|(count, last)| {
                    *count += 1;
                    *last = idle;
                });
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn choose_outcome(&self, request: &RequestPermissionRequest) -> RequestPermissionOutcome {
        // A client that cancels a turn responds to its pending permission requests with `cancelled`.
        if self.cancel_at == Some(CancelPointV2::Permission) {
            return CancelledPermissionOutcome::new().into();
        }
        let wanted = match self.reject {
            true => PermissionOptionKind::RejectOnce,
            false => PermissionOptionKind::AllowOnce,
        };
        let chosen = request.options.iter().find(|option| option.kind == wanted);
        match chosen {
            Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(
                option.option_id.clone(),
            )),
            None => CancelledPermissionOutcome::new().into(),
        }
    }
}

/// Fills in every number of a form with the maximum, and accepts every web page.
fn fill_in(mode: ElicitationMode) -> ElicitationAction {
    let accepted = ElicitationAcceptAction::new();
    let requested_schema = match mode {
        ElicitationMode::Form(ElicitationFormMode {
            requested_schema, ..
        }) => requested_schema,
        ElicitationMode::Url(_) => return ElicitationAction::Accept(accepted),
        // For other modes, it is not known which content would be valid.
        _ => return ElicitationAction::Decline,
    };
    let numbers = requested_schema.properties.into_iter();
    let filled = numbers.filter_map(|(name, property)| match property {
        ElicitationPropertySchema::Integer(number) => Some((
            name,
            ElicitationContentValue::Integer(number.maximum.unwrap_or_default()),
        )),
        _ => None,
    });
    let filled = filled.collect::<std::collections::BTreeMap<_, _>>();
    ElicitationAction::Accept(accepted.content(filled))
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = OfficialClientV2Args::parse();
    let Some((program, arguments)) = args.agent.split_first() else {
        return Err(Error::invalid_params().data("no agent command"));
    };
    let agent = AcpAgent::new(AcpAgentConfig::new(program).args(arguments));
    let state = Arc::new(OfficialClientV2State {
        reject: args.reject,
        cancel_at: args.cancel_at,
        idle: watch::Sender::new((0, IdleStateUpdate::new())),
    });
    let [updated, asked] = [(); 2].map(|()| Arc::clone(&state));
    Client
        .v2()
        .name("official-client-v2")
        .on_receive_notification(
            async move |notification: UpdateSessionNotification, agent: ConnectionTo<Agent>| {
                print("update", &notification.update)?;
                updated.handle_update(notification, &agent)
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest,
                        responder: Responder<RequestPermissionResponse>,
                        agent: ConnectionTo<Agent>| {
                print("permission", &request)?;
                asked.cancel_if_at(CancelPointV2::Permission, &request.session_id, &agent)?;
                responder.respond(RequestPermissionResponse::new(
                    asked.choose_outcome(&request),
                ))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: CreateElicitationRequest,
                        responder: Responder<CreateElicitationResponse>,
                        _: ConnectionTo<Agent>| {
                print("form", &request)?;
                responder.respond(CreateElicitationResponse::new(fill_in(request.mode)))
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |completed: CompleteElicitationNotification, _: ConnectionTo<Agent>| {
                print("completed", &completed)
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: QuestionRequest,
                        responder: Responder<QuestionResponse>,
                        _: ConnectionTo<Agent>| {
                print("asked", &request)?;
                let answer = format!("the official client heard {}", request.question);
                responder.respond(QuestionResponse { answer })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |told: QuestionNotification, _: ConnectionTo<Agent>| print("told", &told),
            on_receive_notification!(),
        )
        .connect_with(agent, async move |agent| {
            let driver = OfficialClientV2Driver { args, agent, state };
            if let Err(error) = driver.drive().await {
                let (code, message) = (i32::from(error.code), error.message);
                print(
                    "error",
                    &json!({"code": code, "message": message, "data": error.data}),
                )?;
            }
            Ok(())
        })
        .await
}

struct OfficialClientV2Driver {
    args: OfficialClientV2Args,
    agent: ConnectionTo<Agent>,
    state: Arc<OfficialClientV2State>,
}

impl OfficialClientV2Driver {
    /// Sends a request, and prints the response.
    async fn send_request<R: JsonRpcRequest>(&self, what: &str, request: R) -> Result<R::Response>
    where
        R::Response: Send + Serialize,
    {
        let answer = self.agent.send_request(request).block_task().await?;
        print(what, &answer)?;
        Ok(answer)
    }

    /// Does everything from `initialize` to the end of the turn.
    async fn drive(&self) -> Result<()> {
        let args = &self.args;
        let elicitation = ElicitationCapabilities::new()
            .form(ElicitationFormCapabilities::new())
            .url(ElicitationUrlCapabilities::new());
        let this = Implementation::new("official-client-v2", "1.0");
        let initialize = InitializeRequest::new(ProtocolVersion::V2, this)
            .capabilities(ClientCapabilities::new().elicitation(elicitation));
        let initialized = self.send_request("initialized", initialize).await?;
        if initialized.capabilities.session.is_none() {
            return Err(Error::invalid_params().data("the agent offers no sessions"));
        }
        if let Some(method) = &args.authenticate {
            let request = LoginAuthRequest::new(method.clone());
            self.send_request("authenticated", request).await?;
        }
        self.send_extensions().await?;
        if args.list {
            let mut request = ListSessionsRequest::new();
            loop {
                let page = self.send_request("listed", request).await?;
                let Some(cursor) = page.next_cursor else {
                    break;
                };
                request = ListSessionsRequest::new().cursor(cursor);
            }
        }
        let session = self.open().await?;
        if args.logout {
            self.send_request("logged_out", LogoutAuthRequest::new())
                .await?;
        }
        if let Some((option, value)) = args.option.as_ref().and_then(|o| o.split_once('=')) {
            let value = match value.parse() {
                Ok(value) => SessionConfigOptionValue::Boolean { value },
                Err(_) => SessionConfigOptionValue::Id {
                    value: value.to_owned().into(),
                },
            };
            let request =
                SetSessionConfigOptionRequest::new(session.clone(), option.to_owned(), value);
            self.send_request("option", request).await?;
        }
        self.run_turn(&session).await?;
        if args.close {
            for _ in 0..2 {
                let request = CloseSessionRequest::new(session.clone());
                self.send_request("closed", request).await?;
            }
        }
        if args.delete {
            self.send_request("deleted", DeleteSessionRequest::new(session))
                .await?;
        }
        Ok(())
    }

    async fn send_extensions(&self) -> Result<()> {
        for method in &self.args.call {
            let request = UntypedMessage::new(method, json!({}))?;
            self.print_outcome(self.agent.send_request(request).block_task().await)?;
        }
        if self.args.withdraw {
            let request = UntypedMessage::new("_interop/wait", json!({}))?;
            let asked = self.agent.send_request(request);
            asked.cancel()?;
            self.print_outcome(asked.block_task().await)?;
        }
        if self.args.extension {
            let what = "hello".to_owned();
            self.agent
                .send_notification(QuestionNotification { what })?;
            let question = "who are you".to_owned();
            self.send_request("answer", QuestionRequest { question })
                .await?;
        }
        Ok(())
    }

    fn print_outcome(&self, answer: Result<Value>) -> Result<()> {
        match answer {
            Ok(answer) => print("answer", &answer),
            Err(error) => print("refused", &json!({"code": i32::from(error.code)})),
        }
    }

    async fn open(&self) -> Result<SessionId> {
        let cwd = std::path::absolute(&self.args.cwd).map_err(Error::into_internal_error)?;
        let Some(id) = &self.args.resume else {
            let opened = self
                .send_request("opened", NewSessionRequest::new(cwd))
                .await?;
            return Ok(opened.session_id);
        };
        let id = SessionId::new(id.as_str());
        let mut request = ResumeSessionRequest::new(id.clone(), cwd);
        if self.args.replay {
            request = request.replay_from(ReplayFrom::Start(ReplayFromStart::new()));
        }
        self.send_request("resumed", request).await?;
        Ok(id)
    }

    /// Runs a turn, from the prompt to the state `idle`.
    async fn run_turn(&self, session: &SessionId) -> Result<()> {
        let mut idle = self.state.idle.subscribe();
        let before = idle.borrow().0;
        let prompt = |text: &str| PromptRequest::new(session.clone(), vec![text.into()]);
        let first = self.agent.send_request(prompt(&self.args.prompt));
        let meanwhile = self.args.meanwhile.as_ref();
        let second = meanwhile.map(|text| self.agent.send_request(prompt(text)));
        if let (Some(second), true) = (&second, self.args.take_back) {
            second.cancel()?;
        }
        print("prompted", &first.block_task().await?)?;
        let mut turns = 1;
        if let Some(second) = second {
            match second.block_task().await {
                Ok(answer) => {
                    print("prompted", &answer)?;
                    turns += 1;
                }
                Err(error) => print("refused", &json!({"code": i32::from(error.code)}))?,
            }
        }
        // The state keeps the sender, and is not dropped here.
        let _ = idle.wait_for(|(count, _)| *count >= before + turns).await;
        let (_, last) = idle.borrow().clone();
        print("ended", &last)
    }
}

/// Prints what happened and the message as one line of JSON.
fn print(what: &str, message: &impl Serialize) -> Result<()> {
    let message = serde_json::to_value(message).map_err(Error::into_internal_error)?;
    let line = Value::Object([(what.to_owned(), message)].into_iter().collect());
    writeln!(std::io::stdout().lock(), "{line}").map_err(Error::into_internal_error)
}
