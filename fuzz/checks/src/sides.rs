//! The agent and the client that are tested with a random peer. They offer and use every feature.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp::agent::{
    ArchiveSession, AuthContext, AuthStatusHandler, Authentication, CancelWork, CloseSession,
    DeleteSession, ExtensionNotification, ExtensionRequest, ForkSession, ListSessions, LoadSession,
    OpenedSession, Prompt, Providers, ResumeSession, Session, SessionSetup, SessionStatusHandler,
    SetSessionTitle, SteerTurn, TerminalCommand, Turn,
};
use acp::client::{
    Elicitation, PermissionRequest, ReadTextFile, Terminals, Update, UpdateContext, WriteTextFile,
    connect_with,
};
use acp::v1::{
    AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodId, AuthState, AuthStatusResponse,
    AvailableCommand, CreateElicitationRequest, CreateElicitationResponse, CreateTerminalRequest,
    CreateTerminalResponse, ElicitationAction, ElicitationCapabilities,
    ElicitationFormCapabilities, ElicitationMode, ElicitationNoContent, ElicitationUrlCapabilities,
    KillTerminalRequest, KillTerminalResponse, ListSessionsRequest, ListSessionsResponse,
    PermissionOption, PermissionOptionKind, PlanEntry, PlanEntryPriority, PlanEntryStatus,
    PromptCapabilities, ProviderId, ProviderInfo, ReadTextFileRequest, ReadTextFileResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, RequestPermissionOutcome, SessionConfigId,
    SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelect, SessionConfigSelectOption, SessionId, SessionStatus,
    SessionSystemPromptCapabilities, SessionSystemPromptModeCapabilities,
    SessionSystemPromptOverrideCapabilities, SetProviderRequest, StopReason, TerminalExitStatus,
    TerminalId, TerminalOutputRequest, TerminalOutputResponse, ToolCall, ToolCallId,
    ToolCallUpdate, WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
    WriteTextFileResponse,
};
use acp::{Agent, Client, Connection, Error, Options, Result, Transport};
use serde_json::value::RawValue;

use crate::connection::FuzzSetup;

/// How long either side waits for a response from its peer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits for a response that the peer may never send.
async fn with_timeout<T>(work: impl Future<Output = Result<T>>) -> Option<T> {
    tokio::time::timeout(RESPONSE_TIMEOUT, work)
        .await
        .ok()?
        .ok()
}

fn url_elicitation() -> ElicitationMode {
    ElicitationMode::Url {
        elicitation_id: "e".into(),
        url: "http://localhost/".to_owned(),
    }
}

/// Creates an agent that offers every feature, and acts according to the letters of a prompt.
pub(crate) fn fuzz_agent(setup: FuzzSetup) -> impl Agent {
    FuzzAgent {
        setup,
        sessions: AtomicU64::new(0),
    }
}

struct FuzzAgent {
    setup: FuzzSetup,
    sessions: AtomicU64,
}

impl FuzzAgent {
    async fn pause(&self) {
        if self.setup.is_slow() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn config_options(mode: &str) -> Vec<SessionConfigOption> {
    let values = ["a", "b"].map(|id| SessionConfigSelectOption::new(id, id));
    let select = SessionConfigSelect::new(mode, values.to_vec());
    let mode =
        SessionConfigOption::new("m", "Mode", select).category(SessionConfigOptionCategory::Mode);
    vec![mode]
}

impl Agent for FuzzAgent {
    type State = ();

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        for letter in prompt.text().chars().take(24) {
            self.pause().await;
            run_step(&turn, letter).await?;
        }
        Ok(StopReason::EndTurn)
    }

    fn prompt_capabilities(&self) -> PromptCapabilities {
        PromptCapabilities::new().image(true)
    }

    fn supports_additional_directories(&self) -> bool {
        true
    }

    fn new_session_id(&self) -> SessionId {
        format!("s{}", self.sessions.fetch_add(1, Ordering::Relaxed) + 1).into()
    }

    async fn new_session(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        self.pause().await;
        if session.cwd().contains("no") {
            return Err(Error::invalid_params("not there"));
        }
        Ok(OpenedSession::new().config_options(config_options("a")))
    }

    async fn session_opened(&self, (): &(), session: Session) {
        let command = AvailableCommand::new("c", "a command");
        let _ = session.set_commands(vec![command]).await;
    }

    async fn set_config_option(
        &self,
        (): &(),
        _: &Session,
        _: &SessionConfigId,
        value: SessionConfigOptionValue,
    ) -> Result<Vec<SessionConfigOption>> {
        self.pause().await;
        match value {
            SessionConfigOptionValue::Id(id) => Ok(config_options(id.as_str())),
            _ => Err(Error::invalid_params("no such value")),
        }
    }

    fn load_session(&self) -> Option<&impl LoadSession> {
        Some(self)
    }
    fn resume_session(&self) -> Option<&impl ResumeSession> {
        Some(self)
    }
    fn fork_session(&self) -> Option<&impl ForkSession> {
        Some(self)
    }
    fn cancel_work(&self) -> Option<&impl CancelWork> {
        Some(self)
    }
    fn list_sessions(&self) -> Option<&impl ListSessions> {
        (!self.setup.is_v2()).then_some(self)
    }
    fn close_session(&self) -> Option<&impl CloseSession> {
        Some(self)
    }
    fn set_session_title(&self) -> Option<&impl SetSessionTitle> {
        Some(self)
    }
    fn archive_session(&self) -> Option<&impl ArchiveSession> {
        Some(self)
    }
    fn session_status(&self) -> Option<&impl SessionStatusHandler> {
        Some(self)
    }
    fn auth_status(&self) -> Option<&impl AuthStatusHandler> {
        Some(self)
    }
    fn providers(&self) -> Option<&impl Providers> {
        Some(self)
    }
    fn steer_turn(&self) -> Option<&impl SteerTurn> {
        Some(self)
    }
    fn system_prompt_capabilities(&self) -> Option<SessionSystemPromptCapabilities> {
        let modes = SessionSystemPromptModeCapabilities::new()
            .overriding(SessionSystemPromptOverrideCapabilities::new());
        Some(SessionSystemPromptCapabilities::new().mode(modes))
    }
    fn delete_session(&self) -> Option<&impl DeleteSession> {
        Some(self)
    }
    fn authentication(&self) -> Option<&impl Authentication> {
        Some(self)
    }

    async fn extension_request(
        &self,
        client: &Connection,
        request: ExtensionRequest,
    ) -> Result<Box<RawValue>> {
        self.pause().await;
        with_timeout(client.request_raw(request.method(), &())).await;
        Ok(request
            .into_params()
            .unwrap_or_else(|| RawValue::NULL.to_owned()))
    }

    async fn extension_notification(
        &self,
        client: &Connection,
        notification: ExtensionNotification,
    ) {
        self.pause().await;
        // The notification has the same name as the received one, which limits its length.
        let _ = client.notify_raw(notification.method(), &()).await;
    }
}

/// Performs the action of an agent that a letter in the prompt stands for.
async fn run_step(turn: &Turn, letter: char) -> Result<()> {
    let call = ToolCallId::from("call");
    match letter {
        'm' => turn.send_message("hello").await?,
        't' => turn.send_thought("hm").await?,
        'f' => {
            for _ in 0..100 {
                turn.send_message("x".repeat(30)).await?;
            }
        }
        'c' => drop(turn.report_tool_call(ToolCall::new(call, "Call")).await?),
        'a' => {
            let once = PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce);
            with_timeout(turn.request_permission(ToolCallUpdate::new(call), vec![once])).await;
        }
        'r' => drop(with_timeout(turn.read_text_file("/f", Some(1), None)).await),
        'w' => drop(with_timeout(turn.write_text_file("/f", "text")).await),
        'T' => {
            let command = TerminalCommand::new("c", ["a"]);
            if let Some(terminal) = with_timeout(turn.create_terminal(command)).await {
                with_timeout(terminal.output()).await;
                with_timeout(terminal.wait_for_exit()).await;
                with_timeout(terminal.kill()).await;
            }
        }
        'e' => {
            let url = url_elicitation();
            with_timeout(turn.elicit("Log in", url, None)).await;
            turn.complete_elicitation("e").await?;
        }
        'p' => {
            let entry = PlanEntry::new("step", PlanEntryPriority::Low, PlanEntryStatus::Pending);
            turn.set_plan_by_id("p", vec![entry]).await?;
        }
        'q' => turn.remove_plan("p").await?,
        'o' => turn.set_config_options(config_options("b")).await?,
        'i' => turn.set_title("title").await?,
        's' => tokio::time::sleep(Duration::from_secs(1)).await,
        'k' => drop(turn.take_cancellation()),
        'C' => {
            let _ = tokio::time::timeout(RESPONSE_TIMEOUT, turn.cancelled()).await;
        }
        'E' => return Err(Error::internal("as it was told")),
        _ => {}
    }
    Ok(())
}

impl LoadSession for FuzzAgent {
    async fn load(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        session.replay_user_message("hi").await?;
        self.pause().await;
        session.send_message("hello").await?;
        if session.id().as_str().contains("no") {
            return Err(Error::invalid_params("not there"));
        }
        Ok(OpenedSession::new().config_options(config_options("b")))
    }
}

impl ResumeSession for FuzzAgent {
    async fn resume(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        self.pause().await;
        Ok(OpenedSession::new())
    }
}

impl ForkSession for FuzzAgent {
    async fn fork(&self, _: &SessionId, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        self.pause().await;
        Ok(OpenedSession::new())
    }
}

impl CancelWork for FuzzAgent {
    async fn cancel_tool_call(&self, (): &(), _: &Session, id: &ToolCallId) -> Result<()> {
        Err(Error::invalid_params(format!("no call {id}")))
    }
    async fn cancel_terminal(&self, (): &(), _: &Session, _: &TerminalId) -> Result<()> {
        Ok(())
    }
}

impl ListSessions for FuzzAgent {
    async fn list(&self, _: ListSessionsRequest) -> Result<ListSessionsResponse> {
        Ok(ListSessionsResponse::new([]))
    }
}

impl CloseSession for FuzzAgent {
    async fn close(&self, (): &(), _: &SessionId) -> Result<()> {
        self.pause().await;
        Ok(())
    }
}

impl SetSessionTitle for FuzzAgent {
    async fn set_title(&self, _: Option<&()>, _: &SessionId, title: &str) -> Result<String> {
        Ok(title.to_owned())
    }
}
impl ArchiveSession for FuzzAgent {
    async fn archive(&self, _: &SessionId) -> Result<()> {
        Ok(())
    }
    async fn unarchive(&self, _: Option<&()>, id: &SessionId) -> Result<()> {
        Err(Error::invalid_params(format!("there is no session {id}")))
    }
}
impl SessionStatusHandler for FuzzAgent {
    async fn status(&self, _: &SessionId) -> Result<Option<SessionStatus>> {
        Ok(Some(SessionStatus::Saved))
    }
}
impl AuthStatusHandler for FuzzAgent {
    async fn auth_state(&self) -> Result<AuthStatusResponse> {
        Ok(AuthStatusResponse::new(AuthState::NotRequired))
    }
}
impl Providers for FuzzAgent {
    async fn list(&self) -> Result<Vec<ProviderInfo>> {
        Ok(Vec::new())
    }
    async fn set(&self, _: SetProviderRequest) -> Result<()> {
        Ok(())
    }
    async fn disable(&self, _: &ProviderId) -> Result<()> {
        Ok(())
    }
}
impl SteerTurn for FuzzAgent {
    async fn steer(&self, (): &(), _: &Session, _: &Prompt) -> Result<bool> {
        Ok(true)
    }
}
impl DeleteSession for FuzzAgent {
    async fn delete(&self, id: &SessionId) -> Result<()> {
        Err(Error::invalid_params(format!("there is no session {id}")))
    }
}

impl Authentication for FuzzAgent {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethod::Agent(AuthMethodAgent::new("a", "A"))]
    }
    async fn authenticate(&self, cx: &AuthContext, _: &AuthMethodId) -> Result<()> {
        let url = url_elicitation();
        with_timeout(cx.elicit("Log in", url)).await;
        cx.complete_elicitation("e").await
    }
    fn can_logout(&self) -> bool {
        true
    }
}

/// Runs a client that offers and requests every feature, until the connection ends. Returns `true` if it could connect.
pub(crate) async fn run_client(setup: FuzzSetup, options: Options, transport: Transport) -> bool {
    let client = FuzzClient { setup };
    let (handshake, driver) = connect_with(transport, client, options);
    tokio::spawn(driver);
    let connecting = tokio::time::timeout(10 * RESPONSE_TIMEOUT, handshake);
    let Ok(Ok(agent)) = connecting.await else {
        return false;
    };
    let _: &AgentCapabilities = agent.capabilities();
    if let Some(session) = with_timeout(agent.new_session("/")).await {
        let work = async {
            let prompting = async {
                for text in ["one", "two"] {
                    with_timeout(session.prompt(text)).await;
                    // The turn can continue after the prompt was dropped, which cancels it.
                    with_timeout(session.prompt("at once")).await;
                }
            };
            let others = async {
                with_timeout(session.set_mode("b")).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                with_timeout(session.steer("and the shed")).await;
                with_timeout(session.cancel()).await;
                with_timeout(session.set_config_option("mode", "a")).await;
                with_timeout(session.cancel_tool_call("call")).await;
                with_timeout(session.cancel_terminal("t")).await;
                with_timeout(agent.connection().request_raw("_ask", &())).await;
            };
            tokio::join!(prompting, others);
        };
        let opening = async {
            with_timeout(agent.list_sessions(&ListSessionsRequest::new())).await;
            with_timeout(agent.load_session("old", "/")).await;
            with_timeout(agent.load_session("s1", "/")).await;
            with_timeout(agent.resume_session("older", "/")).await;
            with_timeout(agent.fork_session("s1", "/")).await;
            with_timeout(agent.authenticate("a")).await;
            with_timeout(agent.logout()).await;
            with_timeout(agent.session_status(&"old".into())).await;
            with_timeout(agent.auth_status()).await;
            with_timeout(agent.list_providers()).await;
            with_timeout(agent.disable_provider("p")).await;
            with_timeout(agent.archive_session(&"old".into())).await;
            with_timeout(agent.unarchive_session(&"old".into())).await;
            with_timeout(agent.set_session_title(&"old".into(), "t")).await;
            with_timeout(agent.delete_session(&"old".into())).await;
        };
        tokio::join!(work, opening);
        // The thread can be read.
        session.thread().read(|thread| {
            let limit = crate::connection::thread_limit(setup);
            assert!(
                thread.items().len() <= limit / 100,
                "a thread of {} items",
                thread.items().len()
            );
        });
        with_timeout(session.close()).await;
    }
    agent.closed().await;
    true
}

struct FuzzClient {
    setup: FuzzSetup,
}

impl FuzzClient {
    async fn pause(&self) {
        if self.setup.is_slow() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Client for FuzzClient {
    type State = ();

    async fn update(&self, (): &(), cx: &UpdateContext, _: &Update) {
        self.pause().await;
        let _ = cx.thread.read(|thread| thread.is_running());
    }
    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        self.pause().await;
        Ok(request.reject())
    }
    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        Some(self)
    }
    fn write_text_file(&self) -> Option<&impl WriteTextFile<()>> {
        Some(self)
    }
    fn terminals(&self) -> Option<&impl Terminals<()>> {
        Some(self)
    }
    fn elicitation(&self) -> Option<&impl Elicitation<()>> {
        Some(self)
    }
    async fn extension_request(&self, request: ExtensionRequest) -> Result<Box<RawValue>> {
        self.pause().await;
        Ok(request
            .into_params()
            .unwrap_or_else(|| RawValue::NULL.to_owned()))
    }
    async fn extension_notification(&self, _: ExtensionNotification) {
        self.pause().await;
    }
}

impl ReadTextFile<()> for FuzzClient {
    async fn read(&self, (): &(), _: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        self.pause().await;
        Ok(ReadTextFileResponse::new("text"))
    }
}

impl WriteTextFile<()> for FuzzClient {
    async fn write(&self, (): &(), _: WriteTextFileRequest) -> Result<WriteTextFileResponse> {
        self.pause().await;
        Ok(WriteTextFileResponse::new())
    }
}

impl Terminals<()> for FuzzClient {
    async fn create(&self, (): &(), _: CreateTerminalRequest) -> Result<CreateTerminalResponse> {
        self.pause().await;
        Ok(CreateTerminalResponse::new("t"))
    }
    async fn output(&self, (): &(), _: TerminalOutputRequest) -> Result<TerminalOutputResponse> {
        let mut output = TerminalOutputResponse::new("text", false);
        output.exit_status = Some(TerminalExitStatus::new());
        Ok(output)
    }
    async fn wait_for_exit(
        &self,
        (): &(),
        _: WaitForTerminalExitRequest,
    ) -> Result<WaitForTerminalExitResponse> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(WaitForTerminalExitResponse::new())
    }
    async fn kill(&self, (): &(), _: KillTerminalRequest) -> Result<KillTerminalResponse> {
        Ok(KillTerminalResponse::new())
    }
    async fn release(&self, (): &(), _: ReleaseTerminalRequest) -> Result<ReleaseTerminalResponse> {
        Ok(ReleaseTerminalResponse::new())
    }
}

impl Elicitation<()> for FuzzClient {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new()
            .form(ElicitationFormCapabilities::new())
            .url(ElicitationUrlCapabilities::new())
    }
    async fn create(
        &self,
        _: Option<&()>,
        _: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        self.pause().await;
        let decline = ElicitationAction::Decline(ElicitationNoContent::default());
        Ok(CreateElicitationResponse::new(decline))
    }
}
