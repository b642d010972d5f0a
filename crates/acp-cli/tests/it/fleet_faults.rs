//! Servers, clients, agents and PostgreSQL are killed and paused at random, while clients prompt and watch.
//!
//! In the end, the log of each session must be what every client has seen the beginning of, with nothing lost and nothing
//! twice, and no prompt may have run twice.
//!
//! `ACP_FLEET_FAULTS=300 cargo test -p acp-toolkit --test it fleet_faults -- --nocapture` causes more faults than
//! the test does by itself. With `ACP_FLEET_NETWORK=1`, as root on Linux, each server is in a network namespace of its own,
//! and is also cut off from the others, the database and the clients.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use acp_postgres::TestPostgres;
use acp_remote::Token;
use acp_remote::client::{ConnectOptions, connect};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::common::{ACP, BINARY_VARIABLE, TestProject, itself};
use crate::serve::{Server, within_timeout};

/// The test that acts as the agent.
const AGENT_TEST: &str = "fleet_faults::run_as_agent";

/// The number of chunks of each turn.
const CHUNKS: usize = 8;

/// The number of servers.
const SERVERS: usize = 3;

/// The number of sessions, each with a client that prompts and one that watches.
const SESSIONS: usize = 4;

/// The lease of the servers, in seconds.
const LEASE: u64 = 1;

/// The number of faults that the test causes by itself.
const FAULTS: usize = 12;

/// The file in which the agent records the prompts that it runs.
const RUNS: &str = "runs";

/// How long everything may take to come to rest after the last fault.
const REST: Duration = Duration::from_secs(60);

/// Not a real test: runs the agent.
#[test]
#[ignore = "it is the agent of the other test"]
fn run_as_agent() {
    itself::run_if_agent(|_| run_agent());
}

/// An agent that opens every session, and answers each prompt with numbered chunks.
fn run_agent() {
    let out = Arc::new(Mutex::new(std::io::stdout()));
    let send = |out: &Mutex<std::io::Stdout>, message: Value| {
        let mut out = out.lock().unwrap();
        let _ = writeln!(out, "{message}").and_then(|()| out.flush());
    };
    for line in std::io::stdin().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let (id, params) = (message["id"].clone(), message["params"].clone());
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": 1,
                "agentCapabilities": { "sessionCapabilities": { "resume": {} } },
            }),
            Some("session/new") => json!({ "sessionId": format!("s{:016x}", fastrand::u64(..)) }),
            Some("session/prompt") => {
                let text = params["prompt"][0]["text"].as_str().unwrap().to_owned();
                let session = params["sessionId"].clone();
                let mut runs = std::fs::OpenOptions::new();
                let mut runs = runs.create(true).append(true).open(RUNS).unwrap();
                // In one write, since several agents write to the file.
                runs.write_all(format!("{text}\n").as_bytes()).unwrap();
                let out = Arc::clone(&out);
                std::thread::spawn(move || {
                    for number in 0..CHUNKS {
                        let update = json!({
                            "sessionUpdate": "agent_message_chunk",
                            "content": { "type": "text", "text": format!("<{text}:{number}>") },
                        });
                        let params = json!({ "sessionId": session, "update": update });
                        send(
                            &out,
                            json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }),
                        );
                        std::thread::sleep(Duration::from_millis(fastrand::u64(..20)));
                    }
                    let result = json!({ "stopReason": "end_turn" });
                    send(
                        &out,
                        json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                    );
                });
                continue;
            }
            _ if id.is_null() => continue,
            _ => json!({}),
        };
        send(
            &out,
            json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        );
    }
}

/// What all tasks of the test share.
struct World {
    token: Token,
    /// The URLs of the servers. They stay the same when a server is started again.
    urls: Vec<String>,
    cwd: String,
    is_over: AtomicBool,
    /// Counts the times that a client was told to reconnect.
    cut: AtomicU64,
    prompts: AtomicUsize,
    /// How the prompts ended.
    outcomes: Mutex<BTreeMap<String, u64>>,
    /// The prompts whose turn ended, as their clients were told.
    ended: Mutex<BTreeSet<String>>,
    /// What each connection of a client has seen of a session.
    views: Mutex<Vec<(String, String)>>,
}

/// A client's connection, as lines of JSON.
struct RawClient {
    lines: tokio::io::Lines<tokio::io::BufReader<Box<dyn tokio::io::AsyncRead + Send + Unpin>>>,
    writer: Box<dyn tokio::io::AsyncWrite + Send + Unpin>,
    next_id: u64,
    /// The text of all messages.
    seen: String,
}

/// The connection has ended.
#[derive(Debug)]
struct ConnectionEnded;

impl RawClient {
    /// Connects to a server, chosen at random.
    async fn connect(world: &World) -> Result<Self, ConnectionEnded> {
        let url = &world.urls[fastrand::usize(..world.urls.len())];
        let options = ConnectOptions::new()
            .token(world.token.clone())
            .connect_timeout(Duration::from_secs(2))
            .reconnect_for(Some(Duration::ZERO))
            .heartbeat(Duration::from_millis(500))
            .dead_after(Duration::from_secs(2));
        let transport = connect(url, options).await.map_err(|_| ConnectionEnded)?;
        let (reader, writer) = transport.into_split();
        let reader: Box<dyn tokio::io::AsyncRead + Send + Unpin> = Box::new(reader);
        let mut client = Self {
            lines: tokio::io::BufReader::new(reader).lines(),
            writer: Box::new(writer),
            next_id: 1,
            seen: String::new(),
        };
        let info = json!({ "name": "fault-test", "version": "1" });
        let params = json!({ "protocolVersion": 1, "clientInfo": info });
        client.request("initialize", &params).await?;
        Ok(client)
    }

    async fn send(&mut self, method: &str, params: &Value) -> Result<u64, ConnectionEnded> {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let line = format!("{message}\n");
        let sent = async {
            self.writer.write_all(line.as_bytes()).await?;
            self.writer.flush().await
        };
        sent.await.map_err(|_| ConnectionEnded)?;
        Ok(id)
    }

    /// Reads a message. Remembers the text of updates.
    async fn read(&mut self) -> Result<Value, ConnectionEnded> {
        let line = self.lines.next_line().await.map_err(|_| ConnectionEnded)?;
        let message: Value = serde_json::from_str(&line.ok_or(ConnectionEnded)?).unwrap();
        if let Some(text) = message["params"]["update"]["content"]["text"].as_str() {
            self.seen.push_str(text);
        }
        Ok(message)
    }

    async fn response(&mut self, id: u64) -> Result<Value, ConnectionEnded> {
        loop {
            let message = self.read().await?;
            if message["id"] == id && message["method"].is_null() {
                return Ok(message);
            }
        }
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, ConnectionEnded> {
        let id = self.send(method, params).await?;
        // A server that is paused, or has no agent yet, is left for another.
        let response = timeout(Duration::from_secs(15), self.response(id)).await;
        response.map_err(|_| ConnectionEnded)?
    }
}

impl World {
    fn params(&self, session: &str) -> Value {
        json!({ "sessionId": session, "cwd": self.cwd, "mcpServers": [] })
    }

    /// Opens a new session. Returns its id.
    async fn new_session(&self) -> String {
        loop {
            let Ok(mut client) = RawClient::connect(self).await else {
                continue;
            };
            let params = json!({ "cwd": self.cwd, "mcpServers": [] });
            let Ok(response) = client.request("session/new", &params).await else {
                continue;
            };
            return response["result"]["sessionId"].as_str().unwrap().to_owned();
        }
    }

    /// Watches a session until everything is over, and connects again whenever the connection ends.
    async fn watch(&self, session: &str) {
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok(mut client) = RawClient::connect(self).await else {
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let watched = async {
                let loaded = client
                    .request("session/load", &self.params(session))
                    .await?;
                if !loaded["error"].is_null() {
                    return Err(ConnectionEnded);
                }
                // Some watchers leave by themselves.
                let stays = Duration::from_millis(fastrand::u64(500..8000));
                let read = async {
                    loop {
                        client.read().await?;
                    }
                };
                timeout(stays, read).await.unwrap_or(Ok(()))
            };
            if watched.await.is_err() {
                self.cut.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(50)).await;
            }
            self.views
                .lock()
                .unwrap()
                .push((session.to_owned(), client.seen));
        }
    }

    /// Prompts in a session until everything is over. A prompt without a response is sent again on the next connection, if
    /// it has a key.
    async fn prompt(&self, session: &str) {
        let mut open: Option<String> = None;
        while open.is_some() || !self.is_over.load(Ordering::Relaxed) {
            let Ok(mut client) = RawClient::connect(self).await else {
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let prompted: Result<(), ConnectionEnded> = async {
                let opened = client
                    .request("session/resume", &self.params(session))
                    .await?;
                if !opened["error"].is_null() {
                    return Err(ConnectionEnded);
                }
                while open.is_some() || !self.is_over.load(Ordering::Relaxed) {
                    // Only a prompt with a key is still open when the connection ends.
                    let has_key = open.is_some() || fastrand::bool();
                    let key = open.get_or_insert_with(|| {
                        format!("p{}", self.prompts.fetch_add(1, Ordering::Relaxed))
                    });
                    let mut params = self.params(session);
                    params["prompt"] = json!([{ "type": "text", "text": key }]);
                    if has_key {
                        params["_meta"] = json!({ "live": { "promptKey": key } });
                    }
                    let key = key.clone();
                    if !has_key {
                        open = None;
                    }
                    let response = client.request("session/prompt", &params).await?;
                    let outcome = match response["result"]["stopReason"].as_str() {
                        Some(reason) => reason.to_owned(),
                        None => match response["error"]["data"]["live"].as_str() {
                            Some("turnCut") => "turnCut".to_owned(),
                            // The connection is about to end: the prompt is sent again.
                            _ => return Err(ConnectionEnded),
                        },
                    };
                    if outcome == "end_turn" {
                        self.ended.lock().unwrap().insert(key);
                    }
                    *self.outcomes.lock().unwrap().entry(outcome).or_default() += 1;
                    open = None;
                }
                Ok(())
            }
            .await;
            if prompted.is_err() {
                self.cut.fetch_add(1, Ordering::Relaxed);
                sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Returns the text of a session's log.
    async fn final_text(&self, session: &str) -> String {
        let begun = Instant::now();
        while begun.elapsed() < REST {
            let Ok(mut client) = RawClient::connect(self).await else {
                continue;
            };
            let loaded = client.request("session/load", &self.params(session)).await;
            if loaded.is_ok_and(|response| response["error"].is_null()) {
                return client.seen;
            }
        }
        panic!("session {session} cannot be loaded");
    }
}

/// The servers, with what it takes to start them again.
struct Servers {
    running: Vec<Option<Server>>,
    project: TestProject,
    store: String,
    agent: String,
    network: Option<TestNetwork>,
}

/// Network namespaces, one for each server, which are connected by a bridge.
struct TestNetwork;

/// The port of the database on the bridge.
const DATABASE_PORT: u16 = 5499;

impl TestNetwork {
    /// The address of the bridge, where the database listens and the clients are.
    const BRIDGE: &str = "10.77.0.254";

    fn create() -> Self {
        let network = Self;
        network.remove();
        Self::ip("link add acpbridge type bridge");
        Self::ip(&format!("addr add {}/24 dev acpbridge", Self::BRIDGE));
        Self::ip("link set acpbridge up");
        for index in 0..SERVERS {
            Self::ip(&format!("netns add acp{index}"));
            Self::ip(&format!(
                "link add acpveth{index} type veth peer name eth0 netns acp{index}"
            ));
            Self::ip(&format!("link set acpveth{index} master acpbridge up"));
            Self::ip(&format!(
                "-n acp{index} addr add 10.77.0.{}/24 dev eth0",
                index + 1
            ));
            Self::ip(&format!("-n acp{index} link set eth0 up"));
            Self::ip(&format!("-n acp{index} link set lo up"));
        }
        network
    }

    fn ip(arguments: &str) {
        let ip = Command::new("ip").args(arguments.split(' ')).status();
        assert!(ip.unwrap().success(), "ip {arguments}");
    }

    /// Cuts a server off, or connects it again.
    fn set_connected(index: usize, is_connected: bool) {
        let state = if is_connected { "up" } else { "down" };
        Self::ip(&format!("link set acpveth{index} {state}"));
    }

    fn remove(&self) {
        for index in 0..SERVERS {
            let mut ip = Command::new("ip");
            let _ = ip
                .args(["netns", "del", &format!("acp{index}")])
                .stderr(Stdio::null())
                .status();
        }
        let mut ip = Command::new("ip");
        let _ = ip
            .args(["link", "del", "acpbridge"])
            .stderr(Stdio::null())
            .status();
    }
}

impl Drop for TestNetwork {
    fn drop(&mut self) {
        self.remove();
    }
}

impl Servers {
    /// Returns a command that runs `acp` as a server, where this server is.
    fn command(&self, index: usize) -> Command {
        match &self.network {
            None => self.project.acp_command(&[]),
            Some(_) => {
                let acp = std::env::var(BINARY_VARIABLE).unwrap_or_else(|_| ACP.to_owned());
                let mut command = self.project.program_command("ip");
                command.args(["netns", "exec", &format!("acp{index}"), &acp]);
                command
            }
        }
    }

    fn start(&mut self, index: usize, listen: &str) {
        let lease = LEASE.to_string();
        let options = [
            "serve",
            "--listen",
            listen,
            "--live",
            "--store",
            &self.store,
            "--lease",
            &lease,
            "--drain-timeout",
            "1",
            "--insecure",
            "--",
            "sh",
            &self.agent,
        ];
        let mut command = self.command(index);
        command.args(options);
        let server = Server::from_command(command, 1);
        self.running[index] = Some(server);
    }

    fn pid(&self, index: usize) -> Pid {
        let pid = self.running[index].as_ref().unwrap().pid();
        Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
    }
}

/// Returns the children of a process.
fn children(of: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        let rest = stat.rsplit(')').next().unwrap();
        let parent: Option<i32> = rest.split_whitespace().nth(1).and_then(|p| p.parse().ok());
        let pid: Option<i32> = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let (Some(pid), true) = (pid, parent == Some(of.as_raw_nonzero().get())) {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_done_twice_whatever_is_killed() {
    let network = std::env::var_os("ACP_FLEET_NETWORK").map(|_| TestNetwork::create());
    let options = match &network {
        None => "-c fsync=off".to_owned(),
        Some(_) => {
            let address = TestNetwork::BRIDGE;
            format!("-c fsync=off -c listen_addresses='{address}' -c port={DATABASE_PORT}")
        }
    };
    let Some(postgres) = TestPostgres::start(&options).map(Arc::new) else {
        return;
    };
    let faults = std::env::var("ACP_FLEET_FAULTS").map_or(FAULTS, |text| text.parse().unwrap());
    let seed =
        std::env::var("ACP_SEED").map_or_else(|_| fastrand::u64(..), |text| text.parse().unwrap());
    eprintln!("seed: {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let project = TestProject::new();
    let agent = project.file("agent.sh");
    std::fs::write(&agent, itself::agent_script(AGENT_TEST, "run")).unwrap();
    std::fs::set_permissions(&agent, PermissionsExt::from_mode(0o700)).unwrap();
    let mut servers = Servers {
        running: (0..SERVERS).map(|_| None).collect(),
        store: match &network {
            None => postgres.new_database(),
            Some(_) => {
                let name = postgres.new_database();
                let name = name.split(['/', '?']).nth(3).unwrap();
                let address = TestNetwork::BRIDGE;
                format!("postgres://postgres@{address}:{DATABASE_PORT}/{name}")
            }
        },
        network,
        agent: agent.to_str().unwrap().to_owned(),
        project,
    };
    for index in 0..SERVERS {
        let listen = match &servers.network {
            None => "127.0.0.1:0".to_owned(),
            Some(_) => format!("10.77.0.{}:7180", index + 1),
        };
        servers.start(index, &listen);
    }
    let running = || servers.running.iter().flatten();
    let addresses: Vec<String> = running()
        .map(|server| server.address().to_owned())
        .collect();
    let world = Arc::new(World {
        token: running().next().unwrap().token(),
        urls: running()
            .map(|server| server.plain_url().to_owned())
            .collect(),
        cwd: servers.project.path().to_str().unwrap().to_owned(),
        is_over: AtomicBool::new(false),
        cut: AtomicU64::new(0),
        prompts: AtomicUsize::new(0),
        outcomes: Mutex::default(),
        ended: Mutex::default(),
        views: Mutex::default(),
    });
    let mut sessions = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..SESSIONS {
        let session = within_timeout(world.new_session()).await;
        sessions.push(session.clone());
        let (prompter, watcher) = (Arc::clone(&world), Arc::clone(&world));
        let watched = session.clone();
        tasks.spawn(async move { prompter.prompt(&session).await });
        tasks.spawn(async move { watcher.watch(&watched).await });
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for _ in 0..faults {
        sleep(Duration::from_millis(random.u64(200..1200))).await;
        let index = random.usize(..SERVERS);
        let kind = match random.u8(..10) {
            0..3 if servers.network.is_some() => {
                TestNetwork::set_connected(index, false);
                sleep(Duration::from_millis(random.u64(200..4000))).await;
                TestNetwork::set_connected(index, true);
                "servers cut off"
            }
            0..4 => {
                servers.running[index] = None;
                sleep(Duration::from_millis(random.u64(..1500))).await;
                servers.start(index, &addresses[index]);
                "servers killed"
            }
            4..7 => {
                let pid = servers.pid(index);
                kill_process(pid, Signal::STOP).unwrap();
                sleep(Duration::from_millis(random.u64(500..3000))).await;
                kill_process(pid, Signal::CONT).unwrap();
                "servers paused"
            }
            7..9 => {
                for child in children(servers.pid(index)) {
                    let _ = kill_process(child, Signal::KILL);
                }
                "agents killed"
            }
            _ => {
                let postgres = Arc::clone(&postgres);
                let restarted = tokio::task::spawn_blocking(move || {
                    postgres.crash();
                    postgres.run();
                });
                restarted.await.unwrap();
                "PostgreSQL killed"
            }
        };
        *counts.entry(kind).or_default() += 1;
    }
    sleep(Duration::from_millis(500)).await;
    world.is_over.store(true, Ordering::Relaxed);
    let rested = timeout(REST, async {
        while tasks.join_next().await.transpose().unwrap().is_some() {}
    });
    rested.await.expect("clients do not come to rest");
    check(&world, &sessions, servers.project.path(), &counts).await;
}

/// Checks what was promised, and prints what has happened.
async fn check(world: &World, sessions: &[String], project: &Path, counts: &BTreeMap<&str, u64>) {
    let mut texts = BTreeMap::new();
    for session in sessions {
        texts.insert(session.clone(), world.final_text(session).await);
    }
    let views = world.views.lock().unwrap();
    for (session, view) in views.iter() {
        let text = &texts[session];
        assert!(
            text.starts_with(view.as_str()),
            "a client of {session} has seen what is not in the log:\n{view}\n--- log\n{text}"
        );
    }
    let runs = BufReader::new(std::fs::File::open(project.join(RUNS)).unwrap()).lines();
    let mut run = BTreeSet::new();
    for prompt in runs.map(Result::unwrap) {
        assert!(run.insert(prompt.clone()), "{prompt} has run twice");
    }
    let all: String = texts.values().map(String::as_str).collect();
    let ended = world.ended.lock().unwrap();
    let mut chunks = 0;
    for number in 0..world.prompts.load(Ordering::Relaxed) {
        let prompt = format!("p{number}");
        let found: Vec<usize> = (0..CHUNKS)
            .map(|chunk| all.matches(&format!("<{prompt}:{chunk}>")).count())
            .collect();
        // The chunks that are there come first, and once.
        let shown = found.iter().sum::<usize>();
        let expected: Vec<usize> = (0..CHUNKS)
            .map(|chunk| usize::from(chunk < shown))
            .collect();
        assert_eq!(found, expected, "{prompt}: {all}");
        assert!(shown == 0 || run.contains(&prompt), "{prompt} has not run");
        if ended.contains(&prompt) {
            assert_eq!(
                shown, CHUNKS,
                "{prompt} has ended, but is not shown in full"
            );
        }
        chunks += shown;
    }
    assert!(!ended.is_empty(), "no prompt has ended");
    println!(
        "faults: {counts:?}; sessions: {}; prompts: {} ({:?}); views: {}; connections cut: {}; updates: {chunks}",
        sessions.len(),
        world.prompts.load(Ordering::Relaxed),
        world.outcomes.lock().unwrap(),
        views.len(),
        world.cut.load(Ordering::Relaxed),
    );
}
