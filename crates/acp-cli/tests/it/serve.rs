//! Tests of `acp serve` as a process, with real clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp::client::{AgentConnection, Client, ClientSession, PermissionRequest, SessionSetup};
use acp::v1::{RequestPermissionOutcome, StopReason};
use acp_remote::Token;
use acp_remote::client::{ConnectError, ConnectOptions, ConnectionStatus, Trust, connect};
use serde_json::Value;

use crate::common::patient::TimedReader;
use crate::common::{ACP, TestProject};
#[cfg(target_os = "linux")]
use crate::start::is_running;

/// The maximum time to wait for an expected event.
const SERVER_TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A running `acp serve`. Killed on drop.
pub(crate) struct Server {
    child: Child,
    /// The agents' URLs, which include everything that clients need in order to connect.
    urls: Vec<String>,
    stderr: BufReader<TimedReader>,
}

impl Server {
    /// Starts a server on a free port, and waits until it has printed the URLs of this many agents.
    fn start_with(project: &TestProject, args: &[&str], agents: usize) -> Self {
        let mut command = project.acp_command(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(args);
        Self::from_command(command, agents)
    }

    pub(crate) fn start(project: &TestProject, args: &[&str]) -> Self {
        Self::start_with(project, args, 1)
    }

    pub(crate) fn from_command(mut command: Command, agents: usize) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(TimedReader::new(child.stderr.take().unwrap()));
        let mut urls = Vec::new();
        while urls.len() < agents {
            let mut line = String::new();
            let read = stderr.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "the server has exited");
            if let Some(url) = line.strip_prefix("acp: serving ") {
                urls.push(url.trim().to_owned());
            }
        }
        Self {
            child,
            urls,
            stderr,
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.urls[0]
    }

    /// Returns the URL without the token.
    pub(crate) fn plain_url(&self) -> &str {
        self.url().split(['?', '#']).next().unwrap()
    }

    pub(crate) fn token(&self) -> Token {
        let (_, token) = self.url().split_once("?token=").unwrap();
        Token::new(token.split('#').next().unwrap()).unwrap()
    }

    pub(crate) fn address(&self) -> &str {
        let (_, rest) = self.url().split_once("://").unwrap();
        rest.split('/').next().unwrap()
    }

    /// Reads stderr until a line contains this text, and returns that line.
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.stderr.read_line(&mut line).unwrap();
            assert_ne!(read, 0, "the server exited without {part:?}");
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Sends a GET request and returns the response, including its headers.
    pub(crate) fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        let host = self.address();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
        )
        .unwrap();
        let mut response = String::new();
        TimedReader::new(stream)
            .read_to_string(&mut response)
            .unwrap();
        response
    }

    /// Returns the server's metrics.
    pub(crate) fn metrics(&self) -> String {
        self.get("/metrics", &self.authorization())
    }

    fn authorization(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token().expose())
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Shuts the server down, and waits until all agents have exited.
    #[cfg(unix)]
    pub(crate) fn stop(self) {
        self.signal(rustix::process::Signal::TERM);
        assert_eq!(self.wait().0, Some(0));
    }

    /// Waits for the server to exit. Returns its exit code and the rest of its stderr.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client that allows everything and counts permission requests.
#[derive(Clone, Default)]
struct AllowingClient {
    asked: Arc<AtomicUsize>,
}

impl Client for AllowingClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Ok(request.allow())
    }
}

pub(crate) async fn within_timeout<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(SERVER_TEST_TIMEOUT, work)
        .await
        .expect("nothing happened")
}

/// Connects with a token, and returns the connection to the agent.
pub(crate) async fn connect_client(url: &str, token: Token) -> AgentConnection {
    connect_with(url, ConnectOptions::new().token(token)).await
}

async fn connect_with(url: &str, options: ConnectOptions) -> AgentConnection {
    let transport = within_timeout(connect(url, options)).await.unwrap();
    let client = AllowingClient::default();
    let (handshake, driver) = acp::client::connect(transport, client);
    tokio::spawn(driver);
    within_timeout(handshake).await.unwrap()
}

async fn open(server: &Server, cwd: &Path) -> (AgentConnection, ClientSession) {
    let agent = connect_client(server.plain_url(), server.token()).await;
    let session = within_timeout(agent.new_session(SessionSetup::new(cwd)))
        .await
        .unwrap();
    (agent, session)
}

pub(crate) fn thread_debug_text(session: &ClientSession) -> String {
    session.thread().read(|thread| format!("{thread:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_requests_permission_edits_a_file_and_runs_a_command_over_each_transport() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    for scheme in ["ws", "http"] {
        project.write_file("notes.txt", "first\nsecond\n");
        let url = server.plain_url().replace("ws://", &format!("{scheme}://"));
        let options = ConnectOptions::new().token(server.token());
        let transport = within_timeout(connect(&url, options)).await.unwrap();
        let client = AllowingClient::default();
        let (handshake, driver) = acp::client::connect(transport, client.clone());
        tokio::spawn(driver);
        let agent = within_timeout(handshake).await.unwrap();
        let session = agent.new_session(SessionSetup::new(project.path()));
        let session = within_timeout(session).await.unwrap();
        let edit = "/edit notes.txt\nsecond\n===\nchanged";
        let stopped = within_timeout(session.prompt(edit)).await.unwrap();
        assert_eq!(stopped, StopReason::EndTurn);
        assert_eq!(
            project.read_file("notes.txt"),
            "first\nchanged\n",
            "{scheme}"
        );
        within_timeout(session.prompt("/run echo from the agent"))
            .await
            .unwrap();
        assert!(
            thread_debug_text(&session).contains("from the agent"),
            "{scheme}"
        );
        assert_eq!(client.asked.load(Ordering::Relaxed), 2, "{scheme}");
        agent.close();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_open_only_the_allowed_directories() {
    let project = TestProject::new();
    std::fs::create_dir(project.file("below")).unwrap();
    let other = project.path_outside("other");
    let server = Server::start(&project, &[]);
    let agent = connect_client(server.plain_url(), server.token()).await;
    let error = within_timeout(agent.new_session(SessionSetup::new(&other)))
        .await
        .unwrap_err();
    let message = error.to_string();
    assert!(message.contains("directory not allowed: `"), "{message}");
    assert!(message.contains("; this server allows `"), "{message}");
    // The connection goes on.
    let below = SessionSetup::new(project.file("below"));
    within_timeout(agent.new_session(below)).await.unwrap();
    drop(server);

    let both = [
        "--cwd",
        project.path().to_str().unwrap(),
        "--cwd",
        other.to_str().unwrap(),
        "--token-file",
        "token",
    ];
    let server = Server::start(&project, &both);
    let agent = connect_client(server.plain_url(), server.token()).await;
    within_timeout(agent.new_session(SessionSetup::new(&other)))
        .await
        .unwrap();
    assert!(
        within_timeout(agent.new_session(SessionSetup::new("/")))
            .await
            .is_err()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_with_the_token_reach_an_agent() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--log", "info"]);
    for token in [None, Some(Token::random())] {
        let mut options = ConnectOptions::new();
        options.token = token;
        let error = within_timeout(connect(server.plain_url(), options))
            .await
            .unwrap_err();
        assert!(
            matches!(error, ConnectError::Unauthorized { .. }),
            "{error}"
        );
    }
    let metrics = server.get("/metrics", "");
    assert!(metrics.starts_with("HTTP/1.1 401 "), "{metrics}");
    let other_site = "Origin: https://evil.example\r\n";
    let metrics = server.get("/metrics", &(server.authorization() + other_site));
    assert!(metrics.starts_with("HTTP/1.1 403 "), "{metrics}");
    assert!(server.get("/health", "").ends_with("\r\n\r\nok\n"));
    assert!(server.get("/", "").contains("agents are served at /acp"));

    let (agent, _session) = open(&server, project.path()).await;
    let metrics = server.get("/metrics", &server.authorization());
    for line in [
        "acp_connections_open{agent=\"agent\"} 1",
        "acp_agent_processes_running{agent=\"agent\"} 1",
        "acp_http_requests_refused_total{agent=\"agent\"} 4",
        "acp_requests_in_flight{agent=\"agent\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    agent.close();
    server.wait_for("connection closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_agent_has_its_own_path() {
    let project = TestProject::new();
    project.write_config(
        "config.toml",
        &format!("[agents.mine]\ncommand = [{ACP:?}, \"agent\", \"--protocol=1\"]\n"),
    );
    let agents = ["--agent", "mine", "--agent", "acp"];
    let server = Server::start_with(&project, &agents, 2);
    let token = server.token();
    for (url, path) in server.urls.iter().zip(["/acp/mine", "/acp/acp"]) {
        let url = url.split('?').next().unwrap();
        assert!(url.ends_with(path), "{url}");
        let agent = connect_client(url, token.clone()).await;
        let session = agent.new_session(SessionSetup::new(project.path()));
        within_timeout(session).await.unwrap();
    }
    let unknown = server.plain_url().replace("/mine", "/other");
    let error = within_timeout(connect(&unknown, ConnectOptions::new().token(token)))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn server_shutdown_waits_for_running_turns() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--log", "info"]);
    let (closed, mut reasons) = tokio::sync::mpsc::channel(8);
    let options = ConnectOptions::new()
        .token(server.token())
        .on_status(move |status| {
            if let ConnectionStatus::Closed(status) = status {
                closed.try_send(status.to_string()).unwrap();
            }
        });
    let idle = connect_with(server.plain_url(), options).await;
    let (busy, session) = open(&server, project.path()).await;
    let command = "/run touch begun; while [ ! -e go ]; do sleep 0.05; done; echo finished";
    let turn = tokio::spawn(async move {
        let stopped = session.prompt(command).await;
        (stopped, session)
    });
    within_timeout(async {
        while !project.file("begun").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.signal(rustix::process::Signal::TERM);
    server.wait_for("shutting down; waiting for 2 connections");
    // The idle connection ends at once, and says why.
    within_timeout(idle.closed()).await;
    let reason = within_timeout(reasons.recv()).await.unwrap();
    assert_eq!(reason, "the server is shutting down (close code 1001)");
    assert!(server.get("/health", "").starts_with("HTTP/1.1 503 "));
    let options = ConnectOptions::new().token(server.token());
    let error = within_timeout(connect(server.plain_url(), options))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");
    // The turn ends as if nothing had happened.
    project.write_file("go", "");
    let (stopped, session) = within_timeout(turn).await.unwrap();
    assert_eq!(stopped.unwrap(), StopReason::EndTurn);
    assert!(thread_debug_text(&session).contains("finished"));
    within_timeout(busy.closed()).await;
    assert_eq!(server.wait().0, Some(0));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_closes_all_connections() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--log", "info"]);
    let (busy, session) = open(&server, project.path()).await;
    let turn = tokio::spawn(async move {
        session
            .prompt("/run touch begun; sleep 600; echo late")
            .await
    });
    within_timeout(async {
        while !project.file("begun").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.signal(rustix::process::Signal::INT);
    server.wait_for("shutting down");
    server.signal(rustix::process::Signal::INT);
    within_timeout(busy.closed()).await;
    assert!(within_timeout(turn).await.unwrap().is_err());
    assert_eq!(server.wait().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn client_gets_an_error_when_its_agent_exits() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--", "sh", "-c", "read line; exit 7"]);
    let options = ConnectOptions::new().token(server.token());
    let transport = within_timeout(connect(server.plain_url(), options))
        .await
        .unwrap();
    let (handshake, driver) = acp::client::connect(transport, AllowingClient::default());
    tokio::spawn(driver);
    let error = within_timeout(handshake).await.unwrap_err().to_string();
    assert!(error.contains("the agent exited: exit code 7"), "{error}");
    let metrics = server.get("/metrics", &server.authorization());
    assert!(
        metrics.contains("acp_agent_processes_failed_total{agent=\"agent\"} 1"),
        "{metrics}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_and_its_commands_end_with_their_connection() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--log", "info"]);
    let (agent, session) = open(&server, project.path()).await;
    let turn = tokio::spawn(async move { session.prompt("/run echo $$ > pid; sleep 600").await });
    within_timeout(async {
        while !std::fs::read_to_string(project.file("pid")).is_ok_and(|pid| pid.ends_with('\n')) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(is_running(&project, "pid"));
    agent.close();
    server.wait_for("connection closed");
    assert!(within_timeout(turn).await.unwrap().is_err());
    assert!(!is_running(&project, "pid"));
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_limit_are_rejected() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--max-connections", "1"]);
    let (_agent, _session) = open(&server, project.path()).await;
    let options = ConnectOptions::new().token(server.token());
    let error = within_timeout(connect(server.plain_url(), options))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");
}

#[test]
fn token_is_printed_once_and_readable_only_by_the_user() {
    let project = TestProject::new();
    let first = Server::start(&project, &[]);
    let token = first.token();
    let file = project.sessions_directory().join("serve.token");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap().trim(),
        token.expose()
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    drop(first);
    // Here stderr is a log.
    let mut second = Server::start(&project, &[]);
    assert!(!second.url().contains("token"), "{}", second.url());
    second.wait_for("clients need the token in");
}

#[test]
fn non_loopback_address_requires_tls_and_a_token() {
    let project = TestProject::new();
    let refused = |args: &[&str]| {
        let mut command = project.acp_command(&["serve", "--listen", "0.0.0.0:0"]);
        let output = command.args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused(&[]).contains("use --tls-self-signed or --tls-cert"));
    assert!(refused(&["--tls-self-signed", "--no-token"]).contains("remove --no-token"));
    let mut command = project.acp_command(&["serve", "--listen", "0.0.0.0:0", "--insecure"]);
    command.arg("--no-token");
    let mut server = Server::from_command(command, 1);
    server.wait_for("warning: no token: everyone who can reach this address");
    server.wait_for("warning: no TLS: ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_self_signed_certificate_is_trusted_by_its_fingerprint() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--tls-self-signed"]);
    let (_, pin) = server.url().split_once('#').unwrap();
    assert!(server.plain_url().starts_with("wss://"));
    let token = server.token();
    let options = ConnectOptions::new().token(token.clone());
    let error = within_timeout(connect(server.plain_url(), options))
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Tls { .. }), "{error}");
    for scheme in ["wss", "https"] {
        let url = server.plain_url().replace("wss", scheme);
        let options = ConnectOptions::new()
            .token(token.clone())
            .trust(Trust::from_pin(pin).unwrap());
        let transport = within_timeout(connect(&url, options)).await.unwrap();
        let (handshake, driver) = acp::client::connect(transport, AllowingClient::default());
        tokio::spawn(driver);
        within_timeout(handshake).await.unwrap();
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn json_log_identifies_connections_and_sessions() {
    let project = TestProject::new();
    let file = project.path_outside("server").join("token");
    std::fs::write(&file, "a-token-of-the-test\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let mut command = project.acp_command(&["serve", "--listen", "127.0.0.1:0", "--log", "info"]);
    command
        .args(["--log-format", "json", "--token-file"])
        .arg(&file);
    let mut server = Server::from_command(command, 0);
    let listening: Value = serde_json::from_str(&server.wait_for("listening")).unwrap();
    server
        .urls
        .push(listening["url"].as_str().unwrap().to_owned());
    let token = Token::new("a-token-of-the-test").unwrap();
    let agent = connect_client(server.plain_url(), token).await;
    let session = agent.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    within_timeout(session.prompt("/help")).await.unwrap();
    agent.close();
    let mut last = server.wait_for("session/prompt");
    let finished: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(finished["session"], session.id().to_string());
    let connection = finished["span"]["id"].as_str().unwrap().to_owned();
    last = server.wait_for("connection closed");
    let closed: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(closed["span"]["id"], connection);
    server.signal(rustix::process::Signal::TERM);
    let (code, rest) = server.wait();
    assert_eq!(code, Some(0));
    for line in rest.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
}

#[test]
fn a_missing_program_is_reported_before_anything_is_served() {
    let project = TestProject::new();
    let mut command = project.acp_command(&["serve", "--", "no-such-agent"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.contains("command not found: `no-such-agent`"),
        "{stderr}"
    );
}
