//! Our client with the official SDKs' servers.

use acp::Thread;
use acp::client::AgentConnection;
use acp::thread::ThreadToolCallContent;
use acp::v1::StopReason;
use acp_host::Policy;
use serde_json::{Value, json};

use crate::common::server::{RemoteServer, Via};
use crate::common::typescript::TypeScriptPrograms;
use crate::common::{
    InteropClient, InteropProject, acp_program, cancel_when, error_code, item_outline,
    last_item_outline, run_prompt, wait_for_thread, with_timeout, work_updates,
};

const OFFICIAL_AGENT: &str = env!("CARGO_BIN_EXE_official-agent");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfficialServer {
    Rust,
    TypeScript,
}

/// An official server that stores sessions, and how to reach it.
struct ServerFixture {
    project: InteropProject,
    server: RemoteServer,
    via: Via,
    official: OfficialServer,
}

impl ServerFixture {
    /// Starts the server. Returns `None` if it cannot be run.
    async fn start(official: OfficialServer, via: Via) -> Option<Self> {
        let program = match official {
            OfficialServer::Rust => vec![OFFICIAL_AGENT.to_owned()],
            OfficialServer::TypeScript => {
                let programs = TypeScriptPrograms::find_installed()?;
                vec!["node".to_owned(), programs.program("official-agent.mjs")]
            }
        };
        let project = InteropProject::new();
        let store = project.file("store.json");
        let args = [
            "--listen",
            "127.0.0.1:0",
            "--store",
            store.to_str().unwrap(),
        ];
        let command: Vec<&str> = program.iter().map(String::as_str).chain(args).collect();
        let server = RemoteServer::start(&project, &command).await;
        Some(Self {
            project,
            server,
            via,
            official,
        })
    }

    fn person(&self) -> InteropClient {
        InteropClient::new(&self.project, Policy::All)
    }

    async fn connect(&self, person: &InteropClient) -> AgentConnection {
        person.connect(&self.server.url(self.via)).await
    }

    async fn completes_a_full_turn(&self) {
        let person = self.person();
        let agent = self.connect(&person).await;
        assert_eq!(agent.info().unwrap().name, "official-agent");
        let session = agent.new_session(self.project.path()).await.unwrap();
        assert_eq!(
            run_prompt(&session, "work").await.unwrap(),
            StopReason::EndTurn
        );
        assert_eq!(self.project.read_file("note.txt"), "ONE\nTWO\n");
        // Each update, once and in order. This agent has modes, and not as a config option.
        let mut expected = work_updates();
        expected.retain(|line| *line != "config_option_update");
        assert_eq!(person.outline(), expected);
        assert_eq!(person.asked.lock().unwrap().len(), 1);
        session.thread().read(|thread| {
            let read = thread.tool_call(&"read".into()).unwrap();
            assert_eq!(read.raw_output, Some(json!({"second": "two\n"})));
            let run = thread.tool_call(&"run".into()).unwrap();
            assert_eq!(run.raw_output.as_ref().unwrap()["code"], 3);
            assert_eq!(thread.title(), Some("A loud note"));
        });
        assert_eq!(agent.connection().noise(), acp::Noise::default());
    }

    /// The same with our command as the client.
    async fn acp_run_completes_a_full_turn(&self) {
        let url = self.server.url(self.via);
        let args = ["run", "--allow", "all", "--url", &url, "work"];
        let ended = self.project.run_program(acp_program(), args).await;
        ended
            .expect_code(0)
            .expect_stdout(&["First I look.", "Shout (edit)", "Done."]);
        assert_eq!(self.project.read_file("note.txt"), "ONE\nTWO\n");
    }

    async fn rejects_permission(&self) {
        let mut person = self.person();
        person.says_no = true;
        let agent = self.connect(&person).await;
        let session = agent.new_session(self.project.path()).await.unwrap();
        assert_eq!(
            run_prompt(&session, "work").await.unwrap(),
            StopReason::EndTurn
        );
        assert_eq!(self.project.read_file("note.txt"), "one\ntwo\n");
        assert_eq!(
            session.thread().read(last_item_outline),
            "agent  I was not allowed to."
        );
    }

    async fn cancels_at_every_point(&self) {
        let mut person = self.person();
        person.never_answers = true;
        let agent = self.connect(&person).await;
        let session = agent.new_session(self.project.path()).await.unwrap();
        cancel_when(&session, "wait", |thread| {
            last_item_outline(thread) == "agent waiting"
        })
        .await;
        cancel_when(&session, "wait-permission", |thread| {
            last_item_outline(thread) == "call Ask Pending"
        })
        .await;
        assert_eq!(
            session.thread().read(last_item_outline),
            "agent the question was withdrawn"
        );
        cancel_when(&session, "wait-command", |thread| {
            let call = thread.tool_call(&"run".into());
            let Some(ThreadToolCallContent::Terminal(shown)) =
                call.and_then(|call| call.content.first())
            else {
                return false;
            };
            thread
                .terminal(shown)
                .is_some_and(|terminal| terminal.output() == "started\n")
        })
        .await;
        assert_eq!(
            session.thread().read(last_item_outline),
            "agent the command was ended"
        );
        self.project.assert_command_ended();
    }

    /// The session is loaded over a connection of its own, as after a cut.
    async fn loads_a_session(&self) {
        let items =
            |thread: &Thread| -> Vec<String> { thread.items().iter().map(item_outline).collect() };
        let agent = self.connect(&self.person()).await;
        let session = agent.new_session(self.project.path()).await.unwrap();
        run_prompt(&session, "work").await.unwrap();
        let before = session.thread().read(items);
        assert_eq!(before.len(), 8);
        let id = session.id().clone();
        drop((session, agent));

        let person = self.person();
        let agent = self.connect(&person).await;
        let error = agent.load_session("nothing", self.project.path()).await;
        assert_eq!(error_code(&error.unwrap_err()), -32002);
        let session = agent.load_session(id, self.project.path()).await.unwrap();
        if (self.official, self.via) == (OfficialServer::TypeScript, Via::Http) {
            // The TypeScript SDK's server sends the response on the stream of the connection and the history on that of
            // the session. Between two streams there is no order: the end of the history may come later.
            wait_for_thread(session.thread(), |thread| {
                thread.title() == Some("A loud note") && items(thread) == before
            })
            .await;
        } else {
            assert_eq!(session.thread().read(items), before);
            let seen = person.seen.lock().unwrap();
            assert!(seen.iter().all(|(_, replay)| *replay));
        }
        run_prompt(&session, "hello").await.unwrap();
        assert_eq!(session.thread().read(last_item_outline), "agent hello");
    }

    async fn extensions_work_both_ways(&self) {
        let mut person = self.person();
        let mut told = person.listen();
        let agent = self.connect(&person).await;
        let connection = agent.connection();
        connection
            .notify_raw("_interop/told", &json!({"what": "hello"}))
            .await
            .unwrap();
        assert_eq!(
            with_timeout("it is told back", told.recv()).await.unwrap(),
            "the official agent was told hello"
        );
        let question = json!({"question": "who are you"});
        let answer = connection.request_raw("_interop/ask", &question).await;
        let answer: Value = serde_json::from_str(answer.unwrap().get()).unwrap();
        assert_eq!(
            answer,
            json!({"answer": "the official agent heard who are you"})
        );
        let session = agent.new_session(self.project.path()).await.unwrap();
        assert_eq!(
            run_prompt(&session, "ask-extension").await.unwrap(),
            StopReason::EndTurn
        );
        assert_eq!(
            with_timeout("it is told", told.recv()).await.unwrap(),
            "a turn runs"
        );
        assert_eq!(
            session.thread().read(last_item_outline),
            "agent our client heard how are you"
        );
    }

    async fn runs_sessions_concurrently(&self) {
        let agent = self.connect(&self.person()).await;
        let first = agent.new_session(self.project.path()).await.unwrap();
        let second = agent.new_session(self.project.path()).await.unwrap();
        let waiting = tokio::spawn({
            let first = first.clone();
            async move { first.prompt("wait").await }
        });
        wait_for_thread(first.thread(), |thread| {
            last_item_outline(thread) == "agent waiting"
        })
        .await;
        assert_eq!(
            run_prompt(&second, "hello").await.unwrap(),
            StopReason::EndTurn
        );
        assert_eq!(second.thread().read(last_item_outline), "agent hello");
        assert!(first.thread().read(Thread::is_running));
        first.cancel().await.unwrap();
        let ended = with_timeout("the turn ends", waiting).await.unwrap();
        assert_eq!(ended.unwrap(), StopReason::Cancelled);
    }
}

/// Declares the tests of each combination.
macro_rules! combinations {
    ($($name:ident: $via:ident, $server:ident;)*) => {$(
        mod $name {
            use super::{OfficialServer, ServerFixture, Via};

            async fn start() -> Option<ServerFixture> {
                ServerFixture::start(OfficialServer::$server, Via::$via).await
            }

            #[tokio::test]
            async fn completes_a_full_turn() {
                let Some(server) = start().await else { return };
                server.completes_a_full_turn().await;
            }

            #[tokio::test]
            async fn acp_run_completes_a_full_turn() {
                let Some(server) = start().await else { return };
                server.acp_run_completes_a_full_turn().await;
            }

            #[tokio::test]
            async fn rejects_permission() {
                let Some(server) = start().await else { return };
                server.rejects_permission().await;
            }

            #[tokio::test]
            async fn cancels_at_every_point() {
                let Some(server) = start().await else { return };
                server.cancels_at_every_point().await;
            }

            #[tokio::test]
            async fn loads_a_session() {
                let Some(server) = start().await else { return };
                server.loads_a_session().await;
            }

            #[tokio::test]
            async fn extensions_work_both_ways() {
                let Some(server) = start().await else { return };
                server.extensions_work_both_ways().await;
            }

            #[tokio::test]
            async fn runs_sessions_concurrently() {
                let Some(server) = start().await else { return };
                server.runs_sessions_concurrently().await;
            }
        }
    )*};
}

combinations! {
    websocket_to_rust: WebSocket, Rust;
    http_to_rust: Http, Rust;
    websocket_to_typescript: WebSocket, TypeScript;
    http_to_typescript: Http, TypeScript;
}
