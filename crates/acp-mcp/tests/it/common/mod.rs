//! What both need: proxies with the agent's end in memory, and agents at it.

use std::time::Duration;

use acp::Transport;
use acp::v1::{McpServer, McpServerStdio};
use acp_mcp::proxy::{ProxyError, run_with};
use acp_mcp::rmcp::service::RunningService;
use acp_mcp::rmcp::{RoleClient, ServiceExt};
use acp_mcp::{Endpoint, LocalToken, ProxyCommand, ToolServer};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

/// How long something that must happen may take.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => panic!("it does not happen that {what}"),
    }
}

/// A command that nothing here starts.
pub(crate) fn no_proxy() -> ProxyCommand {
    ProxyCommand::new("/bin/acp", ["mcp-proxy"]).unwrap()
}

pub(crate) fn stdio(server: &ToolServer) -> McpServerStdio {
    match server.mcp_server() {
        McpServer::Stdio(stdio) => stdio,
        other => panic!("not on stdio: {other:?}"),
    }
}

/// What a proxy is told of the server.
pub(crate) fn way_to(server: &ToolServer) -> (Endpoint, LocalToken) {
    let told = stdio(server);
    let endpoint = told.args.last().unwrap().parse().unwrap();
    (endpoint, told.env[0].value.parse().unwrap())
}

pub(crate) type Running = JoinHandle<Result<(), ProxyError>>;

/// A proxy with the agent's ends of its stdin and stdout.
pub(crate) fn proxy(
    endpoint: Endpoint,
    token: LocalToken,
) -> (Running, DuplexStream, DuplexStream) {
    let (stdin, its_stdin) = tokio::io::duplex(64 * 1024);
    let (its_stdout, stdout) = tokio::io::duplex(64 * 1024);
    let transport = Transport::new(its_stdin, its_stdout);
    let running = tokio::spawn(async move { run_with(&endpoint, &token, transport).await });
    (running, stdin, stdout)
}

/// An agent that is connected through a proxy.
pub(crate) async fn agent(server: &ToolServer) -> (Running, RunningService<RoleClient, ()>) {
    let (endpoint, token) = way_to(server);
    let (running, stdin, stdout) = proxy(endpoint, token);
    let agent = soon("the agent connects", ().serve((stdout, stdin))).await;
    (running, agent.unwrap())
}
