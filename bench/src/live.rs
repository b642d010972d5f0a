//! Measures live sessions: `acp serve --live`, without a store, with SQLite and with PostgreSQL.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use acp_postgres::TestPostgres;
use acp_remote::Token;
use acp_remote::client::{ConnectOptions, connect};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::BenchError;
use crate::table::format_figure;

/// How long a measurement may take.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// The number of sessions that stream at the same time.
const STREAMS: usize = 8;

/// What was measured with one kind of store.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LiveFigures {
    store: &'static str,
    /// The time from the agent to a client, in milliseconds.
    delay_p50: f64,
    delay_p99: f64,
    /// How much later a second client gets an update than the first, in milliseconds.
    second_p50: f64,
    second_p99: f64,
    /// Updates per second, of eight sessions at once, until all clients have them.
    rate: f64,
    /// How long the agent takes to stream to 200 watchers, relative to 2.
    watchers_200: f64,
    /// The memory that a session at rest takes, in KB.
    session_kb: f64,
}

/// The amount of work.
struct LiveWork {
    paced: usize,
    streamed: usize,
    watched: usize,
    watchers: usize,
    sessions: usize,
}

/// Measures live sessions with each kind of store.
pub(crate) fn measure_live(
    acp: &Path,
    scratch: &Path,
    quick: bool,
) -> Result<Vec<LiveFigures>, BenchError> {
    let work = match quick {
        true => LiveWork {
            paced: 100,
            streamed: 100,
            watched: 100,
            watchers: 4,
            sessions: 20,
        },
        false => LiveWork {
            paced: 4000,
            streamed: 20_000,
            watched: 5000,
            watchers: 200,
            sessions: 4000,
        },
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let postgres = TestPostgres::start("");
    let sqlite = scratch.join("live.db").display().to_string();
    let mut stores = vec![("none", None), ("SQLite", Some(sqlite))];
    stores.extend(
        postgres
            .as_ref()
            .map(|pg| ("PostgreSQL", Some(pg.new_database()))),
    );
    let mut figures = Vec::new();
    for (name, store) in stores {
        eprintln!("bench: live sessions, store: {name}");
        let server = LiveServer::start(acp, scratch, store.as_deref())?;
        figures.push(runtime.block_on(measure(name, &server, &work))?);
    }
    Ok(figures)
}

/// Formats the figures as a table.
pub(crate) fn render_live(figures: &[LiveFigures]) -> String {
    let mut text = "\n### Live sessions: `acp serve --live`, on one machine\n\n\
        | store | agent → client, p50 / p99 ms | second client after the first, p50 / p99 ms | updates/s, 8 sessions | time of the agent, 200 watchers : 2 | KB per session at rest |\n\
        |---|---|---|---|---|---|\n"
        .to_owned();
    for of in figures {
        let f = format_figure;
        let _ = writeln!(
            text,
            "| {} | {} / {} | {} / {} | {} | {} | {} |",
            of.store,
            f(of.delay_p50),
            f(of.delay_p99),
            f(of.second_p50),
            f(of.second_p99),
            f(of.rate),
            f(of.watchers_200),
            f(of.session_kb)
        );
    }
    text
}

/// A running `acp serve --live`.
pub(crate) struct LiveServer {
    process: Child,
    url: String,
    token: Token,
    cwd: PathBuf,
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl LiveServer {
    pub(crate) fn start(
        acp: &Path,
        scratch: &Path,
        store: Option<&str>,
    ) -> Result<Self, BenchError> {
        std::fs::create_dir_all(scratch)?;
        let agent = acp.with_file_name("bench-live-agent");
        let token = "the-token-of-the-benchmark";
        let mut command = Command::new(acp);
        command
            .args([
                "serve",
                "--live",
                "--listen",
                "127.0.0.1:0",
                "--max-connections",
                "1000",
            ])
            .args(["--store", store.unwrap_or("none")])
            .arg("--")
            .arg(agent)
            .current_dir(scratch)
            .env("ACP_SERVE_TOKEN", token)
            .env("XDG_STATE_HOME", scratch.join("state"))
            .env_remove("XDG_RUNTIME_DIR")
            .stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let stderr = process.stderr.take().ok_or("no stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let url = lines.find_map(|line| Some(line.ok()?.strip_prefix("acp: serving ")?.to_owned()));
        // Whatever it says later must not block it.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self {
            process,
            url: url.ok_or("the server has exited")?,
            token: Token::new(token)?,
            cwd: scratch.to_owned(),
        })
    }

    /// Returns the memory of the server, in KB.
    pub(crate) fn memory(&self) -> Result<f64, BenchError> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kb = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .ok_or("no VmRSS")?;
        Ok(kb.trim().parse()?)
    }
}

/// A client, as lines of JSON.
pub(crate) struct LiveBenchClient {
    lines: tokio::io::Lines<tokio::io::BufReader<Box<dyn tokio::io::AsyncRead + Send + Unpin>>>,
    writer: Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
    next_id: u64,
}

impl LiveBenchClient {
    pub(crate) async fn connect(server: &LiveServer) -> Result<Self, BenchError> {
        let options = ConnectOptions::new().token(server.token.clone());
        let (reader, writer) = connect(&server.url, options).await?.into_split();
        let reader: Box<dyn tokio::io::AsyncRead + Send + Unpin> = Box::new(reader);
        let mut client = Self {
            lines: tokio::io::BufReader::with_capacity(64 * 1024, reader).lines(),
            writer: Box::new(writer),
            next_id: 1,
        };
        let params = json!({ "protocolVersion": 1 });
        client.request("initialize", &params).await?;
        Ok(client)
    }

    pub(crate) async fn send(&mut self, method: &str, params: &Value) -> Result<u64, BenchError> {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.writer
            .write_all(format!("{message}\n").as_bytes())
            .await?;
        self.writer.flush().await?;
        Ok(id)
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, BenchError> {
        let id = self.send(method, params).await?;
        loop {
            let line = self
                .lines
                .next_line()
                .await?
                .ok_or("the connection has ended")?;
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                return Ok(message["result"].clone());
            }
        }
    }

    pub(crate) async fn new_session(&mut self, server: &LiveServer) -> Result<String, BenchError> {
        let params = json!({ "cwd": server.cwd, "mcpServers": [] });
        let result = self.request("session/new", &params).await?;
        Ok(result["sessionId"].as_str().ok_or("no session")?.to_owned())
    }

    pub(crate) async fn watch(server: &LiveServer, session: &str) -> Result<Self, BenchError> {
        let mut client = Self::connect(server).await?;
        let params = json!({ "sessionId": session, "cwd": server.cwd, "mcpServers": [] });
        client.request("session/load", &params).await?;
        Ok(client)
    }

    /// Reads until the agent has sent everything. Returns when each chunk was sent and received, and how long the agent
    /// took, all in nanoseconds.
    pub(crate) async fn read_stream(&mut self) -> Result<(Vec<(u64, u64)>, u64), BenchError> {
        let mut chunks = Vec::new();
        loop {
            let line = self
                .lines
                .next_line()
                .await?
                .ok_or("the connection has ended")?;
            let received = now();
            let Some((_, text)) = line.split_once(r#""text":""#) else {
                continue;
            };
            let text = text.split('"').next().unwrap_or_default().trim_end();
            if let Some(took) = text.strip_prefix("took ") {
                return Ok((chunks, took.parse()?));
            }
            // The prompt is no chunk.
            if let Ok(sent) = text.parse() {
                chunks.push((sent, received));
            }
        }
    }
}

async fn measure(
    store: &'static str,
    server: &LiveServer,
    work: &LiveWork,
) -> Result<LiveFigures, BenchError> {
    // First, because the server keeps memory that it has needed once.
    let session_kb = within_limit(measure_sessions(server, work.sessions)).await?;
    let (delays, seconds) = within_limit(measure_delays(server, work.paced)).await?;
    let rate = within_limit(measure_rate(server, work.streamed)).await?;
    let two = within_limit(measure_watchers(server, 2, work.watched)).await?;
    let many = within_limit(measure_watchers(server, work.watchers, work.watched)).await?;
    Ok(LiveFigures {
        store,
        delay_p50: percentile(&delays, 50),
        delay_p99: percentile(&delays, 99),
        second_p50: percentile(&seconds, 50),
        second_p99: percentile(&seconds, 99),
        rate,
        watchers_200: many / two,
        session_kb,
    })
}

pub(crate) async fn within_limit<T>(
    work: impl Future<Output = Result<T, BenchError>>,
) -> Result<T, BenchError> {
    tokio::time::timeout(TIME_LIMIT, work)
        .await
        .map_err(|_| "a measurement of live sessions takes too long")?
}

/// Streams at 1,000 updates/s to two clients. Returns the times from the agent to the first of them, and from the first to
/// the second, in milliseconds.
async fn measure_delays(
    server: &LiveServer,
    count: usize,
) -> Result<(Vec<f64>, Vec<f64>), BenchError> {
    let mut prompter = LiveBenchClient::connect(server).await?;
    let session = prompter.new_session(server).await?;
    let mut first = LiveBenchClient::watch(server, &session).await?;
    let mut second = LiveBenchClient::watch(server, &session).await?;
    let params = prompt(&session, &format!("{count} 1000"));
    prompter.send("session/prompt", &params).await?;
    let (first, second) = tokio::try_join!(first.read_stream(), second.read_stream())?;
    let milliseconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
    let both = first.0.iter().zip(&second.0);
    let (delays, seconds) = both
        .map(|(&(sent, one), &(_, two))| {
            let (earlier, later) = (one.min(two), one.max(two));
            (milliseconds(sent, earlier), milliseconds(earlier, later))
        })
        .unzip();
    Ok((delays, seconds))
}

/// Streams as fast as possible in several sessions at once. Returns the updates per second.
async fn measure_rate(server: &LiveServer, count: usize) -> Result<f64, BenchError> {
    let mut clients = Vec::new();
    for _ in 0..STREAMS {
        let mut client = LiveBenchClient::connect(server).await?;
        let session = client.new_session(server).await?;
        clients.push((client, session));
    }
    let begun = now();
    let mut streams = JoinSet::new();
    for (mut client, session) in clients {
        streams.spawn(async move {
            let params = prompt(&session, &format!("{count} 0"));
            let streamed = async {
                client.send("session/prompt", &params).await?;
                client.read_stream().await
            };
            streamed
                .await
                .map_err(|error: BenchError| error.to_string())
        });
    }
    while let Some(stream) = streams.join_next().await {
        stream??;
    }
    Ok((STREAMS * count) as f64 / ((now() - begun) as f64 / 1e9))
}

/// Streams to watchers. Returns how long the agent took, in nanoseconds.
async fn measure_watchers(
    server: &LiveServer,
    watchers: usize,
    count: usize,
) -> Result<f64, BenchError> {
    let mut prompter = LiveBenchClient::connect(server).await?;
    let session = prompter.new_session(server).await?;
    let mut streams = spawn_watchers(server, &session, watchers).await?;
    let params = prompt(&session, &format!("{count} 0"));
    prompter.send("session/prompt", &params).await?;
    let (_, took) = prompter.read_stream().await?;
    while let Some(stream) = streams.join_next().await {
        stream??;
    }
    Ok(took as f64)
}

/// What a watcher has read of a stream: see [`LiveBenchClient::read_stream`].
type WatchedStream = Result<(Vec<(u64, u64)>, u64), String>;

/// Lets watchers read the next stream of a session.
pub(crate) async fn spawn_watchers(
    server: &LiveServer,
    session: &str,
    watchers: usize,
) -> Result<JoinSet<WatchedStream>, BenchError> {
    let mut streams = JoinSet::new();
    for _ in 0..watchers {
        let mut watcher = LiveBenchClient::watch(server, session).await?;
        streams.spawn(async move { watcher.read_stream().await.map_err(|e| e.to_string()) });
    }
    Ok(streams)
}

/// Opens sessions and disconnects. Returns the memory that each takes, in KB.
async fn measure_sessions(server: &LiveServer, count: usize) -> Result<f64, BenchError> {
    let before = server.memory()?;
    let mut client = LiveBenchClient::connect(server).await?;
    for _ in 0..count {
        client.new_session(server).await?;
    }
    drop(client);
    Ok((server.memory()? - before) / count as f64)
}

pub(crate) fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

pub(crate) fn percentile(values: &[f64], of: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = (sorted.len() * of / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// Returns the time in nanoseconds, as the agent does.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or_default()
}
