//! Tests of remote agents: runs `acp connect` as a process, and the commands that use it, against real servers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::patient::TimedReader;
use crate::common::{ACP, CommandResult, TestProject};
use crate::serve::Server;

/// A prompt that makes the bundled agent run a command that ends once a file called `go` exists in the project.
const WAIT_FOR_GO_PROMPT: &str =
    "/run touch begun; while [ ! -e go ]; do sleep 0.05; done; echo finished";

/// A running `acp connect` or similar command. The test acts as its client and sends raw messages.
struct ConnectProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<TimedReader>,
    stderr: BufReader<TimedReader>,
}

impl ConnectProcess {
    fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(TimedReader::new(child.stdout.take().unwrap())),
            stderr: BufReader::new(TimedReader::new(child.stderr.take().unwrap())),
            child,
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends `initialize` and returns the response.
    fn initialize(&mut self) -> Value {
        let params = json!({"protocolVersion": 1});
        self.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("{line:?}: {:?}", self.read_remaining_stderr()))
    }

    fn read_remaining_stderr(&mut self) -> String {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Reads stderr up to the next line that contains this text.
    fn wait_for(&mut self, part: &str) -> String {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert_ne!(self.stderr.read_line(&mut line).unwrap(), 0, "no {part:?}");
        }
        line
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Closes stdin and waits for the process to exit.
    fn end(mut self) -> CommandResult {
        drop(self.stdin.take());
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let stderr = self.read_remaining_stderr();
        CommandResult {
            code: self.child.wait().unwrap().code(),
            stdout,
            stderr,
        }
    }
}

impl Drop for ConnectProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A relay in front of a server. Can cut connections.
struct CuttableRelay {
    address: String,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl CuttableRelay {
    fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (sockets, server) = (Arc::clone(&open), server.to_owned());
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
                sockets.lock().unwrap().extend([client, server]);
            }
        });
        Self { address, open }
    }

    fn cut_connections(&self) {
        for socket in self.open.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Writes a file that only its owner can read, and returns its path.
pub(crate) fn token_file(project: &TestProject, token: &str) -> String {
    let file = project.path_outside("tokens").join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Returns a port on which nothing is listening.
pub(crate) fn closed_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

pub(crate) fn to_http_url(url: &str) -> String {
    url.replacen("ws", "http", 1)
}

#[test]
fn a_client_starts_acp_connect_as_its_agent() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let connect = |more: &[&str]| {
        let mut args = vec!["/read notes.txt"];
        args.extend(more);
        args.extend(["--", ACP, "connect", server.plain_url()]);
        let mut command = project.agent_command(&args);
        command.env("ACP_TOKEN", server.token().expose());
        CommandResult::from_output(command.output().unwrap())
    };
    connect(&["--env", "ACP_TOKEN"])
        .expect_code(0)
        .expect_stdout(&["second", "third"]);
    // No agent gets the token unasked, not even this one.
    connect(&[])
        .expect_code(3)
        .expect_stderr("the server requires a token; use --token-file")
        .expect_stderr("add --env ACP_TOKEN to pass it");
}

#[test]
fn an_ordinary_agent_does_not_get_the_token() {
    let project = TestProject::new();
    let mut command = project.agent_command(&["hi", "--", "sh", "-c", "env > given"]);
    command.env("ACP_TOKEN", "hush").output().unwrap();
    let given = project.read_file("given");
    assert!(
        given.contains("PATH=") && !given.contains("hush"),
        "{given}"
    );
}

#[test]
fn turn_runs_by_url_over_each_transport() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let file = token_file(&project, server.token().expose());
    for url in [
        server.plain_url().to_owned(),
        to_http_url(server.plain_url()),
    ] {
        let args = ["--url", &url, "--token-file", &file, "/read notes.txt"];
        let ended = project
            .run(&args)
            .expect_code(0)
            .expect_stdout(&["second", "third"]);
        let hint = ended.find_line("continue with: acp run --resume");
        let repeats = format!("--url {url} --token-file {file}");
        assert!(hint.ends_with(&repeats), "{hint}");
    }
    let mut command = project.agent_command(&["--url", server.plain_url(), "/read notes.txt"]);
    command.env("ACP_TOKEN", server.token().expose());
    CommandResult::from_output(command.output().unwrap()).expect_code(0);
}

#[test]
fn session_names_work_with_a_url() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let run = |url: &str| project.run(&["--url", url, "--session", "mine", "/help"]);
    run(server.url()).expect_code(0);
    let url = server.url();
    let listed = project
        .acp_command(&["sessions", "--url", url])
        .output()
        .unwrap();
    CommandResult::from_output(listed)
        .expect_code(0)
        .expect_stdout(&["mine  "]);
    // Another token is no other agent.
    let file = token_file(&project, server.token().expose());
    let args = ["sessions", "--url", server.plain_url(), "--token-file"];
    let listed = project.acp_command(&args).arg(&file).output().unwrap();
    CommandResult::from_output(listed)
        .expect_code(0)
        .expect_stdout(&["mine  "]);
    let args = [
        "sessions",
        "forget",
        "mine",
        "--url",
        "ws://127.0.0.1:1/acp",
    ];
    CommandResult::from_output(project.acp_command(&args).output().unwrap())
        .expect_code(2)
        .expect_stderr("the agent at ws://127.0.0.1:1/acp has no session called `mine`");
}

#[cfg(target_os = "linux")]
#[test]
fn token_in_a_url_is_never_shown() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let list = "/run for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' < $file; echo; done > all";
    let ended = project
        .run(&["--allow", "all", "--url", server.url(), list])
        .expect_code(0);
    let address = server.address();
    let all = project.read_file("all");
    let connects = all
        .lines()
        .filter(|line| line.contains(" connect ") && line.contains(address));
    let connects: Vec<&str> = connects.collect();
    assert_eq!(connects.len(), 1, "{all}");
    let token = server.token();
    assert!(!connects[0].contains(token.expose()), "{connects:?}");
    assert!(!ended.stderr.contains(token.expose()), "{ended:?}");
    let hint = ended.find_line("continue with:");
    assert!(hint.contains("/acp?token=...'"), "{hint}");
    // Errors do not show it either.
    for url in [
        format!("ws://127.0.0.1:{}/acp?token=hush", closed_port()),
        "wss://127.0.0.1/?token=hush#sha256:hush".to_owned(),
        "ftp://127.0.0.1/?token=hush".to_owned(),
        "ws://me:hush@127.0.0.1/".to_owned(),
    ] {
        for args in [["connect", &url].as_slice(), &["run", "hi", "--url", &url]] {
            let ended = CommandResult::from_output(project.acp_command(args).output().unwrap());
            assert!(matches!(ended.code, Some(2 | 3)), "{ended:?}");
            assert!(!ended.stderr.contains("hush"), "{ended:?}");
        }
    }
}

#[test]
fn wrong_token_is_reported_in_one_line() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let file = token_file(&project, "another");
    for url in [
        server.plain_url().to_owned(),
        to_http_url(server.plain_url()),
    ] {
        let said = format!(
            "acp: cannot connect to {url}: the server rejected the token; pass a valid one with --token-file or the variable ACP_TOKEN\n"
        );
        let args = ["run", "hi", "--url", &url, "--token-file", &file];
        let ended =
            CommandResult::from_output(project.acp_command(&args).output().unwrap()).expect_code(3);
        assert_eq!(ended.stderr, said);
        let mut connect = project.acp_command(&["connect", &url, "--token-file", &file]);
        let mut connected = ConnectProcess::start(&mut connect);
        // Over HTTP, the first message opens the connection.
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}});
        let _ = writeln!(connected.stdin.as_mut().unwrap(), "{message}");
        assert_eq!(connected.read_remaining_stderr(), said);
        connected.end().expect_code(3);
    }
}

#[test]
fn token_file_readable_by_others_is_used_with_a_warning() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let file = token_file(&project, server.token().expose());
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let args = ["--url", server.url(), "--token-file", &file, "/help"];
    project
        .run(&args)
        .expect_code(0)
        .expect_stderr(&format!("warning: other users can read {file}"));
}

#[test]
fn each_command_reports_an_unreachable_server_in_one_line() {
    let project = TestProject::new();
    let url = format!("ws://127.0.0.1:{}/acp", closed_port());
    let said = format!("acp: cannot connect to {url}: connection refused\n");
    let over_http = to_http_url(&url);
    project
        .run(&["hi", "--url", &over_http])
        .expect_code(3)
        .expect_stderr(&to_http_url(&said));
    for args in [
        ["run", "hi", "--url", &url].as_slice(),
        &["run", "hi", "--url", &url, "--allow", "reads"],
        &["sessions", "--url", &url],
        &["login", "--url", &url],
        &["logout", "--url", &url],
    ] {
        let ended =
            CommandResult::from_output(project.acp_command(args).output().unwrap()).expect_code(3);
        let own = ended.stderr.lines();
        let own = own.filter(|line| !line.starts_with("acp: warning: --allow reads"));
        assert_eq!(own.collect::<Vec<_>>(), [said.trim()], "{args:?}");
    }
    // These take the agent's place, and have a client.
    for args in [
        ["connect", &url].as_slice(),
        &["trace", "file.trace", "--url", &url],
        &["bridge", "--to", "2", "--url", &url],
    ] {
        let mut running = ConnectProcess::start(&mut project.acp_command(args));
        assert_eq!(running.read_remaining_stderr(), said, "{args:?}");
        running.end().expect_code(3);
    }
    let args = [
        "check",
        "agent",
        "--url",
        &url,
        "--only",
        "v1/initialization/*",
    ];
    CommandResult::from_output(project.acp_command(&args).output().unwrap())
        .expect_code(3)
        .expect_stderr(said.trim());
}

#[test]
fn only_the_pinned_certificate_is_trusted() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--tls-self-signed"]);
    let (url, pin) = server.url().split_once('#').unwrap();
    let run = |args: &[&str]| {
        let mut all = vec!["/read notes.txt"];
        all.extend(args);
        project.run(&all)
    };
    run(&["--url", server.url()])
        .expect_code(0)
        .expect_stdout(&["second"]);
    run(&["--url", &to_http_url(url), "--pin", pin]).expect_code(0);
    let other = format!("sha256:{}", "0".repeat(64));
    run(&["--url", url, "--pin", &other])
        .expect_code(3)
        .expect_stderr("its certificate has a different fingerprint");
    run(&["--url", server.url(), "--pin", &other])
        .expect_code(2)
        .expect_stderr("--pin: the URL has a different fingerprint");
    run(&["--url", url])
        .expect_code(3)
        .expect_stderr("invalid peer certificate")
        .expect_stderr("if you know the certificate's fingerprint, use --pin");
    run(&["--url", "ws://127.0.0.1/", "--pin", pin])
        .expect_code(2)
        .expect_stderr("--pin: a fingerprint requires wss:// or https://");
}

#[test]
fn turn_survives_a_cut_connection() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let relay = CuttableRelay::start(server.address());
    for scheme in ["ws", "http"] {
        let _ = std::fs::remove_file(project.file("go"));
        let url = format!(
            "{scheme}://{}/acp?token={}",
            relay.address,
            server.token().expose()
        );
        let args = ["--allow", "all", "--url", &url, WAIT_FOR_GO_PROMPT];
        let mut running = ConnectProcess::start(&mut project.agent_command(&args));
        while !project.file("begun").exists() {
            thread::yield_now();
        }
        relay.cut_connections();
        running.wait_for("reconnecting to ");
        running.wait_for("reconnected to ");
        std::fs::remove_file(project.file("begun")).unwrap();
        project.write_file("go", "");
        running.end().expect_code(0).expect_stdout(&["finished"]);
    }
}

#[test]
fn acp_connect_ends_when_the_server_closes_the_connection() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--log", "info"]);
    let mut connected = ConnectProcess::start(&mut project.acp_command(&["connect", server.url()]));
    assert_eq!(connected.initialize()["result"]["protocolVersion"], 1);
    server.signal(Signal::TERM);
    server.wait_for("shutting down");
    let said = connected.read_remaining_stderr();
    let expected = "acp: the server closed the connection: the server is shutting down\n";
    assert_eq!(said, expected);
    connected.end().expect_code(3);
}

#[test]
fn acp_run_reports_how_a_remote_agent_exited() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--", "sh", "-c", "read line; exit 7"]);
    let ended = project.run(&["hi", "--url", server.url()]).expect_code(3);
    let line = ended.find_line("exit code 7");
    assert_eq!(
        line,
        "acp: the server closed the connection: the agent exited: exit code 7 (close code 1011)"
    );
}

#[test]
fn connection_ends_when_the_client_closes_stdin() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--log", "info"]);
    for url in [server.url().to_owned(), to_http_url(server.url())] {
        let mut connected = ConnectProcess::start(&mut project.acp_command(&["connect", &url]));
        connected.initialize();
        let ended = connected.end().expect_code(0);
        assert_eq!(ended.stderr, "");
        server.wait_for("connection closed");
        // What was sent before the end still counts, and so does the answer.
        let mut connected = ConnectProcess::start(&mut project.acp_command(&["connect", &url]));
        connected.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}));
        connected
            .end()
            .expect_code(0)
            .expect_stdout(&["\"protocolVersion\":1"]);
        server.wait_for("connection closed");
    }
}

#[test]
fn signal_ends_acp_connect_and_closes_the_connection() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--log", "info"]);
    for (url, signal) in [
        (server.url().to_owned(), Signal::TERM),
        (to_http_url(server.url()), Signal::INT),
    ] {
        let mut connected = ConnectProcess::start(&mut project.acp_command(&["connect", &url]));
        connected.initialize();
        connected.signal(signal);
        assert_eq!(connected.read_remaining_stderr(), "");
        server.wait_for("connection closed");
        connected.end().expect_code(130);
    }
}

#[test]
fn agent_can_be_reached_by_a_socket_without_a_server() {
    let project = TestProject::new();
    let home = project.home_variables();
    let serve = move |socket: OwnedFd| {
        let stdin = socket.try_clone().unwrap();
        let mut agent = Command::new(ACP);
        agent.arg("agent").stdin(stdin).stdout(socket);
        agent.envs(home.clone()).spawn().unwrap().wait().unwrap();
    };
    let path = project.file("agent.sock");
    let by_path = UnixListener::bind(&path).unwrap();
    let by_port = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = by_port.local_addr().unwrap().port();
    let serve_too = serve.clone();
    thread::spawn(move || serve(by_path.accept().unwrap().0.into()));
    thread::spawn(move || serve_too(by_port.accept().unwrap().0.into()));
    // A relative path starts at the current directory.
    for url in ["unix:agent.sock", &format!("tcp://127.0.0.1:{port}")] {
        project
            .run(&["/read notes.txt", "--url", url])
            .expect_code(0)
            .expect_stdout(&["second", "third"]);
    }
    project
        .run(&["hi", "--url", "unix:none.sock"])
        .expect_code(3)
        .expect_stderr("none.sock: no such file or directory");
    project
        .run(&["hi", "--url", "tcp://127.0.0.1:1", "--token-file", "x"])
        .expect_code(2)
        .expect_stderr("--token-file: no token can be sent to tcp://127.0.0.1:1");
}

#[test]
fn remote_agent_can_be_configured_by_name() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let url = server.plain_url();
    let configured = format!("default_agent = 'far'\n[agents.far]\nurl = '{url}'\n");
    project.write_config("config.toml", &format!("{configured}token_env = 'FAR'\n"));
    let token = server.token();
    let with = |variable: &str, args: &[&str]| {
        let mut command = project.acp_command(args);
        command.env(variable, token.expose());
        CommandResult::from_output(command.output().unwrap())
    };
    let run = ["run", "/read notes.txt", "--agent", "far"];
    let ended = with("FAR", &run).expect_code(0).expect_stdout(&["second"]);
    let hint = ended.find_line("continue with:");
    assert!(hint.ends_with("PROMPT --agent far"), "{hint}");
    with("FAR", &["run", "/help"]).expect_code(0);
    with("FAR", &["agents"])
        .expect_code(0)
        .expect_stdout(&["* far  remote ", url]);
    let listed = with("FAR", &["agents", "--format", "json"]).expect_code(0);
    let far: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(far["url"], url);
    // The variable of `--url` may be meant for another server.
    with("ACP_TOKEN", &run)
        .expect_code(2)
        .expect_stderr("[agents.far]: token_env: variable FAR not set");
    project.write_config("config.toml", &configured);
    with("ACP_TOKEN", &run)
        .expect_code(3)
        .expect_stderr("the server requires a token");
    let file = token_file(&project, token.expose());
    project.write_config(
        "config.toml",
        &format!("{configured}token_file = '{file}'\n"),
    );
    with("NONE", &run).expect_code(0);
    with("NONE", &["run", "hi", "--agent", "far", "--env", "A=b"])
        .expect_code(2)
        .expect_stderr("--env does not apply to a remote agent");
}

#[test]
fn invalid_remote_settings_are_rejected() {
    let project = TestProject::new();
    for (settings, said) in [
        ("url = 'ws://h/'\ncommand = 'x'", "`command` and `url`"),
        ("url = 'h:1'", "url: invalid URL"),
        (
            "command = 'x'\ntoken_env = 'T'",
            "`token_env` requires `url`",
        ),
        (
            "url = 'ws://h/'\npin = 'sha256:00'",
            "pin: invalid fingerprint",
        ),
        ("url = 'ws://h/'\nenv = { A = 'b' }", "`env` and `pass`"),
        (
            "url = 'ws://h/?token=t'\ntoken_env = 'T'",
            "mutually exclusive",
        ),
        ("url = 'unix:a.sock'", "the path must be absolute"),
        ("url = 'tcp://h:1'\ntoken_env = 'T'", "no token can be sent"),
        ("url = 'ws://h/'\ntoken_file = 'f'", "use an absolute path"),
        ("url = 'ws://h/'\ntoken_header = 'x'", "unknown variant"),
        (
            "url = 'ws://h/'\npaths = { 'a' = '/b' }",
            "paths: a: use an absolute path",
        ),
        (
            "command = 'x'\npaths = { '/a' = '/b' }",
            "`paths` requires `url`",
        ),
    ] {
        project.write_config("config.toml", &format!("[agents.far]\n{settings}\n"));
        project
            .run(&["hi", "--agent", "far"])
            .expect_code(2)
            .expect_stderr(said);
    }
    let pin = format!("pin = 'sha256:{}'", "0".repeat(64));
    project.write_config(
        "config.toml",
        &format!("[agents.far]\nurl = 'ws://h/'\n{pin}"),
    );
    project
        .run(&["hi", "--agent", "far"])
        .expect_code(2)
        .expect_stderr("pin: a fingerprint requires wss:// or https://");
    project.write_config("config.toml", "[agents.acp]\nurl = 'ws://h/'\n");
    project
        .run(&["hi", "--agent", "acp"])
        .expect_code(2)
        .expect_stderr("does not accept `url`");
    for (args, said) in [
        (["--url", "ws://h/", "--agent", "x"].as_slice(), "--agent"),
        (&["--url", "ws://h/", "--env", "A"], "--env"),
        (&["--url", "ws://h/", "--", "x"], "AGENT COMMAND"),
    ] {
        let mut all = vec!["hi"];
        all.extend(args);
        let ended = project
            .run(&all)
            .expect_code(2)
            .expect_stderr("cannot be used with");
        assert!(ended.stderr.contains(said), "{ended:?}");
    }
    project
        .run(&["hi", "--pin", "x", "--agent", "claude"])
        .expect_code(2)
        .expect_stderr("--pin requires a remote agent");
}

#[test]
fn a_project_cannot_send_the_users_secrets() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    std::fs::create_dir_all(project.file(".acp")).unwrap();
    let brings = |settings: &str| {
        project.write_file(".acp/config.toml", &format!("[agents.far]\n{settings}\n"));
        let mut command = project.acp_command(&["run", "hi", "--agent", "far"]);
        command.env("ACP_TOKEN", server.token().expose());
        command.env("SECRET", server.token().expose());
        CommandResult::from_output(command.output().unwrap())
    };
    let url = format!("url = '{}'", server.plain_url());
    for (more, said) in [
        ("token_env = 'SECRET'", "`token_env` is not allowed"),
        ("paths = { '/a' = '/b' }", "`paths` is not allowed"),
        ("token_file = '/etc/passwd'", "`token_file` is not allowed"),
        ("pass = ['ACP_TOKEN']", "`env` and `pass`"),
    ] {
        brings(&format!("{url}\n{more}"))
            .expect_code(2)
            .expect_stderr(said);
    }
    brings("url = 'ws://h/?token=hush'")
        .expect_code(2)
        .expect_stderr("a token in `url` is not allowed in a project's file");
    brings(&url)
        .expect_code(2)
        .expect_stderr("you have not allowed");
    let allowed = project
        .acp_command(&["agents", "allow", "--yes"])
        .output()
        .unwrap();
    CommandResult::from_output(allowed).expect_code(0);
    let shown = project.acp_command(&["agents", "allow"]).output().unwrap();
    CommandResult::from_output(shown).expect_stdout(&["far: connects to ws://127.0.0.1:"]);
    // Not the token of `--url` either, even if the user passes it on to all agents.
    project.write_config("config.toml", "[environment]\npass = ['ACP_TOKEN']\n");
    brings(&url)
        .expect_code(3)
        .expect_stderr("the server requires a token");
    let file = token_file(&project, server.token().expose());
    project
        .run(&["/help", "--agent", "far", "--token-file", &file])
        .expect_code(0);
    // The permission is for one URL.
    brings("url = 'ws://127.0.0.1:1/'")
        .expect_code(2)
        .expect_stderr("you have not allowed");
}

#[test]
fn remote_agent_can_be_checked_traced_and_bridged() {
    let project = TestProject::new();
    let anywhere = std::env::temp_dir();
    let server = Server::start(&project, &["--cwd", anywhere.to_str().unwrap()]);
    let acp = |args: &[&str]| {
        let mut command = project.acp_command(args);
        command.env("ACP_TOKEN", server.token().expose());
        CommandResult::from_output(command.output().unwrap())
    };
    let url = server.plain_url();
    acp(&[
        "check",
        "agent",
        "--only",
        "v1/initialization/*",
        "--url",
        url,
    ])
    .expect_code(0)
    .expect_stdout(&["passed"]);

    let trace = project.path_outside("traces").join("remote.trace");
    let trace = trace.to_str().unwrap();
    let traced = [
        "run",
        "/read notes.txt",
        "--env",
        "ACP_TOKEN",
        "--",
        ACP,
        "trace",
        trace,
        "--url",
        url,
    ];
    acp(&traced).expect_code(0).expect_stdout(&["second"]);
    let recorded = std::fs::read_to_string(trace).unwrap();
    let header: Value = serde_json::from_str(recorded.lines().next().unwrap()).unwrap();
    assert!(
        header
            .to_string()
            .contains(&format!("\"connect\",\"{url}\"")),
        "{header}"
    );
    assert!(recorded.contains("session/prompt") && !recorded.contains(server.token().expose()));
    acp(&["trace", "replay", trace, "--as", "client", "--url", url]).expect_code(0);
    acp(&["trace", "replay", trace, "--as", "agent", "--url", url]).expect_code(2);

    let bridged = [
        "run",
        "/read notes.txt",
        "--protocol",
        "2",
        "--env",
        "ACP_TOKEN",
        "--",
        ACP,
        "bridge",
        "--to",
        "2",
        "--url",
        url,
    ];
    acp(&bridged).expect_code(0).expect_stdout(&["second"]);
}
