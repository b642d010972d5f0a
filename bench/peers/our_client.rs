//! The client, on this project's library.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acp::client::{
    AgentConnection, Client, PermissionRequest, ReadTextFile, Session, Update, UpdateContext,
    connect_with,
};
use acp::v1::{
    ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome, SessionId, StopReason,
};
use acp::{Error, Limits, Options};
use bench_work::{Answer, Command, Progress, gaps};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

/// What went wrong, for a person.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What the handlers note.
#[derive(Default)]
struct Noted {
    progress: HashMap<SessionId, Progress>,
    /// When the requests for permission came.
    asked: Vec<Instant>,
    /// The text that came last for a session that nothing is expected of.
    said: String,
    /// How long the next handler waits.
    sleep: Option<Duration>,
}

#[derive(Clone, Default)]
struct Worker(Arc<Mutex<Noted>>);

impl Worker {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, session: &SessionId, text: &str) -> Option<Duration> {
        let mut noted = self.noted();
        match noted.progress.get_mut(session) {
            Some(progress) => progress.see(text),
            None => text.clone_into(&mut noted.said),
        }
        noted.sleep.take()
    }
}

impl Client for Worker {
    type State = ();

    async fn update(&self, (): &(), cx: &UpdateContext, update: &Update) {
        let Some(text) = update.message_text() else {
            return;
        };
        if let Some(time) = self.see(&cx.session_id, text) {
            // The work itself: a handler that takes long.
            tokio::time::sleep(time).await;
        }
    }

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        self.noted().asked.push(Instant::now());
        Ok(request.allow())
    }

    fn read_text_file(&self) -> Option<&impl ReadTextFile<()>> {
        Some(self)
    }
}

impl ReadTextFile<()> for Worker {
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

/// The client at work.
struct Driver {
    agent: AgentConnection,
    worker: Worker,
    sessions: Vec<Session>,
}

impl Driver {
    async fn carry_out(&mut self, command: Command) -> Result<Answer, Failure> {
        match command {
            Command::Open { sessions } => self.open(sessions).await,
            Command::Stream {
                messages,
                bytes,
                sleep_ms,
                rate,
                ..
            } => self.stream(messages, bytes, sleep_ms, rate).await,
            Command::Empty { requests } => self.empty(requests).await,
            Command::Ask { requests } => self.ask(requests).await,
            Command::Read { path, bytes } => self.read(&path, bytes).await,
            Command::Load { messages, bytes } => self.load(messages, bytes).await,
        }
    }

    async fn open(&mut self, sessions: usize) -> Result<Answer, Failure> {
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
        Ok(Answer::since(start))
    }

    async fn session(&mut self) -> Result<Session, Failure> {
        if self.sessions.is_empty() {
            self.open(1).await?;
        }
        Ok(self.sessions.first().ok_or("no session")?.clone())
    }

    async fn stream(
        &mut self,
        messages: u64,
        bytes: usize,
        sleep_ms: Option<u64>,
        rate: Option<u64>,
    ) -> Result<Answer, Failure> {
        self.session().await?;
        {
            let mut noted = self.worker.noted();
            noted.sleep = sleep_ms.map(Duration::from_millis);
            noted.progress = self
                .sessions
                .iter()
                .map(|session| (session.id().clone(), Progress::new(messages, bytes)))
                .collect();
        }
        let prompt = match rate {
            Some(rate) => format!("pace {messages} {bytes} {rate}"),
            None => format!("stream {messages} {bytes}"),
        };
        let start = Instant::now();
        if let [session] = &self.sessions[..] {
            must_end(&session.prompt(prompt.as_str()).await?)?;
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
                must_end(&turn.await??)?;
            }
        }
        let answer = Answer::since(start);
        let progress = std::mem::take(&mut self.worker.noted().progress);
        for progress in progress.into_values() {
            progress.finish()?;
        }
        Ok(answer)
    }

    async fn empty(&self, requests: u64) -> Result<Answer, Failure> {
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
        Ok(Answer::since(start).each(each))
    }

    async fn ask(&mut self, requests: u64) -> Result<Answer, Failure> {
        let session = self.session().await?;
        self.worker.noted().asked.clear();
        let start = Instant::now();
        must_end(&session.prompt(format!("ask {requests}").as_str()).await?)?;
        let answer = Answer::since(start);
        let asked = std::mem::take(&mut self.worker.noted().asked);
        if asked.len() as u64 != requests {
            return Err(format!("asked {} times", asked.len()).into());
        }
        Ok(answer.each(gaps(&asked)))
    }

    async fn read(&mut self, path: &str, bytes: u64) -> Result<Answer, Failure> {
        let session = self.session().await?;
        let start = Instant::now();
        must_end(&session.prompt(format!("read {path}").as_str()).await?)?;
        let answer = Answer::since(start);
        let said = std::mem::take(&mut self.worker.noted().said);
        if said != bytes.to_string() {
            return Err(format!("the agent read {said} bytes").into());
        }
        Ok(answer)
    }

    async fn load(&self, messages: u64, bytes: usize) -> Result<Answer, Failure> {
        let id: SessionId = format!("replay-{messages}-{bytes}").into();
        let progress = Progress::new(messages, bytes);
        self.worker.noted().progress.insert(id.clone(), progress);
        let start = Instant::now();
        let session = self.agent.load_session(&id, "/").await?;
        let answer = Answer::since(start);
        let progress = self.worker.noted().progress.remove(session.id());
        progress.ok_or("no session")?.finish()?;
        Ok(answer)
    }
}

fn must_end(stopped: &StopReason) -> Result<(), Failure> {
    match stopped {
        StopReason::EndTurn => Ok(()),
        other => Err(format!("the turn ended with {other}").into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: bench-our-client SOCKET")?;
    let (commands, mut answers) = UnixStream::connect(path).await?.into_split();
    let worker = Worker::default();
    let mut limits = Limits::default();
    limits.message = 80 * 1024 * 1024;
    let options = Options::new().limits(limits);
    let transport = acp::transport::stdio()?;
    let (handshake, driver) = connect_with(transport, worker.clone(), options);
    tokio::spawn(driver);
    let agent = handshake.await?;
    let mut driver = Driver {
        agent,
        worker,
        sessions: Vec::new(),
    };
    let mut answer = Answer::ready();
    let mut commands = BufReader::new(commands).lines();
    loop {
        answers.write_all(&answer.line()).await?;
        let Some(command) = commands.next_line().await? else {
            return Ok(());
        };
        answer = match driver.carry_out(serde_json::from_str(&command)?).await {
            Ok(answer) => answer,
            Err(error) => Answer::failed(error),
        };
    }
}
