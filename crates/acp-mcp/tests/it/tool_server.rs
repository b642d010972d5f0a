//! Tests of a tool server from the point of view of its proxies, over real sockets. The agent's end is in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acp_mcp::ToolServer;
use acp_mcp::proxy::ProxyError;
use acp_mcp::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use acp_mcp::rmcp::service::{RequestContext, RunningService};
use acp_mcp::rmcp::{RoleClient, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::watch;

use super::common::{
    connect_agent, endpoint_and_token, start_proxy, stdio_config, unused_proxy_command,
    with_timeout,
};

/// A handler with two tools: `number` returns the handler's number, and `wait` waits until it is released or cancelled.
struct ToolServerHandler {
    number: usize,
    state: ToolServerState,
}

#[derive(Clone, Default)]
struct ToolServerState {
    handlers: Arc<AtomicUsize>,
    waiting: watch::Sender<usize>,
    go: watch::Sender<bool>,
    cancelled: watch::Sender<usize>,
}

impl ServerHandler for ToolServerHandler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ["number", "wait"].map(|name| Tool::new(name, name, Arc::default()));
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = if request.name == "number" {
            self.number.to_string()
        } else {
            self.state.waiting.send_modify(|waiting| *waiting += 1);
            let mut go = self.state.go.subscribe();
            tokio::select! {
                _ = go.wait_for(|go| *go) => "done".to_owned(),
                () = cx.ct.cancelled() => {
                    self.state.cancelled.send_modify(|cancelled| *cancelled += 1);
                    "cancelled".to_owned()
                }
            }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn start_server(state: &ToolServerState) -> ToolServer {
    let state = state.clone();
    let handlers = move || ToolServerHandler {
        number: state.handlers.fetch_add(1, Ordering::Relaxed),
        state: state.clone(),
    };
    ToolServer::start("tools", handlers, unused_proxy_command()).unwrap()
}

async fn call_tool(agent: &RunningService<RoleClient, ()>, tool: &'static str) -> String {
    let called = agent.call_tool(CallToolRequestParams::new(tool));
    let result = with_timeout("the tool answers", called).await.unwrap();
    result.content[0].as_text().unwrap().text.clone()
}

#[tokio::test]
async fn token_is_passed_only_in_the_environment() {
    let server = start_server(&ToolServerState::default());
    let told = stdio_config(&server);
    assert_eq!(told.name, "tools");
    assert_eq!(&told.args[..2], ["mcp-proxy", "--connect"]);
    assert_eq!(told.env.len(), 1);
    assert_eq!(told.env[0].name, acp_mcp::TOKEN_VARIABLE);
    assert_eq!(told.env[0].value.len(), 128);
    assert!(!told.args.concat().contains(&told.env[0].value));
    assert!(!format!("{server:?}").contains(&told.env[0].value));
    // Another server has another token and another place.
    let other = stdio_config(&start_server(&ToolServerState::default()));
    assert_ne!(told.env[0].value, other.env[0].value);
    assert_ne!(told.args, other.args);
}

#[tokio::test]
async fn each_connection_gets_its_own_handler() {
    let server = start_server(&ToolServerState::default());
    let (_first, one) = connect_agent(&server).await;
    let (_second, two) = connect_agent(&server).await;
    let tools = one.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["number", "wait"]);
    let mut numbers = [
        call_tool(&one, "number").await,
        call_tool(&two, "number").await,
    ];
    numbers.sort();
    assert_eq!(numbers, ["0", "1"]);
}

#[tokio::test]
async fn wrong_token_is_rejected_and_counted() {
    let state = ToolServerState::default();
    let server = start_server(&state);
    let (endpoint, _) = endpoint_and_token(&server);
    let (_, others_token) = endpoint_and_token(&start_server(&state));
    let (running, mut stdin, stdout) = start_proxy(endpoint, others_token);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
    stdin
        .write_all(format!("{initialize}\n").as_bytes())
        .await
        .unwrap();
    let error = with_timeout("the proxy ends", running)
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(error, ProxyError::Rejected { .. }), "{error}");
    assert!(error.to_string().contains("wrong token"), "{error}");
    let mut lines = BufReader::new(stdout).lines();
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert_eq!(server.rejected_connections(), 1);
    assert_eq!(state.handlers.load(Ordering::Relaxed), 0);
    // Who knows it is served as before.
    let (_running, agent) = connect_agent(&server).await;
    assert_eq!(call_tool(&agent, "number").await, "0");
}

#[tokio::test]
async fn pending_requests_are_answered_after_stdin_closes() {
    let state = ToolServerState::default();
    let server = start_server(&state);
    let (endpoint, token) = endpoint_and_token(&server);
    let (running, mut stdin, stdout) = start_proxy(endpoint, token);
    let client = json!({"name": "test", "version": "1"});
    let initialize =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    for (id, method, params) in [
        (0, "initialize", initialize),
        (1, "tools/call", json!({"name": "wait"})),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let line = format!("{message}\n");
        stdin.write_all(line.as_bytes()).await.unwrap();
    }
    drop(stdin);
    let mut waiting = state.waiting.subscribe();
    with_timeout("the call begins", waiting.wait_for(|waiting| *waiting == 1))
        .await
        .unwrap();
    state.go.send_replace(true);
    with_timeout("the proxy ends", running)
        .await
        .unwrap()
        .unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let mut answers = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        answers.push(serde_json::from_str::<Value>(&line).unwrap());
    }
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(answers[1]["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn drop_closes_connections_and_cancels_calls() {
    let state = ToolServerState::default();
    let server = start_server(&state);
    let (endpoint, token) = endpoint_and_token(&server);
    let (idle, _idle_agent) = connect_agent(&server).await;
    let (busy, busy_agent) = connect_agent(&server).await;
    let calling = tokio::spawn(async move { call_tool(&busy_agent, "wait").await });
    let mut waiting = state.waiting.subscribe();
    with_timeout("the call begins", waiting.wait_for(|waiting| *waiting == 1))
        .await
        .unwrap();
    drop(server);
    let mut cancelled = state.cancelled.subscribe();
    with_timeout("the call is told", cancelled.wait_for(|count| *count == 1))
        .await
        .unwrap();
    for running in [idle, busy] {
        let ended = with_timeout("the proxy ends", running).await.unwrap();
        assert!(matches!(ended, Err(ProxyError::Closed)), "{ended:?}");
    }
    calling.abort();
    let (running, _stdin, _stdout) = start_proxy(endpoint, token);
    let ended = with_timeout("the proxy ends", running).await.unwrap();
    assert!(
        matches!(ended, Err(ProxyError::Connect { .. })),
        "{ended:?}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn socket_is_private_and_removed_with_the_server() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    let server = start_server(&ToolServerState::default());
    let endpoint = endpoint_and_token(&server).0.to_string();
    let socket = std::path::PathBuf::from(endpoint.strip_prefix("unix:").unwrap());
    let directory = socket.parent().unwrap();
    let mode = std::fs::metadata(directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
    drop(server);
    assert!(!directory.exists());
}

#[tokio::test]
async fn connections_are_limited() {
    const MAX_CONNECTIONS: usize = 64;
    let server = start_server(&ToolServerState::default());
    let mut open = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        open.push(connect_agent(&server).await);
    }
    let (endpoint, token) = endpoint_and_token(&server);
    let (running, _stdin, _stdout) = start_proxy(endpoint.clone(), token.clone());
    let ended = with_timeout("the proxy ends", running).await.unwrap();
    assert!(
        matches!(ended, Err(ProxyError::Rejected { .. })),
        "{ended:?}"
    );
    assert_eq!(server.rejected_connections(), 1);
    // One that ends makes room. That the server has seen its end is seen only by trying.
    let (running, agent_of_it) = open.pop().unwrap();
    agent_of_it.cancel().await.unwrap();
    with_timeout("the proxy ends", running)
        .await
        .unwrap()
        .unwrap();
    let room = async {
        loop {
            let (running, stdin, stdout) = start_proxy(endpoint.clone(), token.clone());
            if let Ok(agent) = ().serve((stdout, stdin)).await {
                return (running, agent);
            }
        }
    };
    let (_running, agent) = with_timeout("there is room again", room).await;
    assert!(call_tool(&agent, "number").await.parse::<usize>().unwrap() >= MAX_CONNECTIONS);
}

#[test]
fn start_without_a_runtime_is_an_error() {
    struct EmptyHandler;
    impl ServerHandler for EmptyHandler {}
    let error = ToolServer::start("tools", || EmptyHandler, unused_proxy_command()).unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}
