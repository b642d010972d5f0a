//! The official clients with our servers: an endpoint of the library, and `acp serve`.

use serde_json::{Value, json};

use crate::common::server::{RemoteServer, Via};
use crate::common::typescript::TypeScriptPrograms;
use crate::common::{ClientOutput, InteropProject, WORK_OUTLINE, acp_program, assert_in_order};

const OFFICIAL_CLIENT: &str = env!("CARGO_BIN_EXE_official-client");
const OUR_AGENT: &str = env!("CARGO_BIN_EXE_our-agent");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OfficialClient {
    /// Sends the token in the URL.
    Rust,
    /// Sends the token in a header.
    TypeScript,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OurServer {
    /// `our-agent` as an `AgentEndpoint`.
    Library,
    /// `our-agent` as a process behind `acp serve`.
    Serve,
}

/// A server of ours, and a client to use with it.
struct ClientFixture {
    project: InteropProject,
    client: Vec<String>,
    server: RemoteServer,
    via: Via,
    official: OfficialClient,
}

impl ClientFixture {
    /// Starts the server. Returns `None` if the client cannot be run.
    async fn start(official: OfficialClient, via: Via, server: OurServer) -> Option<Self> {
        let client = match official {
            OfficialClient::Rust => vec![OFFICIAL_CLIENT.to_owned()],
            OfficialClient::TypeScript => {
                let programs = TypeScriptPrograms::find_installed()?;
                vec!["node".to_owned(), programs.program("official-client.mjs")]
            }
        };
        let project = InteropProject::new();
        let listen = ["--listen", "127.0.0.1:0"];
        let command = match server {
            OurServer::Library => [&[OUR_AGENT], &listen[..]].concat(),
            OurServer::Serve => {
                [&[acp_program(), "serve"], &listen[..], &["--", OUR_AGENT]].concat()
            }
        };
        let server = RemoteServer::start(&project, &command).await;
        Some(Self {
            project,
            client,
            server,
            via,
            official,
        })
    }

    /// Makes the client run a turn.
    async fn run_client(&self, args: &[&str]) -> ClientOutput {
        let client: Vec<&str> = self.client.iter().map(String::as_str).collect();
        match self.official {
            OfficialClient::Rust => {
                let url = self.server.url(self.via);
                self.project.run_remote_client(&client, args, &url).await
            }
            OfficialClient::TypeScript => {
                let (url, token) = self.server.url_and_token(self.via);
                let args = [&["--token", &token], args].concat();
                self.project.run_remote_client(&client, &args, &url).await
            }
        }
    }

    /// The Rust SDK's client leaves the session's id out of the headers of its answers over HTTP. Our server accepts
    /// them: otherwise the permission would never be granted, and no file be read.
    async fn completes_a_full_turn(&self) {
        let told = self.run_client(&["work"]).await;
        assert_eq!(told.outline(), WORK_OUTLINE);
        assert_eq!(self.project.read_file("note.txt"), "ONE\nTWO\n");
        assert_eq!(
            told.one_of_type("initialized")["agentInfo"]["name"],
            "our-agent"
        );
        let second = json!({"second": "two\n"});
        assert_eq!(told.tool_call_field("read", "rawOutput"), &second);
        assert_eq!(told.tool_call_field("run", "rawOutput")["code"], 3);
    }

    async fn rejects_permission(&self) {
        let told = self.run_client(&["--reject", "work"]).await;
        told.expect_stop_reason("end_turn");
        assert_eq!(told.tool_call_field("edit", "status"), "failed");
        assert_eq!(self.project.read_file("note.txt"), "one\ntwo\n");
    }

    async fn cancels_at_every_point(&self) {
        let cancel_at = async |what, turn| {
            let told = self.run_client(&["--cancel-at", what, turn]).await;
            told.expect_stop_reason("cancelled");
            told.outline()
        };
        cancel_at("message", "wait").await;
        assert_in_order(
            &cancel_at("permission", "wait-permission").await,
            &["permission ask", "message \"the question was withdrawn\""],
        );
        let outline = cancel_at("output", "wait-command").await;
        // Over HTTP the Rust SDK's client sends answers beside its other messages: that the turn is cancelled may arrive
        // before the id of the terminal. Then the turn ends without it.
        if (self.official, self.via) != (OfficialClient::Rust, Via::Http) {
            assert_in_order(&outline, &["wait terminal-0", "release terminal-0"]);
        }
        self.project.assert_command_ended();
    }

    /// Over HTTP both clients open the stream of the session before they ask to load it. Our server sends the response
    /// there, too: it does not overtake the history.
    async fn loads_a_session(&self) {
        let told = self.run_client(&["--load", "old-1", "hello"]).await;
        assert_eq!(
            told.outline(),
            [
                "user \"what was said\"",
                "thought \"what was thought\"",
                "new call pending",
                "call call completed",
                "message \"what was answered\"",
                "loaded",
                "message \"hello\"",
                "ended end_turn",
            ]
        );
        assert_eq!(told.one_of_type("loaded")["modes"]["currentModeId"], "code");
        self.run_client(&["--load", "new-1", "hello"])
            .await
            .expect_error_code(-32002);
    }

    /// Over HTTP, extensions are on the connection's stream, and the rest of the turn is on the session's.
    async fn extensions_work_both_ways(&self) {
        let told = self.run_client(&["--extension", "ask-extension"]).await;
        assert_eq!(told.one_of_type("ended")["stopReason"], "end_turn");
        assert_eq!(
            told.one_of_type("answer")["answer"],
            "our agent heard who are you"
        );
        assert_eq!(told.one_of_type("asked")["question"], "how are you");
        let heard = told
            .all_of_type("told")
            .into_iter()
            .map(|told| &told["what"]);
        assert_eq!(
            heard.collect::<Vec<&Value>>(),
            ["our agent was told hello", "a turn runs"]
        );
        assert_in_order(
            &told.outline(),
            &["message \"the official client heard how are you\""],
        );
    }

    /// The Rust SDK's client fails as with_timeout as one of its streams ends, so our server keeps that of a closed session.
    async fn closes_a_session(&self) {
        let told = self.run_client(&["--close", "hello"]).await;
        assert_eq!(
            told.outline(),
            ["message \"hello\"", "ended end_turn", "closed"]
        );
    }
}

/// Declares the tests of each combination.
macro_rules! combinations {
    ($($name:ident: $client:ident, $via:ident, $server:ident;)*) => {$(
        mod $name {
            use super::{ClientFixture, OfficialClient, OurServer, Via};

            async fn start() -> Option<ClientFixture> {
                ClientFixture::start(OfficialClient::$client, Via::$via, OurServer::$server).await
            }

            #[tokio::test]
            async fn completes_a_full_turn() {
                let Some(client) = start().await else { return };
                client.completes_a_full_turn().await;
            }

            #[tokio::test]
            async fn rejects_permission() {
                let Some(client) = start().await else { return };
                client.rejects_permission().await;
            }

            #[tokio::test]
            async fn cancels_at_every_point() {
                let Some(client) = start().await else { return };
                client.cancels_at_every_point().await;
            }

            #[tokio::test]
            async fn loads_a_session() {
                let Some(client) = start().await else { return };
                client.loads_a_session().await;
            }

            #[tokio::test]
            async fn extensions_work_both_ways() {
                let Some(client) = start().await else { return };
                client.extensions_work_both_ways().await;
            }

            #[tokio::test]
            async fn closes_a_session() {
                let Some(client) = start().await else { return };
                client.closes_a_session().await;
            }
        }
    )*};
}

combinations! {
    rust_websocket_to_library: Rust, WebSocket, Library;
    rust_websocket_to_serve: Rust, WebSocket, Serve;
    rust_http_to_library: Rust, Http, Library;
    rust_http_to_serve: Rust, Http, Serve;
    typescript_websocket_to_library: TypeScript, WebSocket, Library;
    typescript_websocket_to_serve: TypeScript, WebSocket, Serve;
    typescript_http_to_library: TypeScript, Http, Library;
    typescript_http_to_serve: TypeScript, Http, Serve;
}
