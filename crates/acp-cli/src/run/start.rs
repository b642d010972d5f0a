//! Starting the agent, and saying what went wrong with it.

use std::path::Path;
use std::time::Duration;

use acp::Transport;
use acp::client::AgentConnection;
use acp::jsonrpc::{self, Incoming, RequestId};
use acp_host::{AgentCommand, AgentProcess};

use crate::args::{Format, ProtocolArg};
use crate::exit::Exit;

/// How long a broken agent may take to end, so that its exit code can be told.
const ENDING: Duration = Duration::from_millis(500);

/// Starts the agent that was asked for, or the bundled one.
pub(super) fn spawn(
    command: &[String],
    cwd: &Path,
    protocol: ProtocolArg,
) -> Result<AgentProcess, Exit> {
    let command = match command.split_first() {
        Some((program, args)) => AgentCommand::new(program).args(args),
        None => {
            let this = std::env::current_exe()
                .map_err(|e| Exit::broken(format!("cannot find this program: {e}")))?;
            let protocol = format!("--protocol={}", protocol.protocol);
            AgentCommand::new(this).args(["agent", &protocol])
        }
    };
    let log = |line: &str| tracing::debug!(target: "agent", "{line}");
    AgentProcess::spawn_with(&command.cwd(cwd), log)
        .map_err(|e| Exit::broken(format!("the agent could not be started: {e}")))
}

/// The way to the agent. With `--format json` every message that comes along it is printed.
pub(super) fn transport(process: &AgentProcess, format: Format) -> Result<Transport, Exit> {
    let (stdin, stdout) = process
        .take_stdio()
        .ok_or_else(|| Exit::broken("the agent has no stdin and stdout"))?;
    let transport = Transport::new(stdout, stdin);
    if format != Format::Json {
        return Ok(transport);
    }
    Ok(transport.inspect(|line| {
        // The answer to `initialize`, the first request there is, is not about the session.
        let about_session = match jsonrpc::parse(line) {
            Ok(Incoming::Response { id, .. }) => id != RequestId::Number(0),
            Ok(_) => true,
            Err(_) => false,
        };
        if about_session {
            // Printed in one piece. When nobody reads it any more, the turn goes on and is seen in
            // the exit code.
            let mut bytes = Vec::with_capacity(line.len() + 1);
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
            super::print(&bytes);
        }
    }))
}

/// The agent is gone, or talks what nobody understands.
pub(super) async fn broken(process: &AgentProcess, error: &acp::Error) -> Exit {
    let ended = tokio::time::timeout(ENDING, process.wait()).await;
    let mut message = match (error, ended) {
        (acp::Error::Closed(_), Ok(exit)) => format!("the agent ended: {exit}"),
        (acp::Error::Closed(reason), Err(_)) => format!("the agent broke the connection: {reason}"),
        (error, _) => error.to_string(),
    };
    message.push_str(&tail(process));
    Exit::broken(message)
}

/// The end of what the agent printed to stderr, as the end of a message.
pub(super) fn tail(process: &AgentProcess) -> String {
    const LINES: usize = 20;
    let tail = process.stderr_tail();
    let tail = tail.trim_end();
    if tail.is_empty() {
        return String::new();
    }
    let lines: Vec<&str> = tail.lines().collect();
    let last = lines
        .get(lines.len().saturating_sub(LINES)..)
        .unwrap_or_default();
    let mut text = String::from("\nthe last it printed to stderr:");
    for line in last {
        text.push_str("\n  ");
        text.extend(line.chars().filter(|c| !c.is_control() || *c == '\t'));
    }
    text
}

/// What one can do about `auth_required`.
pub(super) fn how_to_authenticate(agent: &AgentConnection, error: &acp::Error) -> acp::Error {
    let mut message = match error {
        acp::Error::Rpc(error) => error.message.clone(),
        error => error.to_string(),
    };
    let methods: Vec<String> = agent
        .auth_methods()
        .iter()
        .filter_map(|method| method.id_and_name())
        .map(|(id, name)| format!("{name} ({id})"))
        .collect();
    if methods.is_empty() {
        message.push_str(
            "; it names no way to authenticate: log in with the agent's own command first",
        );
    } else {
        message.push_str("; log in with the agent's own command first; it knows: ");
        message.push_str(&methods.join(", "));
    }
    acp::Error::Rpc(jsonrpc::Error::new(jsonrpc::Error::AUTH_REQUIRED, message))
}
