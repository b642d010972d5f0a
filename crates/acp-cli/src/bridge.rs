//! `acp bridge`: connects an agent and a client that speak different protocol versions.

use std::io::Write;
use std::time::Duration;

use acp::bridge::{Bridge, BridgeEnd, BridgeSide};
use acp::{Transport, transport};
use acp_host::AgentProcess;

use crate::args::relays::{BridgeArgs, VersionArg};
use crate::exit::CommandExit;
use crate::remote_agent::RelayedAgent;
use crate::signals::Signals;

/// How long the agent has to exit once asked to. It is asked only if it did not exit when its stdin was closed.
const EXIT_GRACE_PERIOD: Duration = Duration::from_secs(1);

/// How long to wait for an agent to exit after it has closed its stdout, so that its exit code can be reported.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) async fn run_bridge(args: BridgeArgs) -> CommandExit {
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(e) => return CommandExit::failed(format!("cannot listen for signals: {e}")),
    };
    // Whoever starts the bridge starts it in the agent's place, and has decided which variables the agent gets.
    let given = match args.env.process_environment() {
        Ok(given) => given,
        Err(exit) => return exit,
    };
    let agent = match RelayedAgent::from_args(&args.agent, &args.url, given.environment()) {
        Ok(agent) => agent,
        Err(exit) => return exit,
    };
    let process = match AgentProcess::spawn_with(&agent.command, write_to_stderr) {
        Ok(process) => process,
        Err(e) => return CommandExit::agent_failed(format!("cannot start the agent: {e}")),
    };
    let Some((stdin, stdout)) = process.take_stdio() else {
        return CommandExit::agent_failed("cannot open the agent's stdin and stdout");
    };
    let client = match transport::stdio() {
        Ok(client) => client,
        Err(e) => {
            return CommandExit::agent_failed(format!("cannot use stdin and stdout: {e}"));
        }
    };
    let bridge = match args.to {
        VersionArg::V1 => Bridge::to_v1(),
        VersionArg::V2 => Bridge::to_v2(),
    };
    let bridge = bridge.on_noise(write_to_stderr);
    let end = tokio::select! {
        end = bridge.run(client, Transport::pipes(stdout, stdin)) => Some(end),
        // Dropping the bridge closes the agent's stdin.
        _ = signals.next() => None,
    };
    let exit = match end {
        Some(end) => bridge_exit(&agent, &process, &end).await,
        None => CommandExit::CANCELLED,
    };
    tokio::select! {
        _ = process.shutdown(EXIT_GRACE_PERIOD) => {}
        _ = signals.next() => {
            process.shutdown(Duration::ZERO).await;
        }
    }
    exit
}

/// Returns the `CommandExit` that reports how the bridge ended.
async fn bridge_exit(agent: &RelayedAgent, process: &AgentProcess, end: &BridgeEnd) -> CommandExit {
    if end.first == BridgeSide::Client {
        return match &end.error {
            Some(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                CommandExit::agent_failed(format!("connection to the client failed: {e}"))
            }
            _ => CommandExit::SUCCESS,
        };
    }
    match tokio::time::timeout(EXIT_TIMEOUT, process.wait()).await {
        Ok(exit) => agent.exit(&exit),
        Err(_) => CommandExit::agent_failed(match &end.error {
            Some(e) => format!("connection to the agent failed: {e}"),
            None => "the agent closed the connection".to_owned(),
        }),
    }
}

/// Writes a line of noise, or of the agent's stderr, to stderr. Ignores errors, since stderr may be closed.
fn write_to_stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
