//! Helpers for both test modules: proxies with an in-memory agent end, and agents that are connected to them.

use std::time::Duration;

use acp::Transport;
use acp::v1::{McpServer, McpServerStdio};
use acp_mcp::proxy::{ProxyError, run_proxy_with};
use acp_mcp::rmcp::service::RunningService;
use acp_mcp::rmcp::{RoleClient, ServiceExt};
use acp_mcp::{Endpoint, LocalToken, ProxyCommand, ToolServer};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

/// The maximum time to wait for an expected event.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) async fn with_timeout<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(TIMEOUT, work).await {
        Ok(done) => done,
        Err(_) => panic!("it does not happen that {what}"),
    }
}

/// Returns a proxy command for tests that never run it.
pub(crate) fn unused_proxy_command() -> ProxyCommand {
    ProxyCommand::new("/bin/acp", ["mcp-proxy"]).unwrap()
}

pub(crate) fn stdio_config(server: &ToolServer) -> McpServerStdio {
    match server.mcp_server() {
        McpServer::Stdio(stdio) => stdio,
        other => panic!("not on stdio: {other:?}"),
    }
}

/// Returns the endpoint and token in the server's definition, which a proxy would use.
pub(crate) fn endpoint_and_token(server: &ToolServer) -> (Endpoint, LocalToken) {
    let told = stdio_config(server);
    let endpoint = told.args.last().unwrap().parse().unwrap();
    (endpoint, told.env[0].value.parse().unwrap())
}

pub(crate) type ProxyTask = JoinHandle<Result<(), ProxyError>>;

/// Starts a proxy, and returns the agent's ends of its stdin and stdout.
pub(crate) fn start_proxy(
    endpoint: Endpoint,
    token: LocalToken,
) -> (ProxyTask, DuplexStream, DuplexStream) {
    let (stdin, its_stdin) = tokio::io::duplex(64 * 1024);
    let (its_stdout, stdout) = tokio::io::duplex(64 * 1024);
    let transport = Transport::new(its_stdin, its_stdout);
    let running = tokio::spawn(async move { run_proxy_with(&endpoint, &token, transport).await });
    (running, stdin, stdout)
}

/// Connects an agent to the server through a proxy.
pub(crate) async fn connect_agent(
    server: &ToolServer,
) -> (ProxyTask, RunningService<RoleClient, ()>) {
    let (endpoint, token) = endpoint_and_token(server);
    let (running, stdin, stdout) = start_proxy(endpoint, token);
    let agent = with_timeout("the agent connects", ().serve((stdout, stdin))).await;
    (running, agent.unwrap())
}
