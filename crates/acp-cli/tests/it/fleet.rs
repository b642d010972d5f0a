//! Tests of several `acp serve --live` that share a store.

#[cfg(unix)]
use std::io::{BufRead, BufReader};
use std::path::Path;
#[cfg(unix)]
use std::process::Stdio;

use acp::client::{AgentConnection, ClientSession, SessionSetup};
use acp::v1::{SessionId, StopReason};
use acp_postgres::TestPostgres;
use acp_remote::Token;
use rustix::process::Signal;

use crate::common::patient::TimedReader;
use crate::common::{ACP, TestProject};
use crate::serve::{Server, connect_client, thread_debug_text, within_timeout};
use crate::watch_json::{WatchingScript, history, is_method};

/// Servers that share a store and a token.
struct Fleet {
    // Dropped before the project, which waits for the servers' sockets to be closed.
    servers: Vec<Server>,
    project: TestProject,
    store: String,
    token: Token,
}

impl Fleet {
    fn new(store: impl FnOnce(&TestProject) -> String) -> Self {
        let project = TestProject::new();
        let store = store(&project);
        let first = Self::start_server(&project, &store);
        Self {
            token: first.token(),
            servers: vec![first],
            project,
            store,
        }
    }

    /// Runs a test with a store in a file, and with one in PostgreSQL if there is one.
    async fn with_each_store(test: impl AsyncFn(Self)) {
        test(Self::new(|project| {
            let file = project.path_outside("store").join("live.db");
            file.to_str().unwrap().to_owned()
        }))
        .await;
        if let Some(postgres) = TestPostgres::shared() {
            test(Self::new(|_| postgres.new_database())).await;
        }
    }

    fn start_server(project: &TestProject, store: &str) -> Server {
        let log = ["--log", "info"];
        Server::start(
            project,
            &[&["--live", "--store", store, "--lease", "1"][..], &log].concat(),
        )
    }

    /// Starts another server, and returns its index.
    fn add_server(&mut self) -> usize {
        self.servers
            .push(Self::start_server(&self.project, &self.store));
        self.servers.len() - 1
    }

    async fn connect(&self, server: usize) -> AgentConnection {
        connect_client(self.servers[server].plain_url(), self.token.clone()).await
    }

    fn cwd(&self) -> &Path {
        self.project.path()
    }

    async fn open(&self, agent: &AgentConnection) -> ClientSession {
        let session = agent.new_session(SessionSetup::new(self.cwd()));
        within_timeout(session).await.unwrap()
    }

    async fn load(&self, agent: &AgentConnection, id: &SessionId) -> ClientSession {
        let session = agent.load_session(id, SessionSetup::new(self.cwd()));
        within_timeout(session).await.unwrap()
    }
}

/// Runs a command in a session, and asserts that the turn ends.
async fn run(session: &ClientSession, command: &str) {
    let turn = within_timeout(session.prompt(format!("/run {command}")));
    assert_eq!(turn.await.unwrap(), StopReason::EndTurn);
}

/// Waits until the thread of a session contains some text.
async fn wait_for_text(session: &ClientSession, text: &str) {
    within_timeout(async {
        let mut seen = 0;
        while !thread_debug_text(session).contains(text) {
            seen = session.thread().changed(seen).await;
            // Nothing changes any more once the connection has ended.
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_server_takes_any_client_and_continues_after_a_kill() {
    Fleet::with_each_store(async |mut fleet| {
        fleet.add_server();
        let first = fleet.connect(0).await;
        let own = fleet.open(&first).await;
        let id = own.id().clone();
        run(&own, "echo one $((10 + 1))").await;
        // A client of the other server gets the past, and then what happens.
        let second = fleet.connect(1).await;
        let shared = fleet.load(&second, &id).await;
        wait_for_text(&shared, "one 11").await;
        run(&own, "echo two $((20 + 2))").await;
        wait_for_text(&shared, "two 22").await;
        // It can prompt, too.
        run(&shared, "echo three $((30 + 3))").await;
        wait_for_text(&own, "three 33").await;
        // The owner dies. The client of the other server notices nothing but a pause.
        fleet.servers[0].signal(Signal::KILL);
        run(&shared, "echo four $((40 + 4))").await;
        let text = thread_debug_text(&shared);
        for part in ["one 11", "two 22", "three 33", "four 44"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Whoever comes later sees the same.
        let third = fleet.connect(1).await;
        let later = fleet.load(&third, &id).await;
        wait_for_text(&later, "four 44").await;
        let server = fleet.add_server();
        let fourth = fleet.connect(server).await;
        let elsewhere = fleet.load(&fourth, &id).await;
        wait_for_text(&elsewhere, "one 11").await;
        run(&elsewhere, "echo five $((50 + 5))").await;
        wait_for_text(&shared, "five 55").await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn script_goes_on_with_its_cursor_on_another_server() {
    Fleet::with_each_store(async |mut fleet| {
        fleet.add_server();
        let first = fleet.connect(0).await;
        let own = fleet.open(&first).await;
        run(&own, "echo one $((10 + 1))").await;
        fleet.project.write_file("token", fleet.token.expose());
        let watch = |server: usize, options: &str| {
            let (id, url) = (own.id(), fleet.servers[server].plain_url());
            WatchingScript::start_with(
                &fleet.project,
                &format!("{id} --url {url} --token-file token {options}"),
            )
        };
        // The second server passes on what the first one sends.
        let mut script = watch(1, "");
        let mut messages = script.read_until(is_method("_live/status"));
        run(&own, "echo two $((20 + 2))").await;
        messages.extend(script.read_until(is_method("_live/turn_ended")));
        drop(script);
        let all = history(&messages);
        fleet.servers[0].signal(Signal::KILL);
        for (read, last) in messages.iter().enumerate() {
            let cursor = last["cursor"].as_str().unwrap();
            let mut again = watch(1, &format!("--since {cursor}"));
            let rest = again.read_until(is_method("_live/status"));
            let both = messages[..=read].iter().chain(&rest);
            let both = history(both);
            assert_eq!(&both[..all.len()], all, "after {last}: {rest:#?}");
            // The agent of the other server says which commands it has.
            let mut new = both[all.len()..].iter();
            assert!(new.all(|(kind, _)| kind == "available_commands_update"));
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_do_not_get_the_password_and_the_token() {
    let project = TestProject::new();
    let store = project.path_outside("store").join("live.db");
    let mut command = project.acp_command(&["serve", "--listen", "127.0.0.1:0", "--live"]);
    command
        .args(["--store", store.to_str().unwrap()])
        .env("ACP_STORE_PASSWORD", "the password")
        .env("ACP_SERVE_TOKEN", "the-token-of-the-server");
    let server = Server::from_command(command, 1);
    let token = Token::new("the-token-of-the-server").unwrap();
    let agent = connect_client(server.url(), token).await;
    let session = agent.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    run(&session, "env; echo the end").await;
    let text = thread_debug_text(&session);
    assert!(text.contains("the end") && text.contains("PATH="), "{text}");
    assert!(!text.contains("the password"), "{text}");
    assert!(!text.contains("the-token"), "{text}");
}

#[test]
fn stores_are_shown_migrated_and_copied() {
    let project = TestProject::new();
    let file = project.path_outside("store").join("live.db");
    let file = file.to_str().unwrap();
    let server = Server::start(&project, &["--live", "--store", file]);
    project
        .run_shell(&format!(
            "acp run --url '{}' '/read notes.txt'",
            server.url()
        ))
        .expect_code(0);
    let servers = [
        "version: 2\n",
        "sessions: 1 (1 live)\n",
        "servers: 1\n",
        "  ws://127.0.0.1:",
    ];
    project
        .run_shell(&format!("acp store status {file}"))
        .expect_code(0)
        .expect_stdout(&servers);
    server.stop();
    project
        .run_shell(&format!("acp store status {file}"))
        .expect_stdout(&["sessions: 1 (0 live)\n", "servers: 0\n"]);
    for (line, error) in [
        ("acp store status missing.db", "missing.db: not found"),
        ("acp store migrate live.db", "a file needs no migration"),
        (
            "acp store status mysql://host/db",
            "unknown kind of store: mysql",
        ),
    ] {
        project.run_shell(line).expect_code(2).expect_stderr(error);
    }
    project
        .run_shell("acp store status postgres://acp:secret@127.0.0.1:1/acp")
        .expect_code(1)
        .expect_stderr("store postgres://acp@127.0.0.1:1/acp: cannot reach the store");
    let Some(postgres) = TestPostgres::shared() else {
        return;
    };
    let url = postgres.new_database();
    for expected in [
        [
            "created the tables of the store, version 2\n",
            "created the tables of the store of the bundled agent, version 1\n",
        ],
        [
            "the store has version 2 already\n",
            "the store of the bundled agent has version 1 already\n",
        ],
    ] {
        project
            .run_shell(&format!("acp store migrate '{url}'"))
            .expect_code(0)
            .expect_stdout(&expected);
    }
    project
        .run_shell(&format!("acp store status '{url}'"))
        .expect_code(0)
        .expect_stdout(&["sessions of the bundled agent: 0 (version 1)\n"]);
    for (copied, skipped) in [(1, 0), (0, 1)] {
        let expected = format!("copied {copied} sessions; {skipped} were there already");
        project
            .run_shell(&format!("acp store import {file} '{url}'"))
            .expect_code(0)
            .expect_stdout(&[&expected]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_survive_a_restart_by_default_but_only_for_the_same_agent_and_directory() {
    let project = TestProject::new();
    let other = project.path_outside("other");
    let other = other.to_str().unwrap();
    // An agent that stores nothing by itself.
    let agent = ["--", ACP, "agent", "--sessions", "none"];
    let first = Server::start(&project, &[&["--live"], &agent[..]].concat());
    let token = first.token();
    let client = connect_client(first.plain_url(), token.clone()).await;
    let session = client.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    within_timeout(session.prompt("/read notes.txt"))
        .await
        .unwrap();
    let id = session.id().clone();
    client.close();
    first.stop();

    let args: [(&[&str], bool); 4] = [
        (&["--live"], true),
        (&["--live", "--store", "none"], false),
        (&["--live", "--cwd", other], false),
        (&["--live", "--agent", "acp"], false),
    ];
    for (args, is_listed) in args {
        let agent = match args.contains(&"--agent") {
            true => &[],
            false => &agent[..],
        };
        let server = Server::start(&project, &[args, agent].concat());
        let mut list = project.acp_command(&["sessions", "--url", server.plain_url()]);
        let list = list.env("ACP_TOKEN", token.expose()).output().unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        assert_eq!(list.contains(id.as_str()), is_listed, "{args:?}: {list}");
        server.stop();
    }
    let server = Server::start(&project, &[&["--live"], &agent[..]].concat());
    let client = connect_client(server.plain_url(), token).await;
    let load = client.load_session(&id, SessionSetup::new(project.path()));
    let text = thread_debug_text(&within_timeout(load).await.unwrap());
    assert!(text.contains("/read notes.txt"), "{text}");
}

#[cfg(unix)]
#[test]
fn server_that_cannot_store_its_sessions_says_so_and_starts() {
    let project = TestProject::new();
    let state = project.path_outside("state");
    std::fs::create_dir(state.join("acp")).unwrap();
    std::fs::write(state.join("acp/live"), "not a directory").unwrap();
    let token = state.join("token");
    let mut command = project.acp_command(&["serve", "--live", "--listen", "127.0.0.1:0"]);
    command.env("XDG_STATE_HOME", &state);
    command.arg("--token-file").arg(token);
    let mut command = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(TimedReader::new(command.stderr.take().unwrap())).lines();
    let warning = lines.next().unwrap().unwrap();
    assert!(
        warning.starts_with("acp: warning: sessions are not stored: ")
            && warning.ends_with("; use --store FILE, or --store none"),
        "{warning}"
    );
    assert!(lines.any(|line| line.unwrap().starts_with("acp: serving ")));
    command.kill().unwrap();
    command.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn server_that_shuts_down_leaves_its_sessions_to_the_others() {
    Fleet::with_each_store(async |mut fleet| {
        fleet.add_server();
        let first = fleet.connect(0).await;
        let session = fleet.open(&first).await;
        run(&session, "echo one $((10 + 1))").await;
        let second = fleet.connect(1).await;
        let shared = fleet.load(&second, session.id()).await;
        // The lease of the first server is still valid when the second one continues.
        fleet.servers.remove(0).stop();
        run(&shared, "echo two $((20 + 2))").await;
        let text = thread_debug_text(&shared);
        assert!(text.contains("one 11") && text.contains("two 22"), "{text}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_outside_the_directories_of_a_server_is_not_opened_there() {
    let project = TestProject::new();
    let other = project.path_outside("other");
    let store = project.path_outside("store").join("live.db");
    let store = ["--live", "--store", store.to_str().unwrap()];
    let first = Server::start(&project, &store);
    let token = first.token();
    let agent = connect_client(first.plain_url(), token.clone()).await;
    let session = agent.new_session(SessionSetup::new(project.path()));
    let id = within_timeout(session).await.unwrap().id().clone();
    first.stop();
    let elsewhere = ["--cwd", other.to_str().unwrap()];
    let second = Server::start(&project, &[&store[..], &elsewhere].concat());
    let agent = connect_client(second.plain_url(), token).await;
    let load = agent.load_session(&id, SessionSetup::new(&other));
    let error = within_timeout(load).await.unwrap_err().to_string();
    assert!(error.contains("directory not allowed: `"), "{error}");
}
