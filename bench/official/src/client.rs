//! The client.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, InitializeRequest,
    LoadSessionRequest, NewSessionRequest, PermissionOptionKind, PromptRequest,
    ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification,
    SessionUpdate, StopReason,
};
use agent_client_protocol::{
    Agent, Client, ConnectTo, Error, on_receive_notification, on_receive_request,
};
use bench_work::{ClientCommand, ClientReport, SessionProgress, gaps};
use futures::future::join_all;
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use crate::EmptyRequest;

/// An error to show to the user.
pub type OfficialBenchError = Box<dyn std::error::Error + Send + Sync>;

/// The state that the handlers share.
#[derive(Default)]
struct OfficialBenchState {
    progress: HashMap<SessionId, SessionProgress>,
    /// The text of all chunks, if chunks are not counted.
    text: String,
    /// When each permission request arrived.
    permission_times: Vec<Instant>,
    /// How long the handler of the next chunk waits.
    handler_delay: Option<Duration>,
}

impl OfficialBenchState {
    fn record(&mut self, notification: &SessionNotification) -> Option<Duration> {
        let SessionUpdate::AgentMessageChunk(chunk) = &notification.update else {
            return None;
        };
        let ContentBlock::Text(text) = &chunk.content else {
            return None;
        };
        match self.progress.get_mut(&notification.session_id) {
            Some(chunks) => chunks.check_text(&text.text),
            None => self.text.push_str(&text.text),
        }
        self.handler_delay.take()
    }
}

#[derive(Clone, Default)]
struct OfficialBenchNotes(Arc<Mutex<OfficialBenchState>>);

impl OfficialBenchNotes {
    fn lock(&self) -> MutexGuard<'_, OfficialBenchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the client: connects to the agent, and carries out the commands that arrive on the socket.
///
/// # Errors
/// The socket or the connection fails.
pub async fn run_client(
    path: impl AsRef<Path>,
    transport: impl ConnectTo<Client> + 'static,
) -> Result<(), OfficialBenchError> {
    let socket = UnixStream::connect(path).await?;
    let notes = OfficialBenchNotes::default();
    let [chunk, ask] = [notes.clone(), notes.clone()];
    Client
        .v1()
        .name("official-client")
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                let sleep = chunk.lock().record(&notification);
                if let Some(time) = sleep {
                    // The work itself: a handler that takes long.
                    tokio::time::sleep(time).await;
                }
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                ask.lock().permission_times.push(Instant::now());
                responder.respond(RequestPermissionResponse::new(allow(&request)))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _| {
                let content = std::fs::read_to_string(&request.path);
                let content = content.map_err(Error::into_internal_error);
                responder.respond_with_result(content.map(ReadTextFileResponse::new))
            },
            on_receive_request!(),
        )
        .connect_with(transport, async move |connection| {
            let driver = OfficialBenchDriver {
                connection,
                notes,
                sessions: Vec::new(),
            };
            driver
                .run(socket)
                .await
                .map_err(|error| Error::into_internal_error(&*error))
        })
        .await?;
    Ok(())
}

fn allow(request: &RequestPermissionRequest) -> RequestPermissionOutcome {
    let mut options = request.options.iter();
    let allow = options.find(|option| option.kind == PermissionOptionKind::AllowOnce);
    allow.map_or(RequestPermissionOutcome::Cancelled, |option| {
        let chosen = SelectedPermissionOutcome::new(option.option_id.clone());
        RequestPermissionOutcome::Selected(chosen)
    })
}

struct OfficialBenchDriver {
    connection: ConnectionTo<Agent>,
    notes: OfficialBenchNotes,
    sessions: Vec<SessionId>,
}

impl OfficialBenchDriver {
    async fn run(mut self, mut socket: UnixStream) -> Result<(), OfficialBenchError> {
        let files = FileSystemCapabilities::new().read_text_file(true);
        let initialize = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new().fs(files));
        self.connection
            .send_request(initialize)
            .block_task()
            .await?;
        let (commands, mut answers) = socket.split();
        answers.write_all(&ClientReport::ready().to_line()).await?;
        let mut commands = BufReader::new(commands).lines();
        while let Some(line) = commands.next_line().await? {
            let answer = self
                .run_command(&line)
                .await
                .unwrap_or_else(ClientReport::failed);
            answers.write_all(&answer.to_line()).await?;
        }
        Ok(())
    }

    async fn run_command(&mut self, line: &str) -> Result<ClientReport, OfficialBenchError> {
        *self.notes.lock() = OfficialBenchState::default();
        match serde_json::from_str(line)? {
            ClientCommand::Open { sessions } => self.open(sessions).await,
            ClientCommand::Connect { .. } => Err("only ours does this".into()),
            ClientCommand::Stream {
                messages,
                bytes,
                sleep_ms,
                ..
            } => {
                self.notes.lock().handler_delay = sleep_ms.map(Duration::from_millis);
                self.stream(messages, bytes).await
            }
            ClientCommand::Empty { requests } => self.send_empty(requests).await,
            ClientCommand::Ask { requests } => self.run_permissions(requests).await,
            ClientCommand::Read { path, bytes } => self.read(&path, bytes).await,
            ClientCommand::Load { messages, bytes } => self.load(messages, bytes).await,
        }
    }

    async fn open(&mut self, sessions: usize) -> Result<ClientReport, OfficialBenchError> {
        let start = Instant::now();
        let opening = stream::iter(0..sessions).map(async |_| {
            let request = NewSessionRequest::new("/");
            let opened = self.connection.send_request(request).block_task().await?;
            Ok::<_, Error>(opened.session_id)
        });
        let opened = opening.buffer_unordered(64).try_collect().await?;
        let answer = ClientReport::since(start);
        self.sessions = opened;
        Ok(answer)
    }

    /// Returns the first session. Opens one if there is none.
    async fn first_session(&mut self) -> Result<SessionId, OfficialBenchError> {
        if self.sessions.is_empty() {
            self.open(1).await?;
        }
        Ok(self.sessions.first().ok_or("no session")?.clone())
    }

    async fn prompt(&self, session: SessionId, text: &str) -> Result<(), OfficialBenchError> {
        let request = PromptRequest::new(session, vec![text.into()]);
        let ended = self.connection.send_request(request).block_task().await?;
        match ended.stop_reason {
            StopReason::EndTurn => Ok(()),
            other => Err(format!("the turn ended with {other:?}").into()),
        }
    }

    /// Starts to count the chunks of a session.
    fn expect_chunks(&self, session: &SessionId, messages: u64, bytes: usize) {
        self.notes
            .lock()
            .progress
            .insert(session.clone(), SessionProgress::new(messages, bytes));
    }

    /// Returns an error unless all chunks of a session have arrived.
    fn check_chunks(&self, session: &SessionId) -> Result<(), OfficialBenchError> {
        let chunks = self.notes.lock().progress.remove(session);
        Ok(chunks.ok_or("no chunks were counted")?.finish()?)
    }

    async fn stream(
        &mut self,
        messages: u64,
        bytes: usize,
    ) -> Result<ClientReport, OfficialBenchError> {
        self.first_session().await?;
        for session in &self.sessions {
            self.expect_chunks(session, messages, bytes);
        }
        let prompt = format!("stream {messages} {bytes}");
        let start = Instant::now();
        let turns = self.sessions.iter().map(async |session| {
            self.prompt(session.clone(), &prompt).await?;
            self.check_chunks(session)
        });
        let ended = join_all(turns).await;
        let answer = ClientReport::since(start);
        ended.into_iter().collect::<Result<(), _>>()?;
        Ok(answer)
    }

    async fn send_empty(&self, requests: u64) -> Result<ClientReport, OfficialBenchError> {
        let mut each = Vec::new();
        let start = Instant::now();
        let mut last = start;
        for _ in 0..requests {
            self.connection
                .send_request(EmptyRequest {})
                .block_task()
                .await?;
            let now = Instant::now();
            each.push(now - last);
            last = now;
        }
        Ok(ClientReport::since(start).with_durations(each))
    }

    async fn run_permissions(&mut self, requests: u64) -> Result<ClientReport, OfficialBenchError> {
        let session = self.first_session().await?;
        let start = Instant::now();
        self.prompt(session, &format!("ask {requests}")).await?;
        let answer = ClientReport::since(start);
        let asked = std::mem::take(&mut self.notes.lock().permission_times);
        if asked.len() as u64 != requests {
            return Err(format!("asked {} times, not {requests}", asked.len()).into());
        }
        Ok(answer.with_durations(gaps(&asked)))
    }

    async fn read(&mut self, path: &str, bytes: u64) -> Result<ClientReport, OfficialBenchError> {
        let session = self.first_session().await?;
        let start = Instant::now();
        self.prompt(session, &format!("read {path}")).await?;
        let answer = ClientReport::since(start);
        let said = std::mem::take(&mut self.notes.lock().text);
        if said != bytes.to_string() {
            return Err(format!("the agent says {said:?}, not {bytes}").into());
        }
        Ok(answer)
    }

    async fn load(&self, messages: u64, bytes: usize) -> Result<ClientReport, OfficialBenchError> {
        let session = SessionId::new(format!("replay-{messages}-{bytes}"));
        self.expect_chunks(&session, messages, bytes);
        let request = LoadSessionRequest::new(session.clone(), PathBuf::from("/"));
        let start = Instant::now();
        self.connection.send_request(request).block_task().await?;
        let answer = ClientReport::since(start);
        self.check_chunks(&session)?;
        Ok(answer)
    }
}
