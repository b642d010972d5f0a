//! Tests of `acp mcp-proxy` as a real process, started as an agent would start it. The tools run in the test process
//! itself.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp::agent::{OpenedSession, Prompt, Session, SessionSetup, Turn};
use acp::v1::{EnvVariable, McpServer, McpServerStdio, StopReason};
use acp::{Agent, Client, transport};
use acp_mcp::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use acp_mcp::rmcp::service::{RequestContext, RunningService};
use acp_mcp::rmcp::{RoleClient, RoleServer, ServerHandler, ServiceExt};
use acp_mcp::{ProxyCommand, ToolServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// The binary under test.
const ACP: &str = env!("CARGO_BIN_EXE_acp");

/// The maximum time to wait for an expected event.
const TIMEOUT: Duration = Duration::from_secs(20);

async fn with_timeout<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, work).await {
        Ok(done) => done,
        Err(_) => panic!("it does not happen that {what}"),
    }
}

/// The client's tools. The `show` tool stores the given text and returns its length.
#[derive(Clone, Default)]
struct ProxyTools(Arc<Mutex<Vec<String>>>);

impl ServerHandler for ProxyTools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let show = Tool::new("show", "Shows a text to the user", Arc::default());
        Ok(ListToolsResult::with_all_items(vec![show]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments.get("text").and_then(Value::as_str);
        let text = text.ok_or_else(|| ErrorData::invalid_params("there is no text", None))?;
        self.0.lock().unwrap().push(text.to_owned());
        let answer = ContentBlock::text(format!("shown {} bytes", text.len()));
        Ok(CallToolResult::success(vec![answer]).into())
    }
}

fn start_server(tools: &ProxyTools) -> ToolServer {
    let tools = tools.clone();
    let proxy = ProxyCommand::new(ACP, ["mcp-proxy"]).unwrap();
    ToolServer::start("editor", move || tools.clone(), proxy).unwrap()
}

fn stdio_config(server: &McpServer) -> McpServerStdio {
    match server {
        McpServer::Stdio(stdio) => stdio.clone(),
        other => panic!("not on stdio: {other:?}"),
    }
}

/// Starts an MCP server with the given configuration. Passes on nothing else from the environment.
fn spawn_proxy(told: &McpServerStdio) -> Child {
    let pipe = Stdio::piped;
    let env = told.env.iter().map(|var| (&var.name, &var.value));
    Command::new(&told.command)
        .args(&told.args)
        .env_clear()
        .envs(env)
        .stdin(pipe())
        .stdout(pipe())
        .stderr(pipe())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

/// Connects to a server in the role of the agent that started it.
async fn connect(child: &mut Child) -> RunningService<RoleClient, ()> {
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let connected = with_timeout("the server answers", ().serve((stdout, stdin))).await;
    connected.unwrap()
}

async fn call_show(agent: &RunningService<RoleClient, ()>, text: &str) -> String {
    let Value::Object(arguments) = json!({"text": text}) else {
        unreachable!();
    };
    let call = CallToolRequestParams::new("show").with_arguments(arguments);
    let result = with_timeout("the tool answers", agent.call_tool(call)).await;
    result.unwrap().content[0].as_text().unwrap().text.clone()
}

/// Waits for a proxy to exit, and returns its exit code, stdout and stderr.
async fn wait_for_exit(mut child: Child) -> (Option<i32>, String, String) {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    let status = with_timeout("the proxy ends", child.wait()).await.unwrap();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut stdout).await.unwrap();
    }
    let mut pipe = child.stderr.take().unwrap();
    pipe.read_to_string(&mut stderr).await.unwrap();
    (status.code(), stdout, stderr)
}

#[tokio::test]
async fn agent_calls_a_tool_of_the_client_process() {
    let tools = ProxyTools::default();
    let server = start_server(&tools);
    let mut child = spawn_proxy(&stdio_config(&server.mcp_server()));
    let agent = connect(&mut child).await;
    let listed = agent.list_all_tools().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].name, "show");
    assert_eq!(call_show(&agent, "hello").await, "shown 5 bytes");
    assert_eq!(*tools.0.lock().unwrap(), ["hello"]);
    // A tool's own error is the agent's to read.
    let error = agent.call_tool(CallToolRequestParams::new("show")).await;
    assert!(error.unwrap_err().to_string().contains("there is no text"));
    // More than any pipe or socket holds at once.
    let long = "x".repeat(1024 * 1024);
    assert_eq!(call_show(&agent, &long).await, "shown 1048576 bytes");
    // The agent ends, and the proxy with it.
    agent.cancel().await.unwrap();
    let (code, _, stderr) = wait_for_exit(child).await;
    assert_eq!((code, &*stderr), (Some(0), ""));
}

#[tokio::test]
async fn several_agents_share_the_tools() {
    let tools = ProxyTools::default();
    let server = start_server(&tools);
    let told = stdio_config(&server.mcp_server());
    let mut agents = Vec::new();
    for _ in 0..5 {
        let mut child = spawn_proxy(&told);
        agents.push((connect(&mut child).await, child));
    }
    for (number, (agent, _)) in agents.iter().enumerate() {
        assert_eq!(call_show(agent, &number.to_string()).await, "shown 1 bytes");
    }
    // One that is killed takes none of the others along.
    let (agent, mut child) = agents.remove(0);
    child.kill().await.unwrap();
    drop(agent);
    for (agent, _) in &agents {
        assert_eq!(call_show(agent, "after").await, "shown 5 bytes");
    }
    let shown = tools.0.lock().unwrap().join(" ");
    assert_eq!(shown, "0 1 2 3 4 after after after after");
}

#[tokio::test]
async fn proxy_exits_with_a_reason_when_the_server_stops() {
    let server = start_server(&ProxyTools::default());
    let told = stdio_config(&server.mcp_server());
    let mut child = spawn_proxy(&told);
    let agent = connect(&mut child).await;
    drop(server);
    let (code, _, stderr) = wait_for_exit(child).await;
    assert_eq!(code, Some(3));
    assert_eq!(stderr, "acp: the client closed the connection\n");
    with_timeout("the agent reads the end", agent.waiting())
        .await
        .unwrap();
    // One that comes later finds nobody.
    let (code, stdout, stderr) = wait_for_exit(spawn_proxy(&told)).await;
    assert_eq!((code, &*stdout), (Some(3), ""));
    assert!(stderr.contains("cannot connect to the client"), "{stderr}");
}

#[tokio::test]
async fn wrong_token_is_rejected_and_leaks_nothing() {
    let tools = ProxyTools::default();
    let server = start_server(&tools);
    let right = stdio_config(&server.mcp_server());
    let token = right.env[0].value.clone();
    let wrong = |value: String| {
        let mut told = right.clone();
        told.env = vec![EnvVariable::new(&right.env[0].name, value)];
        told
    };

    // As long as the right one, and nearly it.
    let last = if token.as_bytes()[63] == b'0' {
        "1"
    } else {
        "0"
    };
    let other = format!("{}{last}{}", &token[..63], &token[64..]);
    let mut child = spawn_proxy(&wrong(other));
    let mut stdin = child.stdin.take().unwrap();
    // The proxy may have ended already.
    let _ = stdin
        .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}\n")
        .await;
    let (code, stdout, stderr) = wait_for_exit(child).await;
    assert_eq!((code, &*stdout), (Some(3), ""));
    assert!(stderr.contains("wrong token"), "{stderr}");
    assert!(!stderr.contains(&token[..32]), "{stderr}");
    assert_eq!(server.rejected_connections(), 1);

    for no_token in ["", "nonsense", &token[..64]] {
        let (code, stdout, stderr) = wait_for_exit(spawn_proxy(&wrong(no_token.to_owned()))).await;
        assert_eq!((code, &*stdout), (Some(2), ""), "{no_token:?}");
        assert!(stderr.contains("ACP_MCP_TOKEN"), "{stderr}");
        assert!(!stderr.contains(&token[..32]), "{stderr}");
    }
    // These did not even try.
    assert_eq!(server.rejected_connections(), 1);

    let mut child = spawn_proxy(&right);
    let agent = connect(&mut child).await;
    assert_eq!(call_show(&agent, "hello").await, "shown 5 bytes");
}

#[tokio::test]
async fn logs_go_to_stderr_without_the_token() {
    let server = start_server(&ProxyTools::default());
    let mut told = stdio_config(&server.mcp_server());
    told.args.extend(["--log".to_owned(), "trace".to_owned()]);
    let token = told.env[0].value.clone();
    let mut child = spawn_proxy(&told);
    // Were anything else on stdout, this would not understand it.
    let agent = connect(&mut child).await;
    assert_eq!(call_show(&agent, "hello").await, "shown 5 bytes");
    agent.cancel().await.unwrap();
    let (code, _, stderr) = wait_for_exit(child).await;
    assert_eq!(code, Some(0));
    for half in [&token[..64], &token[64..]] {
        assert!(!stderr.contains(half), "{stderr}");
    }
}

#[tokio::test]
async fn invalid_endpoint_is_a_usage_error() {
    for endpoint in ["nonsense", "tcp:192.0.2.1:80", "unix:"] {
        let args = ["mcp-proxy", "--connect", endpoint].map(str::to_owned);
        let told = McpServerStdio::new("x", ACP, args.to_vec(), Vec::new());
        let (code, stdout, stderr) = wait_for_exit(spawn_proxy(&told)).await;
        assert_eq!((code, &*stdout), (Some(2), ""), "{endpoint}");
        assert!(stderr.contains("expected unix:PATH"), "{stderr}");
    }
}

/// A client whose tools are offered to every agent automatically.
struct ProxyClient {
    tools: ToolServer,
}

impl Client for ProxyClient {
    type State = ();

    fn mcp_servers(&self) -> Vec<McpServer> {
        vec![self.tools.mcp_server()]
    }
}

/// An agent that starts the configured MCP servers and shows each prompt by calling their tools.
#[derive(Default)]
struct ProxyAgent(tokio::sync::Mutex<Vec<StartedServer>>);

/// A server that the agent has started: its name, connection and process.
type StartedServer = (String, RunningService<RoleClient, ()>, Child);

impl Agent for ProxyAgent {
    type State = ();

    async fn new_session(&self, _: &Session, setup: SessionSetup) -> acp::Result<OpenedSession> {
        for server in &setup.mcp_servers {
            let told = stdio_config(server);
            let mut child = spawn_proxy(&told);
            let connected = connect(&mut child).await;
            self.0.lock().await.push((told.name, connected, child));
        }
        Ok(OpenedSession::new())
    }

    async fn prompt(&self, (): &(), turn: Turn, prompt: Prompt) -> acp::Result<StopReason> {
        for (name, server, _) in &*self.0.lock().await {
            let said = call_show(server, &prompt.text()).await;
            turn.send_message(format!("{name}: {said}")).await?;
        }
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn agent_uses_client_tools_in_a_turn() {
    let tools = ProxyTools::default();
    let client = ProxyClient {
        tools: start_server(&tools),
    };
    let (ours, theirs) = transport::memory();
    let serving = tokio::spawn(acp::agent::serve(theirs, ProxyAgent::default()));
    let agent = acp::testing::start_client(ours, client, acp::Options::new())
        .await
        .unwrap();
    let cwd = std::env::temp_dir();
    let session = with_timeout("the session opens", agent.new_session(cwd)).await;
    let session = session.unwrap();
    let turn = with_timeout("the turn ends", session.prompt("a window")).await;
    assert_eq!(turn.unwrap(), StopReason::EndTurn);
    assert_eq!(*tools.0.lock().unwrap(), ["a window"]);
    let said = session.thread().read(|thread| {
        let items = thread.items().iter();
        let said = items.filter_map(|item| match &item.kind {
            acp::thread::ItemKind::Agent(message) => Some(message.text().to_owned()),
            _ => None,
        });
        said.collect::<Vec<_>>()
    });
    assert_eq!(said, ["editor: shown 8 bytes"]);
    drop(session);
    agent.close();
    with_timeout("the agent ends", serving)
        .await
        .unwrap()
        .unwrap();
}
