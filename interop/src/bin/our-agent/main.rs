//! The counterpart of `official-agent` and `official-agent-v2` on our library. It does the same for the same prompts.
//!
//! With `--auth`, it opens sessions only after `authenticate`. Every session whose id starts with `old-` can be loaded
//! and has a history. Two of these sessions are listed. With `--protocol 2`, it also speaks the draft of version 2. With `--listen ADDRESS` it is an endpoint of our library for remote clients.

mod work;
mod work_v2;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use acp::agent::{
    AuthContext, Authentication, CloseSession, DeleteSession, ExtensionNotification,
    ExtensionRequest, ListSessions, LoadSession, OpenedSession, Prompt, ResumeSession, Session,
    SessionSetup, TerminalCommand, Turn,
};
use acp::v1::{
    AuthMethod, AuthMethodAgent, AuthMethodId, AvailableCommand, ContentBlock, ElicitationAction,
    ElicitationMode, ElicitationPropertySchema, ElicitationSchema, Implementation,
    IntegerPropertySchema, ListSessionsRequest, ListSessionsResponse, PermissionOption,
    PermissionOptionKind, PromptCapabilities, ProtocolVersion, RequestPermissionOutcome,
    SessionConfigId, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory,
    SessionConfigOptionValue, SessionConfigSelect, SessionConfigSelectGroup,
    SessionConfigSelectOption, SessionConfigSelectOptions, SessionId, SessionInfo, StopReason,
    ToolCall, ToolCallStatus, ToolKind,
};
use acp::{Agent, Connection, Error, Options, Result, Transport, jsonrpc, v2};
use acp_remote::Token;
use acp_remote::server::{AgentEndpoint, ConnectionInfo, ServeOptions, ServerConfig, serve};
use serde_json::json;
use serde_json::value::RawValue;

#[derive(Clone, clap::Parser)]
struct OurAgentArgs {
    /// Open sessions only after `authenticate`.
    #[arg(long)]
    auth: bool,
    /// The latest protocol version to speak.
    #[arg(long, default_value_t = 1)]
    protocol: u16,
    /// Serve clients over the network instead of one on stdin and stdout, and print the URL with its token on stderr.
    #[arg(long)]
    listen: Option<SocketAddr>,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let args: OurAgentArgs = clap::Parser::parse();
    match args.listen {
        Some(address) => listen(address, args).await,
        None => serve_client(acp::transport::stdio()?, args).await,
    }
}

/// Serves one client.
async fn serve_client(transport: Transport, args: OurAgentArgs) -> std::io::Result<()> {
    let mut options = Options::new().limits(acp::agent::default_limits());
    if args.protocol == 2 {
        options = options.draft_version_2();
    }
    let twin = OurAgent {
        args,
        authenticated: AtomicBool::new(false),
    };
    acp::agent::serve_with(transport, twin, options).await
}

/// Serves clients over WebSocket and streamable HTTP, each with an agent of its own.
async fn listen(address: SocketAddr, args: OurAgentArgs) -> std::io::Result<()> {
    let token = Token::random();
    let listener = tokio::net::TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    eprintln!("serving ws://{address}/acp?token={}", token.expose());
    let endpoint = AgentEndpoint::new(
        ServerConfig::new().token(token),
        move |_: ConnectionInfo, transport| {
            let args = args.clone();
            async move {
                // How a connection ends is for the client to say.
                let _ = serve_client(transport, args).await;
            }
        },
    );
    serve(listener, endpoint, ServeOptions::new()).await
}

struct OurAgent {
    args: OurAgentArgs,
    authenticated: AtomicBool,
}

impl Agent for OurAgent {
    type State = ();

    fn info(&self) -> Option<Implementation> {
        Some(Implementation::new("our-agent", "1.0"))
    }

    async fn new_session(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        if self.args.auth && !self.authenticated.load(Ordering::Acquire) {
            return Err(Error::Rpc(jsonrpc::Error::new(
                jsonrpc::Error::AUTH_REQUIRED,
                "Authentication required",
            )));
        }
        Ok(OpenedSession::new().config_options(config_options("ask")))
    }

    async fn session_opened(&self, (): &(), session: Session) {
        // An error means that the client is gone, which then needs no commands.
        let _ = session
            .set_commands(vec![AvailableCommand::new("work", "Do one of everything")])
            .await;
    }

    fn prompt_capabilities(&self) -> PromptCapabilities {
        PromptCapabilities::new().embedded_context(true)
    }

    async fn set_config_option(
        &self,
        (): &(),
        session: &Session,
        option: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        let mut options = session.config_options();
        for known in options.iter_mut().filter(|known| known.id == *option) {
            match (&mut known.kind, &value) {
                (SessionConfigKind::Select(select), SessionConfigOptionValue::Id(id)) => {
                    select.current_value = id.clone();
                }
                (
                    SessionConfigKind::Boolean { current_value },
                    SessionConfigOptionValue::Boolean(value),
                ) => *current_value = *value,
                _ => return Err(Error::invalid_params("a value of another type")),
            }
        }
        Ok(options)
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }

    fn resume_session(&self) -> Option<&impl ResumeSession> {
        Some(self)
    }

    fn list_sessions(&self) -> Option<&impl ListSessions> {
        Some(self)
    }

    fn close_session(&self) -> Option<&impl CloseSession> {
        Some(self)
    }

    fn delete_session(&self) -> Option<&impl DeleteSession> {
        Some(self)
    }

    fn authentication(&self) -> Option<&impl Authentication> {
        self.args.auth.then_some(self)
    }

    async fn extension_request(
        &self,
        _: &Connection,
        request: ExtensionRequest,
    ) -> Result<Box<RawValue>> {
        if request.method() == "_interop/wait" {
            // Wait until the sender cancels the request.
            return std::future::pending().await;
        }
        if request.method() != "_interop/ask" {
            return Err(request.not_found());
        }
        let ask: interop::QuestionRequest = parse_params(request.params())?;
        to_raw_json(&interop::QuestionResponse {
            answer: format!("our agent heard {}", ask.question),
        })
    }

    async fn extension_notification(
        &self,
        client: &Connection,
        notification: ExtensionNotification,
    ) {
        let method = notification.method();
        let told = parse_params::<interop::QuestionNotification>(notification.params());
        if let ("_interop/told", Ok(told)) = (method, told) {
            // Send it back, so that the sender can see that it has arrived.
            let told = interop::QuestionNotification {
                what: format!("our agent was told {}", told.what),
            };
            let _ = client.notify_raw(method, &told).await;
        }
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        let text = prompt.text();
        match text.split_whitespace().next().unwrap_or_default() {
            "work" if speaks_v2(&turn) => work_v2::run_work(&turn).await,
            "work" => work::run_work(&turn).await,
            "wait" => {
                turn.send_message("waiting").await?;
                std::future::pending().await
            }
            "wait-permission" => {
                let cancelled = turn.take_cancellation();
                turn.report_tool_call(ToolCall::new("ask", "Ask").kind(ToolKind::Edit))
                    .await?;
                let outcome = ask_permission(&turn, "ask").await?;
                cancelled.cancelled().await;
                turn.send_message(match outcome {
                    RequestPermissionOutcome::Cancelled(_) => "the question was withdrawn",
                    _ => "there was an answer",
                })
                .await?;
                Ok(StopReason::Cancelled)
            }
            "wait-command" if speaks_v2(&turn) => work_v2::wait_command(&turn).await,
            "wait-command" => {
                let call = turn
                    .report_tool_call(ToolCall::new("run", "Wait").kind(ToolKind::Execute))
                    .await?;
                let script = "echo $$ > pid; echo started; exec sleep 600";
                let terminal = turn
                    .create_terminal(TerminalCommand::new("sh", ["-c", script]))
                    .await?;
                call.send_update(
                    call.new_update()
                        .status(ToolCallStatus::InProgress)
                        .content(vec![terminal.as_content()]),
                )
                .await?;
                // Cancelling drops this future, which releases the terminal.
                terminal.wait_for_exit().await?;
                Ok(StopReason::EndTurn)
            }
            "ask-extension" => {
                let told = interop::QuestionNotification {
                    what: "a turn runs".to_owned(),
                };
                turn.connection().notify_raw("_interop/told", &told).await?;
                let ask = interop::QuestionRequest {
                    question: "how are you".to_owned(),
                };
                let answer = turn.connection().request_raw("_interop/ask", &ask).await?;
                turn.send_message(parse_params::<interop::QuestionResponse>(Some(&answer))?.answer)
                    .await?;
                Ok(StopReason::EndTurn)
            }
            "ask-command" => {
                let asked = v2::RequestPermissionRequest::new(
                    turn.id(),
                    "May it be run?",
                    permission_options(),
                );
                let subject = v2::CommandPermissionSubject::new("make clean", turn.cwd());
                let asked = asked.subject(v2::RequestPermissionSubject::Command(subject));
                let answer = turn.connection().request(&asked).await?;
                turn.send_message(match &answer.outcome {
                    RequestPermissionOutcome::Selected(chosen) => chosen.option_id.as_str(),
                    _ => "no answer",
                })
                .await?;
                Ok(StopReason::EndTurn)
            }
            "ask-person" => {
                let form = ElicitationMode::Form {
                    requested_schema: loudness_form(),
                };
                let action = turn.elicit("How loud?", form, None).await?;
                turn.send_message(match action {
                    ElicitationAction::Accept(accepted) => {
                        let filled = accepted.content.unwrap_or_default();
                        let loudness = filled.get("loudness").map(|value| json!(value));
                        format!("accept {}", loudness.unwrap_or_default())
                    }
                    other => format!("{other:?}"),
                })
                .await?;
                Ok(StopReason::EndTurn)
            }
            "ask-web" => {
                let page = ElicitationMode::Url {
                    elicitation_id: "page-1".into(),
                    url: "https://example.com/page".to_owned(),
                };
                let action = turn.elicit("Look at this.", page, None).await?;
                turn.complete_elicitation("page-1").await?;
                let accepted = matches!(action, ElicitationAction::Accept(_));
                turn.send_message(if accepted { "accept" } else { "no" })
                    .await?;
                Ok(StopReason::EndTurn)
            }
            "settings" => {
                let options = turn.config_options();
                let values: Vec<String> = options.iter().map(current_value).collect();
                turn.send_message(values.join(" ")).await?;
                Ok(StopReason::EndTurn)
            }
            "content" => {
                for block in &prompt.content {
                    let kind = json!(block);
                    let kind = kind.get("type").and_then(|kind| kind.as_str());
                    turn.send_message(format!("{} ", kind.unwrap_or("?")))
                        .await?;
                }
                Ok(StopReason::EndTurn)
            }
            "ask-unknown" => {
                let answer = turn
                    .connection()
                    .request_raw("terminal/explode", &json!({}))
                    .await;
                send_error(&turn, answer).await
            }
            "ask-missing-file" => {
                let answer = turn
                    .read_text_file(&format!("{}/missing.txt", turn.cwd()), None, None)
                    .await;
                send_error(&turn, answer).await
            }
            "refuse" => Ok(StopReason::Refusal),
            "max-tokens" => Ok(StopReason::MaxTokens),
            "fail" => Err(Error::Rpc(jsonrpc::Error::new(
                -32050,
                "the model is on holiday",
            ))),
            _ => {
                turn.send_message(text).await?;
                Ok(StopReason::EndTurn)
            }
        }
    }
}

impl LoadSession for OurAgent {
    async fn load(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        require_old(session.id())?;
        session
            .replay_user_message(ContentBlock::text("what was said"))
            .await?;
        session.send_thought("what was thought").await?;
        let call = session
            .report_tool_call(ToolCall::new("call", "What was done").kind(ToolKind::Read))
            .await?;
        call.complete().await?;
        session.send_message("what was answered").await?;
        Ok(OpenedSession::new().config_options(config_options("code")))
    }
}

impl ResumeSession for OurAgent {
    async fn resume(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        require_old(session.id())?;
        Ok(OpenedSession::new().config_options(config_options("code")))
    }
}

impl ListSessions for OurAgent {
    async fn list(&self, request: ListSessionsRequest) -> Result<ListSessionsResponse> {
        let page = |id, title, next: Option<&str>| {
            let mut session = SessionInfo::new(id, "/tmp");
            session.title = Some(String::from(title));
            let mut page = ListSessionsResponse::new(vec![session]);
            page.next_cursor = next.map(str::to_owned);
            page
        };
        match request.cursor.as_deref() {
            None => Ok(page("old-1", "The first", Some("second"))),
            Some("second") => Ok(page("old-2", "The second", None)),
            Some(_) => Err(Error::invalid_params("there is no such page")),
        }
    }
}

impl CloseSession for OurAgent {
    async fn close(&self, (): &(), _: &SessionId) -> Result<()> {
        Ok(())
    }
}

impl DeleteSession for OurAgent {
    async fn delete(&self, _: &SessionId) -> Result<()> {
        Ok(())
    }
}

impl Authentication for OurAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        let mut methods = vec![AuthMethod::Agent(AuthMethodAgent::new("key", "A key"))];
        if self.args.protocol == 2 {
            methods.push(AuthMethod::Agent(AuthMethodAgent::new("form", "A form")));
        }
        methods
    }

    async fn authenticate(&self, cx: &AuthContext, method: &AuthMethodId) -> Result<()> {
        if method.as_str() == "form" {
            let form = ElicitationMode::Form {
                requested_schema: loudness_form(),
            };
            let action = cx.elicit("How loud may it be?", form).await?;
            if !matches!(action, ElicitationAction::Accept(_)) {
                return Err(Error::Rpc(jsonrpc::Error::new(
                    jsonrpc::Error::AUTH_REQUIRED,
                    "Authentication required",
                )));
            }
        }
        self.authenticated.store(true, Ordering::Release);
        Ok(())
    }

    fn can_logout(&self) -> bool {
        true
    }

    async fn logout(&self) -> Result<()> {
        self.authenticated.store(false, Ordering::Release);
        Ok(())
    }
}

/// Returns an error unless the session is one of those that have a history.
fn require_old(session: &SessionId) -> Result<()> {
    match session.as_str().starts_with("old-") {
        true => Ok(()),
        false => Err(Error::Rpc(jsonrpc::Error::resource_not_found(format!(
            "session {session}"
        )))),
    }
}

async fn ask_permission(turn: &Turn, call: &str) -> Result<RequestPermissionOutcome> {
    turn.request_permission(acp::v1::ToolCallUpdate::new(call), permission_options())
        .await
}

fn permission_options() -> Vec<PermissionOption> {
    vec![
        PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
        PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
    ]
}

fn speaks_v2(turn: &Turn) -> bool {
    turn.client().version() == ProtocolVersion::V2
}

/// Returns the schema of a form that asks for a number.
fn loudness_form() -> ElicitationSchema {
    let number = IntegerPropertySchema::new().minimum(0).maximum(11);
    let number = ElicitationPropertySchema::Integer(number);
    ElicitationSchema::new()
        .properties([("loudness".to_owned(), number)])
        .required(vec!["loudness".to_owned()])
}

async fn send_error<T>(turn: &Turn, answer: Result<T>) -> Result<StopReason> {
    let code = answer.err().map_or(0, |error| error.into_rpc().code);
    turn.send_message(format!("error {code}")).await?;
    Ok(StopReason::EndTurn)
}

/// Returns all config options. They include the mode, which version 1 clients also get as session modes.
fn config_options(mode: &str) -> Vec<SessionConfigOption> {
    let value = |id: &str, name: &str| SessionConfigSelectOption::new(id, name);
    let modes = vec![value("ask", "Ask"), value("code", "Code")];
    let models = ["small", "large"]
        .map(|id| SessionConfigSelectGroup::new(format!("{id} ones"), id, vec![value(id, id)]))
        .to_vec();
    let mut model = SessionConfigSelect::new("small", Vec::new());
    model.options = SessionConfigSelectOptions::Grouped(models);
    vec![
        SessionConfigOption::new("mode", "Mode", SessionConfigSelect::new(mode, modes))
            .category(SessionConfigOptionCategory::Mode),
        SessionConfigOption::new("model", "Model", model)
            .category(SessionConfigOptionCategory::Model),
        SessionConfigOption::new(
            "loud",
            "Loud",
            SessionConfigKind::Boolean {
                current_value: false,
            },
        ),
    ]
}

/// Returns the current value of an option.
fn current_value(option: &SessionConfigOption) -> String {
    match &option.kind {
        SessionConfigKind::Select(select) => select.current_value.to_string(),
        SessionConfigKind::Boolean { current_value } => current_value.to_string(),
        _ => "?".to_owned(),
    }
}

fn parse_params<T: serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Result<T> {
    let params = params.map_or("null", RawValue::get);
    serde_json::from_str(params).map_err(|e| Error::invalid_params(e.to_string()))
}

fn to_raw_json(answer: &impl serde::Serialize) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(answer).map_err(|e| Error::internal(e.to_string()))
}
