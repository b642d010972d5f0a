//! Tests of several `acp serve --live` that share a store.

use std::path::Path;

use acp::client::{AgentConnection, ClientSession, SessionSetup};
use acp::v1::{SessionId, StopReason};
use acp_remote::Token;
use rustix::process::Signal;

use self::test_server::TestPostgres;
use crate::common::TestProject;
use crate::serve::{Server, connect_client, thread_debug_text, within_timeout};

#[path = "../../../acp-server/src/store/postgres/test_server.rs"]
pub(crate) mod test_server;

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
