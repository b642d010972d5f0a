//! Defines an agent to serve, and runs a process for each of its connections.

use std::sync::Arc;
use std::time::Duration;

use acp::Transport;
use acp_host::{AgentCommand, AgentProcess};
use acp_remote::CloseStatus;
use acp_remote::server::ConnectionInfo;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::in_flight::RequestsInFlight;
use crate::metrics::AgentCounters;
use crate::relay::{AgentRelayEnd, RelayContext, relay};
use crate::roots::AllowedRoots;

/// How long an agent may take to exit after its stdin is closed, and again after it is asked to exit.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for an agent's exit code after it has closed its stdout.
const EXIT_CODE_TIMEOUT: Duration = Duration::from_millis(500);

/// An agent to serve: a command that speaks the protocol on stdin and stdout.
#[derive(Debug, Clone)]
pub struct ServedAgent {
    pub(crate) name: String,
    command: AgentCommand,
    roots: AllowedRoots,
}

impl ServedAgent {
    /// Creates an agent. The name is the last part of its path: `/acp/NAME`.
    pub fn new(name: impl Into<String>, command: AgentCommand) -> Self {
        Self {
            name: name.into(),
            command,
            roots: AllowedRoots::any(),
        }
    }

    /// Sets the directories that clients may open. By default, they may open every directory.
    #[must_use]
    pub fn roots(mut self, roots: AllowedRoots) -> Self {
        self.roots = roots;
        self
    }
}

/// Starts and runs the processes of an agent.
#[derive(Debug)]
pub(crate) struct AgentRunner {
    pub(crate) agent: ServedAgent,
    pub(crate) counters: Arc<AgentCounters>,
    /// The maximum length of a client's message, in bytes.
    pub(crate) max_message: usize,
    /// Cancelled when the server shuts down. Each connection then ends once it has no request in flight.
    pub(crate) draining: CancellationToken,
    /// The connections of all agents.
    pub(crate) connections: TaskTracker,
}

impl AgentRunner {
    /// Runs the agent for a connection until either of them ends.
    pub(crate) async fn handle(
        self: Arc<Self>,
        info: ConnectionInfo,
        transport: Transport,
    ) -> CloseStatus {
        let span = tracing::info_span!("connection", id = info.id, agent = self.agent.name);
        let peer = info.peer.map(|peer| peer.to_string());
        let run = async {
            tracing::info!(transport = ?info.kind, http = ?info.version, peer, "connection opened");
            let status = self.run(transport).await;
            tracing::info!(%status, "connection closed");
            status
        };
        self.connections.track_future(run.instrument(span)).await
    }

    async fn run(&self, transport: Transport) -> CloseStatus {
        let stderr = |line: &str| tracing::debug!(target: "agent", "{line}");
        let process = match AgentProcess::spawn_with(&self.agent.command, stderr) {
            Ok(process) => process,
            Err(e) => {
                self.counters.processes_failed.increment();
                tracing::error!(error = %e, "cannot start the agent");
                return CloseStatus::failed(format!("cannot start the agent: {e}"));
            }
        };
        let Some(stdio) = process.take_stdio() else {
            return CloseStatus::failed("cannot open the agent's stdin and stdout");
        };
        tracing::info!(pid = process.id(), "agent started");
        let _running = RunningProcess::new(&self.counters);
        let context = RelayContext {
            roots: self.agent.roots.clone(),
            in_flight: Arc::new(RequestsInFlight::new(Arc::clone(&self.counters))),
            counters: Arc::clone(&self.counters),
            max_message: self.max_message,
        };
        let drained = async {
            self.draining.cancelled().await;
            context.in_flight.wait_until_empty().await;
        };
        let status = tokio::select! {
            biased;
            end = relay(transport, stdio, &context) => self.close_status(end, &process).await,
            () = drained => CloseStatus::new(CloseStatus::GOING_AWAY, "the server is shutting down"),
        };
        process.shutdown(EXIT_TIMEOUT).await;
        for report in process.undo_report() {
            tracing::warn!("{report}");
        }
        status
    }

    /// Returns the close status to send to the client, depending on how its connection ended.
    async fn close_status(&self, end: AgentRelayEnd, process: &AgentProcess) -> CloseStatus {
        match end {
            AgentRelayEnd::Client => CloseStatus::normal(),
            AgentRelayEnd::MessageTooLong => {
                let reason = format!("message too long (limit: {} bytes)", self.max_message);
                CloseStatus::new(CloseStatus::TOO_LARGE, reason)
            }
            AgentRelayEnd::Failed(e) => CloseStatus::failed(format!("cannot relay messages: {e}")),
            AgentRelayEnd::Agent => {
                self.counters.processes_failed.increment();
                let exit = timeout(EXIT_CODE_TIMEOUT, process.wait()).await;
                let reason = match exit {
                    Ok(exit) => format!("the agent exited: {exit}"),
                    Err(_) => "the agent closed its stdout".to_owned(),
                };
                let stderr = process.stderr_excerpt();
                tracing::warn!("{reason}{stderr}");
                CloseStatus::failed(reason)
            }
        }
    }
}

/// A guard that counts a process as running until it is dropped.
struct RunningProcess<'a>(&'a AgentCounters);

impl<'a> RunningProcess<'a> {
    fn new(counters: &'a AgentCounters) -> Self {
        counters.processes_running.increment();
        Self(counters)
    }
}

impl Drop for RunningProcess<'_> {
    fn drop(&mut self) {
        self.0.processes_running.decrement();
    }
}
