//! A test client that offers either all capabilities or none, and records what it sees.

#![allow(dead_code, unreachable_pub)]

pub mod hears;
pub mod provider;
pub mod task;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp::client::{
    AgentConnection, Client, ClientSession, ClientState, PermissionRequest, ReadTextFile,
    Terminals, Update, UpdateContext, WriteTextFile,
};
use acp::thread::{ItemKind, ThreadToolCall, ThreadToolCallContent, ToolCallStatus};
use acp::v1::*;
use acp::{Thread, ThreadHandle, Transport};
use acp_agent::{CodingAgent, ScriptedModel};
use acp_host::{Files, SessionTerminals, TerminalEventKind};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{oneshot, watch};

/// A timeout long enough for every step of a test, but short enough to catch a test that hangs.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The capabilities that the client declares.
#[derive(Debug, Clone, Copy)]
pub struct OfferedCapabilities {
    pub read: bool,
    pub write: bool,
    pub terminal: bool,
    /// Whether the client shows the agent's display terminals.
    pub shows: bool,
}

pub const ALL_CAPABILITIES: OfferedCapabilities = OfferedCapabilities {
    read: true,
    write: true,
    terminal: true,
    shows: true,
};
pub const NO_CAPABILITIES: OfferedCapabilities = OfferedCapabilities {
    read: false,
    write: false,
    terminal: false,
    shows: false,
};

/// The user's answer to a permission request.
pub enum QuestionAnswer {
    /// Select the option of this kind.
    Kind(PermissionOptionKind),
    /// Select the option with this id.
    Id(&'static str),
    /// Do not answer.
    Hang,
    /// Select the option of this kind as soon as a message arrives on this channel.
    When(oneshot::Receiver<()>, PermissionOptionKind),
    /// Run this function, and then select the option of this kind.
    After(Box<dyn FnOnce() + Send>, PermissionOptionKind),
}

pub const ALLOW: QuestionAnswer = QuestionAnswer::Kind(PermissionOptionKind::AllowOnce);
pub const ALLOW_ALWAYS: QuestionAnswer = QuestionAnswer::Kind(PermissionOptionKind::AllowAlways);
pub const REJECT: QuestionAnswer = QuestionAnswer::Kind(PermissionOptionKind::RejectOnce);
pub const REJECT_ALWAYS: QuestionAnswer = QuestionAnswer::Kind(PermissionOptionKind::RejectAlways);

#[derive(Default)]
pub struct ClientRecord {
    pub updates: Mutex<Vec<SessionUpdate>>,
    pub asked: Mutex<Vec<PermissionRequest>>,
    pub answers: Mutex<VecDeque<QuestionAnswer>>,
    pub reads: AtomicUsize,
    pub writes: AtomicUsize,
    pub created: AtomicUsize,
    pub released: AtomicUsize,
}

struct TestClient {
    seen: Arc<ClientRecord>,
    offers: OfferedCapabilities,
    files: Files,
    terminals: acp_host::HostTerminals,
    /// The output that commands print.
    print: watch::Sender<String>,
    cwd: PathBuf,
}

impl ReadTextFile<SessionTerminals> for TestClient {
    async fn read(
        &self,
        _: &SessionTerminals,
        request: ReadTextFileRequest,
    ) -> acp::Result<ReadTextFileResponse> {
        assert!(Path::new(&request.path).is_absolute());
        self.seen.reads.fetch_add(1, Ordering::SeqCst);
        Ok(self.files.read(&request).await?)
    }
}

impl WriteTextFile<SessionTerminals> for TestClient {
    async fn write(
        &self,
        _: &SessionTerminals,
        request: WriteTextFileRequest,
    ) -> acp::Result<WriteTextFileResponse> {
        assert!(Path::new(&request.path).is_absolute());
        self.seen.writes.fetch_add(1, Ordering::SeqCst);
        Ok(self.files.write(&request).await?)
    }
}

impl Terminals<SessionTerminals> for TestClient {
    async fn create(
        &self,
        terminals: &SessionTerminals,
        request: CreateTerminalRequest,
    ) -> acp::Result<CreateTerminalResponse> {
        self.seen.created.fetch_add(1, Ordering::SeqCst);
        Ok(terminals.create(&request).await?)
    }
    async fn output(
        &self,
        terminals: &SessionTerminals,
        request: TerminalOutputRequest,
    ) -> acp::Result<TerminalOutputResponse> {
        Ok(terminals.output(&request).await?)
    }
    async fn wait_for_exit(
        &self,
        terminals: &SessionTerminals,
        request: WaitForTerminalExitRequest,
    ) -> acp::Result<WaitForTerminalExitResponse> {
        Ok(terminals.wait_for_exit(&request).await?)
    }
    async fn kill(
        &self,
        terminals: &SessionTerminals,
        request: KillTerminalRequest,
    ) -> acp::Result<KillTerminalResponse> {
        Ok(terminals.kill(&request).await?)
    }
    async fn release(
        &self,
        terminals: &SessionTerminals,
        request: ReleaseTerminalRequest,
    ) -> acp::Result<ReleaseTerminalResponse> {
        let released = terminals.release(&request).await?;
        self.seen.released.fetch_add(1, Ordering::SeqCst);
        Ok(released)
    }
}

impl ClientState<TestClient> for SessionTerminals {
    fn new(client: &TestClient, _: &SessionId, _: &ThreadHandle) -> Self {
        let print = client.print.clone();
        client.terminals.session(&client.cwd, move |event| {
            if let TerminalEventKind::Output(text) = event.kind {
                print.send_modify(|printed| printed.push_str(&text));
            }
        })
    }
}

impl Client for TestClient {
    type State = SessionTerminals;

    async fn update(&self, _: &SessionTerminals, _: &UpdateContext, update: &Update) {
        if let Some(update) = update.clone().into_v1() {
            self.seen.updates.lock().unwrap().push(update);
        }
    }

    async fn request_permission(
        &self,
        _: &SessionTerminals,
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        self.seen.asked.lock().unwrap().push(request.clone());
        // Notifies those who wait for the thread to change that there is a permission request.
        request.thread.change(|_| ());
        let answer = self
            .seen
            .answers
            .lock()
            .unwrap()
            .pop_front()
            .expect("nobody expects a question");
        let kind = match answer {
            QuestionAnswer::Hang => std::future::pending().await,
            QuestionAnswer::Id(id) => return Ok(RequestPermissionOutcome::selected(id)),
            QuestionAnswer::Kind(kind) => kind,
            QuestionAnswer::When(now, kind) => {
                now.await.expect("someone says so");
                kind
            }
            QuestionAnswer::After(first, kind) => {
                first();
                kind
            }
        };
        let option = request
            .options
            .iter()
            .find(|option| option.kind == kind)
            .expect("it is offered");
        Ok(RequestPermissionOutcome::selected(&option.option_id))
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<SessionTerminals>> {
        self.offers.read.then_some(self)
    }
    fn write_text_file(&self) -> Option<&impl WriteTextFile<SessionTerminals>> {
        self.offers.write.then_some(self)
    }
    fn terminals(&self) -> Option<&impl Terminals<SessionTerminals>> {
        self.offers.terminal.then_some(self)
    }
}

/// Connects to an agent with a client that offers no capabilities and shows nothing.
pub async fn connect(agent: CodingAgent) -> AgentConnection {
    struct MinimalClient;
    impl Client for MinimalClient {
        type State = ();

        async fn update(&self, (): &(), _: &UpdateContext, _: &Update) {}
        async fn request_permission(
            &self,
            (): &(),
            _: PermissionRequest,
        ) -> acp::Result<RequestPermissionOutcome> {
            panic!("nobody expects a question")
        }
    }
    let (ours, theirs) = acp::transport::memory();
    acp::testing::start_agent(theirs, agent, acp::Options::new());
    acp::testing::start_client(ours, MinimalClient, acp::Options::new())
        .await
        .unwrap()
}

/// A session with an agent, in its own directory.
pub struct AgentFixture {
    dir: tempfile::TempDir,
    pub agent: AgentConnection,
    pub session: ClientSession,
    pub seen: Arc<ClientRecord>,
    /// Everything printed so far in the client's terminals.
    pub printed: watch::Receiver<String>,
}

impl AgentFixture {
    pub async fn start_offline(offers: OfferedCapabilities) -> Self {
        Self::new(
            CodingAgent::new(&acp_agent::ModelConfig::Offline).unwrap(),
            offers,
        )
        .await
    }

    pub async fn start_scripted(script: &str, offers: OfferedCapabilities) -> Self {
        Self::new(
            CodingAgent::with_model(ScriptedModel::parse(script).unwrap()),
            offers,
        )
        .await
    }

    pub async fn new(agent: CodingAgent, offers: OfferedCapabilities) -> Self {
        Self::start_with_options(acp::Options::new(), agent, offers).await
    }

    /// Like [`new`](Self::new), but with these options for the connection.
    pub async fn start_with_options(
        options: acp::Options,
        agent: CodingAgent,
        offers: OfferedCapabilities,
    ) -> Self {
        Self::start_with_client_name(None, options, agent, offers).await
    }

    /// Like [`new`](Self::new), but with these options for the connection, and a client that inserts this JSON text
    /// before its capabilities in `initialize`.
    pub async fn start_with_client_name(
        name: Option<&'static str>,
        options: acp::Options,
        agent: CodingAgent,
        offers: OfferedCapabilities,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let seen = Arc::new(ClientRecord::default());
        let (print, printed) = watch::channel(String::new());
        let client = TestClient {
            seen: Arc::clone(&seen),
            offers,
            files: Files::new([dir.path().to_owned()]).unwrap(),
            terminals: acp_host::HostTerminals::new(),
            print,
            cwd: dir.path().to_owned(),
        };
        let (ours, theirs) = acp::transport::memory();
        let theirs = match (name, offers.shows) {
            (Some(name), _) => replace_in_messages(theirs, r#""clientCapabilities":"#, name),
            (None, true) => theirs,
            (None, false) => hide_terminals(theirs),
        };
        acp::testing::start_agent(theirs, agent, options.clone());
        let agent = acp::testing::start_client(ours, client, options)
            .await
            .unwrap();
        let session = agent.new_session(dir.path()).await.unwrap();
        // The commands are announced as soon as the session is open. Wait for that here, so that no test sees it later.
        wait_for_thread(session.thread(), |thread| !thread.commands().is_empty()).await;
        seen.updates.lock().unwrap().clear();
        Self {
            dir,
            agent,
            session,
            seen,
            printed,
        }
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the session's working directory.
    pub fn cwd(&self) -> String {
        self.dir.path().to_str().unwrap().to_owned()
    }

    pub fn write_file(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read_file(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn file_exists(&self, name: &str) -> bool {
        Path::new(&self.path(name)).exists()
    }

    /// Adds answers to the next permission requests.
    pub fn queue_answers(&self, answers: impl IntoIterator<Item = QuestionAnswer>) {
        *self.seen.answers.lock().unwrap() = answers.into_iter().collect();
    }

    /// Runs a turn that ends normally, and returns the agent's text.
    pub async fn prompt_for_text(&self, prompt: impl Into<acp::client::PromptContent>) -> String {
        assert_eq!(self.prompt(prompt).await.unwrap(), StopReason::EndTurn);
        self.last_message()
    }

    /// Runs a turn. Only the updates of this turn are recorded.
    pub async fn prompt(
        &self,
        prompt: impl Into<acp::client::PromptContent>,
    ) -> acp::Result<StopReason> {
        self.seen.updates.lock().unwrap().clear();
        self.seen.asked.lock().unwrap().clear();
        let prompted = tokio::time::timeout(TIMEOUT, self.session.prompt(prompt)).await;
        let left = self.seen.answers.lock().unwrap().len();
        assert_eq!(left, 0, "questions that were not asked");
        prompted.expect("it hangs")
    }

    /// Starts a turn, waits until the thread satisfies `shows`, cancels the turn, and waits for it to end.
    pub async fn cancel_when(&self, prompt: &str, shows: impl Fn(&Thread) -> bool) -> StopReason {
        let turn = self.start_prompt(prompt);
        wait_for_thread(self.session.thread(), shows).await;
        self.cancel_turn(turn).await
    }

    pub fn start_prompt(&self, prompt: &str) -> tokio::task::JoinHandle<acp::Result<StopReason>> {
        let (session, prompt) = (self.session.clone(), prompt.to_owned());
        tokio::spawn(async move { session.prompt(prompt).await })
    }

    pub async fn cancel_turn(
        &self,
        turn: tokio::task::JoinHandle<acp::Result<StopReason>>,
    ) -> StopReason {
        self.session.cancel().await.unwrap();
        tokio::time::timeout(TIMEOUT, turn)
            .await
            .expect("it hangs")
            .unwrap()
            .unwrap()
    }

    pub fn last_message(&self) -> String {
        self.session.thread().read(|thread| {
            let last = thread
                .items()
                .iter()
                .rev()
                .find_map(|item| match &item.kind {
                    ItemKind::Agent(message) => Some(message.text()),
                    _ => None,
                });
            last.unwrap_or_default()
        })
    }

    /// Returns the tool calls so far.
    pub fn tool_calls(&self) -> Vec<ThreadToolCall> {
        self.session.thread().read(|thread| {
            let calls = thread.items().iter().filter_map(|item| match &item.kind {
                ItemKind::ToolCall(call) => Some((**call).clone()),
                _ => None,
            });
            calls.collect()
        })
    }

    /// Returns the last tool call.
    pub fn last_tool_call(&self) -> ThreadToolCall {
        self.tool_calls().pop().expect("there is a tool call")
    }

    /// Returns every status reported for a tool call in the last turn, in order. Each update contains a status.
    pub fn all_statuses(&self, id: &ToolCallId) -> Vec<String> {
        let updates = self.seen.updates.lock().unwrap();
        updates
            .iter()
            .filter_map(|update| match update {
                SessionUpdate::ToolCall(call) if call.tool_call_id == *id => {
                    Some(call.status.to_string())
                }
                SessionUpdate::ToolCallUpdate(update) if update.tool_call_id == *id => {
                    Some(update.status.as_ref().expect("a status").to_string())
                }
                _ => None,
            })
            .collect()
    }

    /// Returns the distinct statuses that a tool call had in the last turn, in order.
    pub fn statuses(&self, id: &ToolCallId) -> Vec<String> {
        let mut statuses = self.all_statuses(id);
        statuses.dedup();
        statuses
    }

    /// Returns the plans of the last turn, each as the statuses of its entries.
    pub fn plan_updates(&self) -> Vec<Vec<String>> {
        let updates = self.seen.updates.lock().unwrap();
        updates
            .iter()
            .filter_map(|update| match update {
                SessionUpdate::Plan(plan) => Some(
                    plan.entries
                        .iter()
                        .map(|entry| entry.status.to_string())
                        .collect(),
                ),
                _ => None,
            })
            .collect()
    }

    pub fn permission_requests(&self) -> Vec<PermissionRequest> {
        self.seen.asked.lock().unwrap().clone()
    }

    pub fn current_mode(&self) -> String {
        self.session.thread().read(mode_of_thread)
    }
}

/// Removes support for display terminals from `initialize`. Our own clients always declare it.
pub fn hide_terminals(transport: Transport) -> Transport {
    let told = (r#""terminal_output":true"#, r#""terminal_output":false"#);
    replace_in_messages(transport, told.0, told.1)
}

/// Replaces text in the messages that the client sends, such as `initialize`.
pub fn replace_in_messages(
    transport: Transport,
    told: &'static str,
    instead: &'static str,
) -> Transport {
    let (reader, writer) = transport.into_split();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let mut reader = BufReader::new(reader);
        let mut ours = ours;
        let mut first = String::new();
        reader.read_line(&mut first).await.unwrap();
        assert!(first.contains(told), "{first}");
        let first = first.replace(told, instead);
        ours.write_all(first.as_bytes()).await.unwrap();
        // Run until either end is closed.
        let _ = tokio::io::copy(&mut reader, &mut ours).await;
    });
    Transport::new(theirs, writer)
}

/// Returns the mode shown in a thread.
pub fn mode_of_thread(thread: &Thread) -> String {
    match &thread.config_options()[0].kind {
        SessionConfigKind::Select(select) => select.current_value.to_string(),
        other => panic!("{other:?}"),
    }
}

pub fn load_count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

/// Returns all text in the content of a tool call.
pub fn call_text(call: &ThreadToolCall) -> String {
    let texts = call.content.iter().filter_map(|content| match content {
        ThreadToolCallContent::Content(content) => content.as_text(),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the diff in the content of a tool call.
pub fn call_diff(call: &ThreadToolCall) -> Option<Diff> {
    call.content.iter().find_map(|content| match content {
        ThreadToolCallContent::Diff(diff) => {
            let (path, texts) = diff.file_texts().expect("the texts of one file");
            let mut diff = Diff::new(path, &texts.new);
            diff.old_text.clone_from(&texts.old);
            Some(diff)
        }
        _ => None,
    })
}

/// Returns the terminal in the content of a tool call.
pub fn call_terminal(call: &ThreadToolCall) -> Option<TerminalId> {
    call.content.iter().find_map(|content| match content {
        ThreadToolCallContent::Terminal(terminal) => Some(terminal.clone()),
        _ => None,
    })
}

/// Returns `true` if the thread shows a tool call with this status whose content includes this text.
pub fn has_call_showing(thread: &Thread, status: ToolCallStatus, text: &str) -> bool {
    thread.items().iter().any(|item| match &item.kind {
        ItemKind::ToolCall(call) => call.status == status && call_text(call).contains(text),
        _ => false,
    })
}

/// Waits until a thread satisfies `found`.
pub async fn wait_for_thread(thread: &ThreadHandle, found: impl Fn(&Thread) -> bool) {
    let mut seen = 0;
    while !thread.read(&found) {
        let changed = tokio::time::timeout(TIMEOUT, thread.changed(seen));
        seen = changed.await.expect("the thread shows what is looked for");
    }
}

/// Returns the number after `pid:` in a text.
pub fn parse_pid(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("pid:")?;
    // The whole number has arrived only when more text follows it.
    let (number, _) = rest.split_once('\n')?;
    number.trim().parse().ok()
}

/// Returns `true` if a process is running. A zombie does not count.
#[cfg(unix)]
pub fn is_running(pid: u32) -> bool {
    let known = rustix::process::Pid::from_raw(pid.cast_signed())
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    if !known || !Path::new("/proc/self/stat").exists() {
        return known;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or_default().chars().next();
    !matches!(state, None | Some('Z' | 'X'))
}

/// Returns `text` as the `read` tool formats it for the model: each line with its number.
pub fn with_line_numbers(text: &str) -> String {
    let lines = text.split_inclusive('\n').zip(1..);
    lines
        .map(|(line, number)| format!("{number}\t{line}"))
        .collect()
}
