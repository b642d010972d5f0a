//! A client on our library, and descriptions of what its threads show.

use std::sync::{Arc, Mutex};

use acp::client::{
    AgentConnection, ClientSession, ClientState, Elicitation, ExtensionNotification,
    ExtensionRequest, PermissionRequest, ReadTextFile, Terminals, Update, UpdateContext,
    WriteTextFile,
};
use acp::thread::ItemKind;
use acp::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAcceptAction,
    ElicitationAction, ElicitationCapabilities, ElicitationContentValue,
    ElicitationFormCapabilities, ElicitationId, ElicitationMode, ElicitationPropertySchema,
    ElicitationUrlCapabilities, RequestPermissionOutcome, SessionConfigKind,
    SessionConfigOptionCategory, SessionId, StopReason,
};
use acp::{Client, Error, Options, Result, Thread, ThreadHandle, Transport};
use acp_host::{AgentCommand, AgentProcess, Host, HostSession, Policy, Prompter};
use acp_remote::client::ConnectOptions;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::{InteropProject, update_outline, with_timeout};

/// A client on our library that uses `acp-host`.
#[derive(Clone)]
pub(crate) struct InteropClient {
    host: Arc<Host<InteropPrompter>>,
    pub(crate) says_no: bool,
    pub(crate) never_answers: bool,
    /// Whether to offer the draft of version 2.
    pub(crate) draft: bool,
    /// All permission requests so far.
    pub(crate) asked: Arc<Mutex<Vec<PermissionRequest>>>,
    /// All elicitations so far.
    pub(crate) elicited: Arc<Mutex<Vec<CreateElicitationRequest>>>,
    /// All updates so far, each with `true` if it was part of a replay.
    pub(crate) seen: Arc<Mutex<Vec<(Value, bool)>>>,
    told: Option<mpsc::UnboundedSender<String>>,
}

/// A prompter that answers without a user.
struct InteropPrompter;

impl Prompter for InteropPrompter {
    async fn ask(&self, _: &PermissionRequest) -> Option<acp::v1::PermissionOptionId> {
        None
    }
}

impl InteropClient {
    pub(crate) fn new(project: &InteropProject, policy: Policy) -> Self {
        let host = Host::new(policy, InteropPrompter, [project.path()]).unwrap();
        Self {
            host: Arc::new(host),
            says_no: false,
            never_answers: false,
            draft: false,
            asked: Arc::default(),
            elicited: Arc::default(),
            seen: Arc::default(),
            told: None,
        }
    }

    /// Creates a client that allows everything, and offers the draft of version 2.
    pub(crate) fn for_version_2(project: &InteropProject) -> Self {
        Self {
            draft: true,
            ..Self::new(project, Policy::All)
        }
    }

    /// Returns a channel for the notifications `_interop/told` and for completed web pages.
    pub(crate) fn listen(&mut self) -> mpsc::UnboundedReceiver<String> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.told = Some(sender);
        receiver
    }

    /// Starts an agent and connects to it. The agent exits when the process is dropped.
    pub(crate) async fn start(
        &self,
        project: &InteropProject,
        agent: &[&str],
    ) -> (AgentConnection, AgentProcess) {
        let (program, arguments) = agent.split_first().unwrap();
        let command = AgentCommand::new(program)
            .args(arguments)
            .env("XDG_STATE_HOME", project.state_directory())
            .cwd(project.path());
        let process = AgentProcess::spawn(&command).unwrap();
        let (stdin, stdout) = process.take_stdio().unwrap();
        let transport = Transport::new(stdout, stdin);
        (self.connect_over(transport).await, process)
    }

    /// Connects to the agent at a URL.
    pub(crate) async fn connect(&self, url: &str) -> AgentConnection {
        let connecting = acp_remote::client::connect(url, ConnectOptions::new());
        let transport = with_timeout("the server accepts our client", connecting).await;
        self.connect_over(transport.unwrap()).await
    }

    async fn connect_over(&self, transport: Transport) -> AgentConnection {
        let mut options = Options::new();
        if self.draft {
            options = options.draft_version_2();
        }
        let connecting = acp::testing::start_client(transport, self.clone(), options);
        with_timeout("our client connects", connecting)
            .await
            .unwrap()
    }

    pub(crate) fn outline(&self) -> Vec<String> {
        self.seen
            .lock()
            .unwrap()
            .iter()
            .filter_map(|(update, _)| update_outline(update))
            .collect()
    }
}

impl ClientState<InteropClient> for HostSession {
    fn new(client: &InteropClient, session: &SessionId, thread: &ThreadHandle) -> Self {
        client.host.session(session, thread)
    }

    fn closed(&self) {
        HostSession::closed(self);
    }
}

impl Client for InteropClient {
    type State = HostSession;

    async fn update(&self, _: &HostSession, cx: &UpdateContext, update: &Update) {
        // Convert the update back to the form in which it was sent, as far as possible.
        let update = match (update.clone().into_v1(), update.clone().into_v2()) {
            (_, Some(update)) if self.draft => serde_json::to_value(update),
            (Some(update), _) => serde_json::to_value(update),
            (None, update) => serde_json::to_value(update),
        };
        self.seen
            .lock()
            .unwrap()
            .push((update.unwrap(), cx.is_replay));
    }

    async fn request_permission(
        &self,
        session: &HostSession,
        request: PermissionRequest,
    ) -> Result<RequestPermissionOutcome> {
        self.asked.lock().unwrap().push(request.clone());
        if self.never_answers {
            std::future::pending::<HostSession>().await;
        }
        if self.says_no {
            return Ok(request.reject());
        }
        self.host.request_permission(session, &request).await
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<HostSession>> {
        Some(&*self.host)
    }

    fn write_text_file(&self) -> Option<&impl WriteTextFile<HostSession>> {
        Some(&*self.host)
    }

    fn terminals(&self) -> Option<&impl Terminals<HostSession>> {
        Some(&*self.host)
    }

    fn elicitation(&self) -> Option<&impl Elicitation<HostSession>> {
        Some(self)
    }

    async fn elicitation_completed(&self, id: &ElicitationId) {
        if let Some(sender) = &self.told {
            sender.send(format!("{id} is done")).unwrap();
        }
    }

    async fn extension_request(&self, request: ExtensionRequest) -> Result<Box<RawValue>> {
        if request.method() == "_interop/wait" {
            // Wait until the sender cancels the request.
            std::future::pending::<HostSession>().await;
        }
        assert_eq!(request.method(), "_interop/ask");
        let ask: interop::QuestionRequest =
            serde_json::from_str(request.params().unwrap().get()).unwrap();
        let answer = interop::QuestionResponse {
            answer: format!("our client heard {}", ask.question),
        };
        Ok(serde_json::value::to_raw_value(&answer).unwrap())
    }

    async fn extension_notification(&self, notification: ExtensionNotification) {
        assert_eq!(notification.method(), "_interop/told");
        let params = notification.params().unwrap();
        let told: interop::QuestionNotification = serde_json::from_str(params.get()).unwrap();
        if let Some(sender) = &self.told {
            sender.send(told.what).unwrap();
        }
    }
}

impl Elicitation<HostSession> for InteropClient {
    fn capabilities(&self) -> ElicitationCapabilities {
        ElicitationCapabilities::new()
            .form(ElicitationFormCapabilities::new())
            .url(ElicitationUrlCapabilities::new())
    }

    /// Fills in every number of a form with the maximum, and accepts every web page.
    async fn create(
        &self,
        _: Option<&HostSession>,
        request: CreateElicitationRequest,
    ) -> Result<CreateElicitationResponse> {
        self.elicited.lock().unwrap().push(request.clone());
        let accepted = ElicitationAcceptAction::default();
        let requested_schema = match request.mode {
            ElicitationMode::Form { requested_schema } => requested_schema,
            ElicitationMode::Url { .. } => {
                return Ok(CreateElicitationResponse::new(ElicitationAction::Accept(
                    accepted,
                )));
            }
            other => panic!("neither a form nor a page: {other:?}"),
        };
        let filled = requested_schema.properties.into_iter();
        let filled = filled.map(|(name, property)| {
            let ElicitationPropertySchema::Integer(number) = property else {
                panic!("not an integer: {property:?}")
            };
            let most = number.maximum.unwrap();
            (name, ElicitationContentValue::Integer(most))
        });
        let mut accepted = accepted;
        accepted.content = Some(filled.collect());
        Ok(CreateElicitationResponse::new(ElicitationAction::Accept(
            accepted,
        )))
    }
}

pub(crate) async fn run_prompt(session: &ClientSession, text: &str) -> Result<StopReason> {
    with_timeout("the turn ends", session.prompt(text)).await
}

/// Waits until a thread matches a condition.
pub(crate) async fn wait_for_thread(thread: &ThreadHandle, found: impl Fn(&Thread) -> bool) {
    let mut seen = 0;
    while !thread.read(&found) {
        seen = with_timeout("the thread shows what is looked for", thread.changed(seen)).await;
    }
}

/// Runs a turn and cancels it when its thread matches a condition. Its stop reason must be `cancelled`.
pub(crate) async fn cancel_when(
    session: &ClientSession,
    text: &'static str,
    found: impl Fn(&Thread) -> bool,
) {
    let turn = tokio::spawn({
        let session = session.clone();
        async move { session.prompt(text).await }
    });
    wait_for_thread(session.thread(), |thread| {
        thread.is_running() && found(thread)
    })
    .await;
    session.cancel().await.unwrap();
    assert_eq!(
        with_timeout("the turn ends", turn).await.unwrap().unwrap(),
        StopReason::Cancelled,
        "{text}"
    );
}

/// Describes an item of a thread in a few words.
pub(crate) fn item_outline(item: &acp::thread::Item) -> String {
    match &item.kind {
        ItemKind::User(message) => format!("user {}", message.text()),
        ItemKind::Agent(message) => format!("agent {}", message.text()),
        ItemKind::Thought(message) => format!("thought {}", message.text()),
        ItemKind::ToolCall(call) => format!("call {} {:?}", call.title, call.status),
        other => format!("{other:?}"),
    }
}

pub(crate) fn last_item_outline(thread: &Thread) -> String {
    thread.items().last().map(item_outline).unwrap_or_default()
}

/// Returns the current value of the option with this category.
pub(crate) fn current_value(thread: &Thread, category: &SessionConfigOptionCategory) -> String {
    let mut options = thread.config_options().iter();
    let option = options
        .find(|option| option.category.as_ref() == Some(category))
        .unwrap();
    let SessionConfigKind::Select(select) = &option.kind else {
        panic!("{option:?}")
    };
    select.current_value.to_string()
}

pub(crate) fn error_code(error: &Error) -> i32 {
    error.clone().into_rpc().code
}
