//! Tests of the bundled agent with the official MCP reference server, `@modelcontextprotocol/server-everything`. `acp
//! agent` calls the server's tools in a turn, over each transport that the server supports.
//!
//! The server is installed with the programs on the official TypeScript SDK. Without node, the tests are skipped with a
//! message.

use std::net::TcpListener;
use std::process::Stdio;

use crate::common::typescript::TypeScriptPrograms;
use crate::common::{InteropClient, InteropProject, acp_program, wait_for_thread, with_timeout};
use acp::agent::SessionSetup;
use acp::client::ClientSession;
use acp::thread::{ItemKind, ThreadToolCall, ThreadToolCallContent, ToolCallStatus};
use acp::v1::{McpServer, McpServerHttp, McpServerSse, McpServerStdio, StopReason};
use acp_host::Policy;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const SERVER_PROGRAM: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

/// A reference server over HTTP. Dropping the value stops the server.
struct EverythingServer {
    _process: Child,
    address: String,
}

impl EverythingServer {
    /// Starts the server, and waits until it is listening.
    async fn start(program: &str, transport: &str) -> Self {
        // This port was free a moment ago. The server cannot let the system choose one.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut process = Command::new("node")
            .args([program, transport])
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines();
        let listens = async {
            while let Some(line) = said.next_line().await.unwrap() {
                if line.contains(&format!("port {port}")) {
                    return;
                }
            }
            panic!("it has ended");
        };
        with_timeout("the server listens", listens).await;
        // Read the server's output, because a full pipe would block the server.
        tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
        Self {
            _process: process,
            address: format!("http://127.0.0.1:{port}"),
        }
    }
}

fn call_step(tool: &str, arguments: Value) -> Value {
    json!({"call": {"tool": format!("everything__{tool}"), "arguments": arguments}})
}

/// Makes `acp agent` call the server's tools, and checks the results.
async fn check_server(server: McpServer) {
    let project = InteropProject::new();
    let script = json!({"turns": [
        [
            call_step("echo", json!({"message": "hello"})),
            call_step("get-sum", json!({"a": 2, "b": 40})),
            call_step("get-tiny-image", json!({})),
            call_step("get-structured-content", json!({"location": "New York"})),
            call_step("get-resource-links", json!({"count": 2})),
            call_step("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1})),
            call_step("trigger-long-running-operation", json!({"duration": 0.4, "steps": 2})),
            {"call": {"tool": "list_resources", "arguments": {}}},
            {"call": {"tool": "read_resource", "arguments": {"uri": "demo://resource/dynamic/text/1"}}},
            {"say": "done"}
        ],
        [{"say": "It rains."}],
        [call_step("get-roots-list", json!({})), {"say": "done"}]
    ]});
    project.write_file("script.json", &script.to_string());
    let person = InteropClient::new(&project, Policy::All);
    let script = project.file("script.json");
    let agent = [
        acp_program(),
        "agent",
        "--script",
        script.to_str().unwrap(),
        "--sessions",
        "none",
    ];
    let (agent, _process) = person.start(&project, &agent).await;
    let setup = SessionSetup::new(project.path()).mcp_servers(vec![server]);
    let session = with_timeout("a session opens", agent.new_session(setup))
        .await
        .unwrap();

    let ended = with_timeout("the turn ends", session.prompt("go"))
        .await
        .unwrap();
    assert_eq!(ended, StopReason::EndTurn);
    let calls = tool_calls(&session);
    assert_eq!(calls.len(), 9, "{calls:#?}");
    for (call, shows) in calls.iter().zip([
        "Echo: hello",
        "sum of 2 and 40 is 42",
        "image/png",
        "temperature",
        "resource_link",
        "demo://resource/dynamic/text/1",
        "operation completed",
        "demo://resource/",
        "Resource 1",
    ]) {
        let shown = call_text(call);
        assert_eq!(
            call.status,
            ToolCallStatus::Completed,
            "{}: {shown}",
            call.title
        );
        assert!(
            shown.contains(shows),
            "{}: no {shows:?} in {shown}",
            call.title
        );
    }
    // The progress that the server reported was shown.
    let seen = person.seen.lock().unwrap().clone();
    assert!(
        seen.iter()
            .any(|(update, _)| update.to_string().contains("1 of 2")),
        "{seen:#?}"
    );

    wait_for_thread(session.thread(), |thread| {
        thread
            .commands()
            .iter()
            .any(|command| command.name == "everything:args-prompt")
    })
    .await;
    let ended = session.prompt("/everything:args-prompt Bern");
    assert_eq!(
        with_timeout("the turn ends", ended).await.unwrap(),
        StopReason::EndTurn
    );

    with_timeout("the turn ends", session.prompt("go"))
        .await
        .unwrap();
    let roots = self::tool_calls(&session).pop().unwrap();
    let directory = format!("file://{}", project.path().display());
    assert!(
        call_text(&roots).contains(&directory),
        "{}",
        call_text(&roots)
    );
    with_timeout("the session closes", session.close())
        .await
        .unwrap();
}

/// Returns the calls of the server's tools. If the server starts slowly, the agent also shows a tool call while it
/// waits.
fn tool_calls(session: &ClientSession) -> Vec<ThreadToolCall> {
    session.thread().read(|thread| {
        let calls = thread.items().iter().filter_map(|item| match &item.kind {
            ItemKind::ToolCall(call) if call.title != "Waiting for the MCP server `everything`" => {
                Some((**call).clone())
            }
            _ => None,
        });
        calls.collect()
    })
}

fn call_text(call: &ThreadToolCall) -> String {
    let parts = call.content.iter().filter_map(|content| match content {
        ThreadToolCallContent::Content(content) => serde_json::to_string(content).ok(),
        _ => None,
    });
    parts.collect()
}

#[tokio::test]
async fn tools_can_be_called_over_stdio() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let args = vec![programs.program(SERVER_PROGRAM), "stdio".to_owned()];
    check_server(McpServer::Stdio(McpServerStdio::new(
        "everything",
        "node",
        args,
        vec![],
    )))
    .await;
}

#[tokio::test]
async fn tools_can_be_called_over_streamable_http() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let listening =
        EverythingServer::start(&programs.program(SERVER_PROGRAM), "streamableHttp").await;
    let url = format!("{}/mcp", listening.address);
    check_server(McpServer::Http(McpServerHttp::new(
        "everything",
        url,
        vec![],
    )))
    .await;
}

#[tokio::test]
async fn tools_can_be_called_over_server_sent_events() {
    let Some(programs) = TypeScriptPrograms::find_installed() else {
        return;
    };
    let listening = EverythingServer::start(&programs.program(SERVER_PROGRAM), "sse").await;
    let url = format!("{}/sse", listening.address);
    check_server(McpServer::Sse(McpServerSse::new("everything", url, vec![]))).await;
}
