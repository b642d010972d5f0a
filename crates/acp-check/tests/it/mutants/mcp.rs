//! The MCP servers of the correct agent, which starts and initializes them.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use acp::v1::McpServer;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

/// The running MCP servers. They exit along with the agent.
#[derive(Default, Clone)]
pub(crate) struct RunningServers(Arc<Mutex<Vec<Child>>>);

impl RunningServers {
    /// Connects to the servers over stdin and stdout. Skips any server that cannot be started.
    pub(crate) async fn start_and_connect(&self, servers: &[McpServer]) {
        for server in servers {
            let McpServer::Stdio(server) = server else {
                continue;
            };
            let env = server.env.iter().map(|of| (&of.name, &of.value));
            let started = Command::new(&server.command)
                .args(&server.args)
                .envs(env)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .kill_on_drop(true)
                .spawn();
            let Ok(mut child) = started else { continue };
            let params = serde_json::json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "right", "version": "1.0.0"},
            });
            let greeting = serde_json::json!({
                "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params,
            });
            if let Some(stdin) = &mut child.stdin {
                let _ = stdin.write_all(format!("{greeting}\n").as_bytes()).await;
            }
            self.0.lock().unwrap().push(child);
        }
    }
}
