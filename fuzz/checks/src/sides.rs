//! The two sides that a random peer is connected to. They offer everything and use everything.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp::agent::{
    ArchiveSession, AuthContext, Authentication, CancelWork, CheckAuthStatus, CheckSessionStatus,
    CloseSession, DeleteSession, ExtensionNotification, ExtensionRequest, ForkSession,
    ListSessions, LoadSession, OpenedSession, Prompt, Providers, ResumeSession, Session,
    SessionSetup, SetSessionTitle, SteerTurn, TerminalCommand, Turn,
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

use crate::connection::Setup;

/// How long either side waits for a response from its peer.
const WAIT: Duration = Duration::from_secs(5);

/// Waits for a response that the peer may never send.
async fn within<T>(work: impl Future<Output = Result<T>>) -> Option<T> {
    tokio::time::timeout(WAIT, work).await.ok()?.ok()
}

fn web_page() -> ElicitationMode {
    ElicitationMode::Url {
        elicitation_id: "e".into(),
        url: "http://localhost/".to_owned(),
    }
}

/// An agent that offers everything, and acts according to the letters of a prompt.
pub(crate) fn agent(setup: Setup) -> impl Agent {
    Everything {
        setup,
        sessions: AtomicU64::new(0),
    }
}

struct Everything {
    setup: Setup,
    sessions: AtomicU64,
}

impl Everything {
    async fn pause(&self) {
        if self.setup.slow() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn options(mode: &str) -> Vec<SessionConfigOption> {
    let values = ["a", "b"].map(|id| SessionConfigSelectOption::new(id, id));
    let select = SessionConfigSelect::new(mode, values.to_vec());
    let mode =
        SessionConfigOption::new("m", "Mode", select).category(SessionConfigOptionCategory::Mode);
    vec![mode]
}

impl Agent for Everything {
    type State = ();

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> Result<StopReason> {
        for letter in prompt.text().chars().take(24) {
            self.pause().await;
            step(&turn, letter).await?;
        }
        Ok(StopReason::EndTurn)
    }

    fn prompt_capabilities(&self) -> PromptCapabilities {
        PromptCapabilities::new().image(true)
    }

    fn additional_directories(&self) -> bool {
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
        Ok(OpenedSession::new().config_options(options("a")))
    }

    async fn session_opened(&self, (): &(), session: Session) {
        let command = AvailableCommand::new("c", "a command");
        let _ = session.commands(vec![command]).await;
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
            SessionConfigOptionValue::Id(id) => Ok(options(id.as_str())),
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
        (!self.setup.v2()).then_some(self)
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
    fn session_status(&self) -> Option<&impl CheckSessionStatus> {
        Some(self)
    }
    fn auth_status(&self) -> Option<&impl CheckAuthStatus> {
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
        within(client.request_raw(request.method(), &())).await;
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
        // Of the same name as what was told, which bounds it.
        let _ = client.notify_raw(notification.method(), &()).await;
    }
}

/// Performs one of the actions of an agent in a turn.
async fn step(turn: &Turn, letter: char) -> Result<()> {
    let call = ToolCallId::from("call");
    match letter {
        'm' => turn.message("hello").await?,
        't' => turn.thought("hm").await?,
        'f' => {
            for _ in 0..100 {
                turn.message("x".repeat(30)).await?;
            }
        }
        'c' => drop(turn.tool_call(ToolCall::new(call, "Call")).await?),
        'a' => {
            let once = PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce);
            within(turn.request_permission(ToolCallUpdate::new(call), vec![once])).await;
        }
        'r' => drop(within(turn.read_text_file("/f", Some(1), None)).await),
        'w' => drop(within(turn.write_text_file("/f", "text")).await),
        'T' => {
            let command = TerminalCommand::new("c", ["a"]);
            if let Some(terminal) = within(turn.create_terminal(command)).await {
                within(terminal.output()).await;
                within(terminal.wait_for_exit()).await;
                within(terminal.kill()).await;
            }
        }
        'e' => {
            let url = web_page();
            within(turn.elicit("Log in", url, None)).await;
            turn.elicitation_completed("e").await?;
        }
        'p' => {
            let entry = PlanEntry::new("step", PlanEntryPriority::Low, PlanEntryStatus::Pending);
            turn.plan_by_id("p", vec![entry]).await?;
        }
        'q' => turn.remove_plan("p").await?,
        'o' => turn.set_config_options(options("b")).await?,
        'i' => turn.title("title").await?,
        's' => tokio::time::sleep(Duration::from_secs(1)).await,
        'k' => drop(turn.take_cancellation()),
        'C' => {
            let _ = tokio::time::timeout(WAIT, turn.cancelled()).await;
        }
        'E' => return Err(Error::internal("as it was told")),
        _ => {}
    }
    Ok(())
}

impl LoadSession for Everything {
    async fn load(&self, session: &Session, _: SessionSetup) -> Result<OpenedSession> {
        session.user_message("hi").await?;
        self.pause().await;
        session.message("hello").await?;
        if session.id().as_str().contains("no") {
            return Err(Error::invalid_params("not there"));
        }
        Ok(OpenedSession::new().config_options(options("b")))
    }
}

impl ResumeSession for Everything {
    async fn resume(&self, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        self.pause().await;
        Ok(OpenedSession::new())
    }
}

impl ForkSession for Everything {
    async fn fork(&self, _: &SessionId, _: &Session, _: SessionSetup) -> Result<OpenedSession> {
        self.pause().await;
        Ok(OpenedSession::new())
    }
}

impl CancelWork for Everything {
    async fn cancel_tool_call(&self, (): &(), _: &Session, id: &ToolCallId) -> Result<()> {
        Err(Error::invalid_params(format!("no call {id}")))
    }
    async fn cancel_terminal(&self, (): &(), _: &Session, _: &TerminalId) -> Result<()> {
        Ok(())
    }
}

impl ListSessions for Everything {
    async fn list(&self, _: ListSessionsRequest) -> Result<ListSessionsResponse> {
        Ok(ListSessionsResponse::new([]))
    }
}

impl CloseSession for Everything {
    async fn close(&self, (): &(), _: &SessionId) -> Result<()> {
        self.pause().await;
        Ok(())
    }
}

impl SetSessionTitle for Everything {
    async fn set_title(&self, _: Option<&()>, _: &SessionId, title: &str) -> Result<String> {
        Ok(title.to_owned())
    }
}
impl ArchiveSession for Everything {
    async fn archive(&self, _: &SessionId) -> Result<()> {
        Ok(())
    }
    async fn unarchive(&self, _: Option<&()>, id: &SessionId) -> Result<()> {
        Err(Error::invalid_params(format!("there is no session {id}")))
    }
}
impl CheckSessionStatus for Everything {
    async fn status(&self, _: &SessionId) -> Result<Option<SessionStatus>> {
        Ok(Some(SessionStatus::Saved))
    }
}
impl CheckAuthStatus for Everything {
    async fn auth_state(&self) -> Result<AuthStatusResponse> {
        Ok(AuthStatusResponse::new(AuthState::NotRequired))
    }
}
impl Providers for Everything {
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
impl SteerTurn for Everything {
    async fn steer(&self, (): &(), _: &Session, _: &Prompt) -> Result<bool> {
        Ok(true)
    }
}
impl DeleteSession for Everything {
    async fn delete(&self, id: &SessionId) -> Result<()> {
        Err(Error::invalid_params(format!("there is no session {id}")))
    }
}

impl Authentication for Everything {
    fn methods(&self) -> Vec<AuthMethod> {
        vec![AuthMethod::Agent(AuthMethodAgent::new("a", "A"))]
    }
    async fn authenticate(&self, cx: &AuthContext, _: &AuthMethodId) -> Result<()> {
        let url = web_page();
        within(cx.elicit("Log in", url)).await;
        cx.elicitation_completed("e").await
    }
    fn can_logout(&self) -> bool {
        true
    }
}

/// Runs a client that offers everything and requests everything from its agent, until the connection ends. Returns
/// whether it could connect.
pub(crate) async fn client(setup: Setup, options: Options, transport: Transport) -> bool {
    let client = Anyone { setup };
    let (handshake, driver) = connect_with(transport, client, options);
    tokio::spawn(driver);
    let connecting = tokio::time::timeout(10 * WAIT, handshake);
    let Ok(Ok(agent)) = connecting.await else {
        return false;
    };
    let _: &AgentCapabilities = agent.capabilities();
    if let Some(session) = within(agent.new_session("/")).await {
        let work = async {
            let prompting = async {
                for text in ["one", "two"] {
                    within(session.prompt(text)).await;
                    // The turn may go on: what was dropped is cancelled.
                    within(session.prompt("at once")).await;
                }
            };
            let others = async {
                within(session.set_mode("b")).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                within(session.steer("and the shed")).await;
                within(session.cancel()).await;
                within(session.set_config_option("mode", "a")).await;
                within(session.cancel_tool_call("call")).await;
                within(session.cancel_terminal("t")).await;
                within(agent.connection().request_raw("_ask", &())).await;
            };
            tokio::join!(prompting, others);
        };
        let opening = async {
            within(agent.list_sessions(&ListSessionsRequest::new())).await;
            within(agent.load_session("old", "/")).await;
            within(agent.load_session("s1", "/")).await;
            within(agent.resume_session("older", "/")).await;
            within(agent.fork_session("s1", "/")).await;
            within(agent.authenticate("a")).await;
            within(agent.logout()).await;
            within(agent.session_status(&"old".into())).await;
            within(agent.auth_status()).await;
            within(agent.list_providers()).await;
            within(agent.disable_provider("p")).await;
            within(agent.archive_session(&"old".into())).await;
            within(agent.unarchive_session(&"old".into())).await;
            within(agent.set_session_title(&"old".into(), "t")).await;
            within(agent.delete_session(&"old".into())).await;
        };
        tokio::join!(work, opening);
        // What it shows can be looked at.
        session.thread().read(|thread| {
            let limit = crate::connection::thread_limit(setup);
            assert!(
                thread.items().len() <= limit / 100,
                "a thread of {} items",
                thread.items().len()
            );
        });
        within(session.close()).await;
    }
    agent.closed().await;
    true
}

struct Anyone {
    setup: Setup,
}

impl Anyone {
    async fn pause(&self) {
        if self.setup.slow() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

impl Client for Anyone {
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

impl ReadTextFile<()> for Anyone {
    async fn read(&self, (): &(), _: ReadTextFileRequest) -> Result<ReadTextFileResponse> {
        self.pause().await;
        Ok(ReadTextFileResponse::new("text"))
    }
}

impl WriteTextFile<()> for Anyone {
    async fn write(&self, (): &(), _: WriteTextFileRequest) -> Result<WriteTextFileResponse> {
        self.pause().await;
        Ok(WriteTextFileResponse::new())
    }
}

impl Terminals<()> for Anyone {
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

impl Elicitation<()> for Anyone {
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
