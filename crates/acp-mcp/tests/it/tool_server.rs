//! A tool server as its proxies see it: over real sockets, with the agent's end in memory.

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

use super::common::{agent, no_proxy, proxy, soon, stdio, way_to};

/// Two tools: `number` says which handler it is, `wait` waits to be let go or cancelled.
struct Tools {
    number: usize,
    state: State,
}

#[derive(Clone, Default)]
struct State {
    handlers: Arc<AtomicUsize>,
    waiting: watch::Sender<usize>,
    go: watch::Sender<bool>,
    cancelled: watch::Sender<usize>,
}

impl ServerHandler for Tools {
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

fn start(state: &State) -> ToolServer {
    let state = state.clone();
    let handlers = move || Tools {
        number: state.handlers.fetch_add(1, Ordering::Relaxed),
        state: state.clone(),
    };
    ToolServer::start("tools", handlers, no_proxy()).unwrap()
}

async fn call(agent: &RunningService<RoleClient, ()>, tool: &'static str) -> String {
    let called = agent.call_tool(CallToolRequestParams::new(tool));
    let result = soon("the tool answers", called).await.unwrap();
    result.content[0].as_text().unwrap().text.clone()
}

#[tokio::test]
async fn what_the_agent_is_told_has_the_token_in_the_environment_alone() {
    let server = start(&State::default());
    let told = stdio(&server);
    assert_eq!(told.name, "tools");
    assert_eq!(&told.args[..2], ["mcp-proxy", "--connect"]);
    assert_eq!(told.env.len(), 1);
    assert_eq!(told.env[0].name, acp_mcp::TOKEN_VAR);
    assert_eq!(told.env[0].value.len(), 128);
    assert!(!told.args.concat().contains(&told.env[0].value));
    assert!(!format!("{server:?}").contains(&told.env[0].value));
    // Another server has another token and another place.
    let other = stdio(&start(&State::default()));
    assert_ne!(told.env[0].value, other.env[0].value);
    assert_ne!(told.args, other.args);
}

#[tokio::test]
async fn each_connection_has_a_handler_of_its_own() {
    let server = start(&State::default());
    let (_first, one) = agent(&server).await;
    let (_second, two) = agent(&server).await;
    let tools = one.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["number", "wait"]);
    let mut numbers = [call(&one, "number").await, call(&two, "number").await];
    numbers.sort();
    assert_eq!(numbers, ["0", "1"]);
}

#[tokio::test]
async fn a_wrong_token_gets_nothing_and_is_counted() {
    let state = State::default();
    let server = start(&state);
    let (endpoint, _) = way_to(&server);
    let (_, others_token) = way_to(&start(&state));
    let (running, mut stdin, stdout) = proxy(endpoint, others_token);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "ping"});
    stdin
        .write_all(format!("{initialize}\n").as_bytes())
        .await
        .unwrap();
    let error = soon("the proxy ends", running).await.unwrap().unwrap_err();
    assert!(matches!(error, ProxyError::Rejected { .. }), "{error}");
    assert!(error.to_string().contains("wrong token"), "{error}");
    let mut lines = BufReader::new(stdout).lines();
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert_eq!(server.rejected_connections(), 1);
    assert_eq!(state.handlers.load(Ordering::Relaxed), 0);
    // Who knows it is served as before.
    let (_running, agent) = agent(&server).await;
    assert_eq!(call(&agent, "number").await, "0");
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_stdin_is_answered() {
    let state = State::default();
    let server = start(&state);
    let (endpoint, token) = way_to(&server);
    let (running, mut stdin, stdout) = proxy(endpoint, token);
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
    soon("the call begins", waiting.wait_for(|waiting| *waiting == 1))
        .await
        .unwrap();
    state.go.send_replace(true);
    soon("the proxy ends", running).await.unwrap().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let mut answers = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        answers.push(serde_json::from_str::<Value>(&line).unwrap());
    }
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert_eq!(answers[1]["result"]["content"][0]["text"], "done");
}

#[tokio::test]
async fn dropping_the_server_ends_its_connections_and_tells_calls() {
    let state = State::default();
    let server = start(&state);
    let (endpoint, token) = way_to(&server);
    let (idle, _idle_agent) = agent(&server).await;
    let (busy, busy_agent) = agent(&server).await;
    let calling = tokio::spawn(async move { call(&busy_agent, "wait").await });
    let mut waiting = state.waiting.subscribe();
    soon("the call begins", waiting.wait_for(|waiting| *waiting == 1))
        .await
        .unwrap();
    drop(server);
    let mut cancelled = state.cancelled.subscribe();
    soon("the call is told", cancelled.wait_for(|count| *count == 1))
        .await
        .unwrap();
    for running in [idle, busy] {
        let ended = soon("the proxy ends", running).await.unwrap();
        assert!(matches!(ended, Err(ProxyError::Closed)), "{ended:?}");
    }
    calling.abort();
    let (running, _stdin, _stdout) = proxy(endpoint, token);
    let ended = soon("the proxy ends", running).await.unwrap();
    assert!(
        matches!(ended, Err(ProxyError::Connect { .. })),
        "{ended:?}"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn only_its_user_gets_to_the_socket_and_it_goes_with_the_server() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};

    let server = start(&State::default());
    let endpoint = way_to(&server).0.to_string();
    let socket = std::path::PathBuf::from(endpoint.strip_prefix("unix:").unwrap());
    let directory = socket.parent().unwrap();
    let mode = std::fs::metadata(directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
    drop(server);
    assert!(!directory.exists());
}

#[tokio::test]
async fn so_many_connections_and_no_more() {
    const CONNECTIONS: usize = 64;
    let server = start(&State::default());
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        open.push(agent(&server).await);
    }
    let (endpoint, token) = way_to(&server);
    let (running, _stdin, _stdout) = proxy(endpoint.clone(), token.clone());
    let ended = soon("the proxy ends", running).await.unwrap();
    assert!(
        matches!(ended, Err(ProxyError::Rejected { .. })),
        "{ended:?}"
    );
    assert_eq!(server.rejected_connections(), 1);
    // One that ends makes room. That the server has seen its end is seen only by trying.
    let (running, agent_of_it) = open.pop().unwrap();
    agent_of_it.cancel().await.unwrap();
    soon("the proxy ends", running).await.unwrap().unwrap();
    let room = async {
        loop {
            let (running, stdin, stdout) = proxy(endpoint.clone(), token.clone());
            if let Ok(agent) = ().serve((stdout, stdin)).await {
                return (running, agent);
            }
        }
    };
    let (_running, agent) = soon("there is room again", room).await;
    assert!(call(&agent, "number").await.parse::<usize>().unwrap() >= CONNECTIONS);
}

#[test]
fn without_a_runtime_it_is_an_error_and_no_panic() {
    struct None;
    impl ServerHandler for None {}
    let error = ToolServer::start("tools", || None, no_proxy()).unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}
