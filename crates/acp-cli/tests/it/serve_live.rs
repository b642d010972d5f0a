//! Tests of `acp serve --live`, in which several clients share sessions.

use std::future::pending;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use acp::client::{Client, ClientSession, PermissionRequest, SessionSetup};
use acp::v1::{RequestPermissionOutcome, StopReason};
use acp_remote::Token;
use acp_remote::client::{ConnectOptions, connect};

use crate::common::TestProject;
use crate::common::patient::TimedReader;
use crate::serve::{Server, connect_client, thread_debug_text, within_timeout};

/// A client whose user never answers.
pub(crate) struct SilentClient;

impl Client for SilentClient {
    type State = ();

    async fn request_permission(
        &self,
        (): &(),
        _request: PermissionRequest,
    ) -> acp::Result<RequestPermissionOutcome> {
        pending().await
    }
}

/// A process that is killed at the end of the test.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the thread of a session contains some text.
pub(crate) async fn wait_for_text(session: &ClientSession, text: &str) {
    within_timeout(async {
        let mut seen = 0;
        while !thread_debug_text(session).contains(text) {
            seen = session.thread().changed(seen).await;
        }
    })
    .await;
}

pub(crate) async fn connect_silent(server: &Server, token: Token) -> acp::client::AgentConnection {
    let options = ConnectOptions::new().token(token);
    let transport = within_timeout(connect(server.plain_url(), options)).await;
    let (handshake, driver) = acp::client::connect(transport.unwrap(), SilentClient);
    tokio::spawn(driver);
    within_timeout(handshake).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn question_of_one_client_is_answered_by_another_and_both_see_the_turn() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--live"]);
    let asker = connect_silent(&server, server.token()).await;
    let session = asker.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    let id = session.id().clone();
    let (turn, answered) = tokio::join!(
        within_timeout(session.prompt("/run echo output $((40 + 2))")),
        async {
            // The command waits for permission, which this client gives.
            let helper = connect_client(server.plain_url(), server.token()).await;
            let load = helper.load_session(&id, SessionSetup::new(project.path()));
            let shared = within_timeout(load).await.unwrap();
            wait_for_text(&shared, "output 42").await;
            shared
        }
    );
    assert_eq!(turn.unwrap(), StopReason::EndTurn);
    for session in [&session, &answered] {
        let text = thread_debug_text(session);
        assert!(text.contains("/run echo output $((40 + 2))"), "{text}");
        assert!(text.contains("output 42"), "{text}");
    }
    // One process serves both.
    let metrics = server.metrics();
    assert!(
        metrics.contains("acp_connections_open{agent=\"agent\"} 2"),
        "{metrics}"
    );
    assert!(
        metrics.contains("acp_agent_processes_running{agent=\"agent\"} 1"),
        "{metrics}"
    );
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn turn_goes_on_without_its_client_and_another_finds_its_result() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--live"]);
    let starter = connect_client(server.plain_url(), server.token()).await;
    let session = starter.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    let id = session.id().clone();
    let command = "/run touch begun; while [ ! -e go ]; do sleep 0.05; done; echo finished";
    let turn = tokio::spawn(async move { session.prompt(command).await.map(drop) });
    within_timeout(async {
        while !project.file("begun").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    starter.close();
    within_timeout(turn).await.unwrap().unwrap_err();
    let finder = connect_client(server.plain_url(), server.token()).await;
    let load = finder.load_session(&id, SessionSetup::new(project.path()));
    let found = within_timeout(load).await.unwrap();
    assert!(!project.file("go").exists());
    project.write_file("go", "");
    wait_for_text(&found, "finished").await;
    // The session is idle again, and takes the next prompt.
    let stopped = within_timeout(found.prompt("/help")).await.unwrap();
    assert_eq!(stopped, StopReason::EndTurn);
}

#[test]
fn clients_of_both_versions_take_turns_in_one_session() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--live"]);
    let url = server.url();
    let started = project
        .run_shell(&format!("acp run --url '{url}' '/read notes.txt'"))
        .expect_code(0);
    let hint = started.find_line("--resume ");
    let id = hint.split_once("--resume ").unwrap().1;
    let id = id.split_whitespace().next().unwrap();
    for version in [1, 2] {
        project
            .run_shell(&format!(
                "acp run --protocol {version} --url '{url}' --resume {id} '/run echo from version {version}'  --allow all"
            ))
            .expect_code(0)
            .expect_stdout(&[&format!("from version {version}")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_shows_a_session_and_leaves_its_questions_to_others() {
    let project = TestProject::new();
    let server = Server::start(&project, &["--live"]);
    let asker = connect_silent(&server, server.token()).await;
    let session = asker.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    let id = session.id().clone();
    within_timeout(session.prompt("/read notes.txt:1-1"))
        .await
        .unwrap();
    let watch = ["sessions", "watch", id.as_str(), "--url", server.url()];
    let mut watcher = project.acp_command(&watch);
    let mut watcher = KilledOnDrop(watcher.stdout(Stdio::piped()).spawn().unwrap());
    let stdout = TimedReader::new(watcher.0.stdout.take().unwrap());
    let mut lines = BufReader::new(stdout).lines().map(Result::unwrap);
    // The past.
    assert!(lines.any(|line| line.contains("notes.txt")));
    let (turn, ()) = tokio::join!(
        within_timeout(session.prompt("/run echo output $((40 + 2))")),
        async {
            wait_for_text(&session, "echo output").await;
            // The watcher sees what the agent waits for, and does not answer.
            let line = lines.find(|line| line.contains("echo output"));
            assert!(line.is_some());
            let helper = connect_client(server.plain_url(), server.token()).await;
            let load = helper.load_session(&id, SessionSetup::new(project.path()));
            let shared = within_timeout(load).await.unwrap();
            wait_for_text(&shared, "output 42").await;
        }
    );
    assert_eq!(turn.unwrap(), StopReason::EndTurn);
    assert!(lines.any(|line| line.contains("output 42")));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn process_that_is_not_used_ends_and_the_next_client_starts_another() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--live", "--keep", "0", "--log", "info"]);
    let agent = connect_client(server.plain_url(), server.token()).await;
    let session = agent.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    within_timeout(session.prompt("/help")).await.unwrap();
    let id = session.id().clone();
    agent.close();
    server.wait_for("the agent was not used any more");
    // The bundled agent has stored the session.
    let agent = connect_client(server.plain_url(), server.token()).await;
    let load = agent.load_session(&id, SessionSetup::new(project.path()));
    let loaded = within_timeout(load).await.unwrap();
    assert!(thread_debug_text(&loaded).contains("/help"));
    agent.close();
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_waits_for_a_running_turn_but_not_for_a_question_without_clients() {
    let project = TestProject::new();
    let mut server = Server::start(&project, &["--live", "--drain-timeout", "3600"]);
    // Nobody is left to answer the question of this session.
    let asker = connect_silent(&server, server.token()).await;
    let session = asker.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    let asking = session.clone();
    let turn = tokio::spawn(async move { asking.prompt("/run echo never").await.map(drop) });
    wait_for_text(&session, "echo never").await;
    asker.close();
    within_timeout(turn).await.unwrap().unwrap_err();
    // This turn runs.
    let runner = connect_client(server.plain_url(), server.token()).await;
    let session = runner.new_session(SessionSetup::new(project.path()));
    let session = within_timeout(session).await.unwrap();
    let command = "/run touch begun; while [ ! -e go ]; do sleep 0.05; done; echo finished";
    let turn = tokio::spawn(async move { (session.prompt(command).await, session) });
    within_timeout(async {
        while !project.file("begun").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    server.signal(rustix::process::Signal::TERM);
    server.wait_for("shutting down; waiting for 1 connection");
    project.write_file("go", "");
    let (stopped, session) = within_timeout(turn).await.unwrap();
    assert_eq!(stopped.unwrap(), StopReason::EndTurn);
    assert!(thread_debug_text(&session).contains("finished"));
    within_timeout(runner.closed()).await;
    assert_eq!(server.wait().0, Some(0));
}
