//! The client on this library, for a program with an agent on pipes and for one that connects over the network.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acp::client::{
    AgentConnection, Client, ClientSession, PermissionRequest, ReadTextFile, Update, UpdateContext,
    connect_with,
};
use acp::v1::{
    ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome, SessionId, StopReason,
};
use acp::{Error, Limits, Options, Transport};
use bench_work::{ClientCommand, ClientReport, SessionProgress, gaps};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// An error to show to the user.
pub(crate) type BenchClientError = Box<dyn std::error::Error + Send + Sync>;

/// Opens one more connection to the agent.
pub(crate) type Connector =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Transport, BenchClientError>>>>>;

/// The state that the handlers record.
#[derive(Default)]
struct BenchClientState {
    progress: HashMap<SessionId, SessionProgress>,
    /// The times at which permission requests arrived.
    permission_times: Vec<Instant>,
    /// The last text of a session for which nothing is expected.
    text: String,
    /// How long the next handler waits.
    handler_delay: Option<Duration>,
}

#[derive(Clone, Default)]
struct BenchClient(Arc<Mutex<BenchClientState>>);

impl BenchClient {
    fn state(&self) -> MutexGuard<'_, BenchClientState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, session: &SessionId, text: &str) -> Option<Duration> {
        let mut noted = self.state();
        match noted.progress.get_mut(session) {
            Some(progress) => progress.check_text(text),
            None => text.clone_into(&mut noted.text),
        }
        noted.handler_delay.take()
    }
}

impl Client for BenchClient {
    type State = ();

    async fn update(&self, (): &(), cx: &UpdateContext, update: &Update) {
        let Some(text) = update.message_text() else {
            return;
        };
        if let Some(time) = self.record(&cx.session_id, text) {
            // The work itself: a handler that takes long.
            tokio::time::sleep(time).await;
        }
    }

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        self.state().permission_times.push(Instant::now());
        Ok(request.allow())
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        Some(self)
    }
}

impl ReadTextFile<()> for BenchClient {
    async fn read(
        &self,
        (): &(),
        request: ReadTextFileRequest,
    ) -> acp::Result<ReadTextFileResponse> {
        let content = std::fs::read_to_string(&request.path)
            .map_err(|error| Error::internal(error.to_string()))?;
        Ok(ReadTextFileResponse::new(content))
    }
}

/// The client while it carries out commands.
struct BenchDriver {
    agent: AgentConnection,
    client: BenchClient,
    sessions: Vec<ClientSession>,
    /// Opens further connections, if the agent is served over the network.
    connector: Option<Connector>,
    /// Connections that do nothing.
    idle: Vec<AgentConnection>,
}

impl BenchDriver {
    async fn run_command(
        &mut self,
        command: ClientCommand,
    ) -> Result<ClientReport, BenchClientError> {
        match command {
            ClientCommand::Open { sessions } => self.open_sessions(sessions).await,
            ClientCommand::Connect { connections } => self.connect(connections).await,
            ClientCommand::Stream {
                messages,
                bytes,
                sleep_ms,
                rate,
                ..
            } => self.stream(messages, bytes, sleep_ms, rate).await,
            ClientCommand::Empty { requests } => self.send_empty_requests(requests).await,
            ClientCommand::Ask { requests } => self.run_permissions(requests).await,
            ClientCommand::Read { path, bytes } => self.read_file(&path, bytes).await,
            ClientCommand::Load { messages, bytes } => self.load_session(messages, bytes).await,
        }
    }

    async fn open_sessions(&mut self, sessions: usize) -> Result<ClientReport, BenchClientError> {
        let start = Instant::now();
        self.sessions.clear();
        while self.sessions.len() < sessions {
            let more = (sessions - self.sessions.len()).min(64);
            let agent = &self.agent;
            let opening: Vec<_> = (0..more)
                .map(|_| {
                    let agent = agent.clone();
                    tokio::spawn(async move { agent.new_session("/").await })
                })
                .collect();
            for opened in opening {
                self.sessions.push(opened.await??);
            }
        }
        Ok(ClientReport::since(start))
    }

    async fn connect(&mut self, connections: usize) -> Result<ClientReport, BenchClientError> {
        let connector = self.connector.as_ref().ok_or("there is no URL")?;
        let start = Instant::now();
        for _ in 0..connections {
            let agent = initialize(connector().await?, BenchClient::default()).await?;
            self.idle.push(agent);
        }
        Ok(ClientReport::since(start))
    }

    async fn first_session(&mut self) -> Result<ClientSession, BenchClientError> {
        if self.sessions.is_empty() {
            self.open_sessions(1).await?;
        }
        Ok(self.sessions.first().ok_or("no session")?.clone())
    }

    async fn stream(
        &mut self,
        messages: u64,
        bytes: usize,
        sleep_ms: Option<u64>,
        rate: Option<u64>,
    ) -> Result<ClientReport, BenchClientError> {
        self.first_session().await?;
        {
            let mut noted = self.client.state();
            noted.handler_delay = sleep_ms.map(Duration::from_millis);
            noted.progress = self
                .sessions
                .iter()
                .map(|session| (session.id().clone(), SessionProgress::new(messages, bytes)))
                .collect();
        }
        let prompt = match rate {
            Some(rate) => format!("pace {messages} {bytes} {rate}"),
            None => format!("stream {messages} {bytes}"),
        };
        let start = Instant::now();
        if let [session] = &self.sessions[..] {
            check_end_turn(&session.prompt(prompt.as_str()).await?)?;
        } else {
            let turns: Vec<_> = self
                .sessions
                .iter()
                .map(|session| {
                    let (session, prompt) = (session.clone(), prompt.clone());
                    tokio::spawn(async move { session.prompt(prompt.as_str()).await })
                })
                .collect();
            for turn in turns {
                check_end_turn(&turn.await??)?;
            }
        }
        let answer = ClientReport::since(start);
        let progress = std::mem::take(&mut self.client.state().progress);
        for progress in progress.into_values() {
            progress.finish()?;
        }
        Ok(answer)
    }

    async fn send_empty_requests(&self, requests: u64) -> Result<ClientReport, BenchClientError> {
        let connection = self.agent.connection();
        let mut each = Vec::new();
        let start = Instant::now();
        let mut before = start;
        for _ in 0..requests {
            connection.request_raw("_bench/empty", &json!({})).await?;
            let now = Instant::now();
            each.push(now - before);
            before = now;
        }
        Ok(ClientReport::since(start).with_durations(each))
    }

    async fn run_permissions(&mut self, requests: u64) -> Result<ClientReport, BenchClientError> {
        let session = self.first_session().await?;
        self.client.state().permission_times.clear();
        let start = Instant::now();
        check_end_turn(&session.prompt(format!("ask {requests}").as_str()).await?)?;
        let answer = ClientReport::since(start);
        let asked = std::mem::take(&mut self.client.state().permission_times);
        if asked.len() as u64 != requests {
            return Err(format!("asked {} times", asked.len()).into());
        }
        Ok(answer.with_durations(gaps(&asked)))
    }

    async fn read_file(
        &mut self,
        path: &str,
        bytes: u64,
    ) -> Result<ClientReport, BenchClientError> {
        let session = self.first_session().await?;
        let start = Instant::now();
        check_end_turn(&session.prompt(format!("read {path}").as_str()).await?)?;
        let answer = ClientReport::since(start);
        let said = std::mem::take(&mut self.client.state().text);
        if said != bytes.to_string() {
            return Err(format!("the agent read {said} bytes").into());
        }
        Ok(answer)
    }

    async fn load_session(
        &self,
        messages: u64,
        bytes: usize,
    ) -> Result<ClientReport, BenchClientError> {
        let id: SessionId = format!("replay-{messages}-{bytes}").into();
        let progress = SessionProgress::new(messages, bytes);
        self.client.state().progress.insert(id.clone(), progress);
        let start = Instant::now();
        let session = self.agent.load_session(&id, "/").await?;
        let answer = ClientReport::since(start);
        let progress = self.client.state().progress.remove(session.id());
        progress.ok_or("no session")?.finish()?;
        Ok(answer)
    }
}

fn check_end_turn(stopped: &StopReason) -> Result<(), BenchClientError> {
    match stopped {
        StopReason::EndTurn => Ok(()),
        other => Err(format!("the turn ended with {other}").into()),
    }
}

async fn initialize(
    transport: Transport,
    client: BenchClient,
) -> Result<AgentConnection, BenchClientError> {
    let mut limits = Limits::default();
    limits.message = 80 * 1024 * 1024;
    let options = Options::new().limits(limits);
    let (handshake, driver) = connect_with(transport, client, options);
    tokio::spawn(driver);
    Ok(handshake.await?)
}

/// Runs the commands that arrive on the socket at `path`, with the agent at the other end of `transport`.
pub(crate) async fn run(
    path: &str,
    transport: Transport,
    connector: Option<Connector>,
) -> Result<(), BenchClientError> {
    let (commands, mut answers) = UnixStream::connect(path).await?.into_split();
    let worker = BenchClient::default();
    let mut driver = BenchDriver {
        agent: initialize(transport, worker.clone()).await?,
        client: worker,
        sessions: Vec::new(),
        connector,
        idle: Vec::new(),
    };
    let mut answer = ClientReport::ready();
    let mut commands = BufReader::new(commands).lines();
    loop {
        answers.write_all(&answer.to_line()).await?;
        let Some(command) = commands.next_line().await? else {
            return Ok(());
        };
        answer = match driver.run_command(serde_json::from_str(&command)?).await {
            Ok(answer) => answer,
            Err(error) => ClientReport::failed(error),
        };
    }
}
