//! Defines an agent to serve, and runs a process for each of its connections.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acp::Transport;
use acp_host::{AgentCommand, AgentProcess};
use acp_remote::CloseStatus;
use acp_remote::server::TokenUser;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument, Span};

use crate::in_flight::RequestsInFlight;
use crate::live::{LiveProcess, serve_client};
use crate::metrics::AgentCounters;
use crate::node::StoreNode;
use crate::relay::{AgentRelayEnd, RelayContext, relay};
use crate::roots::AllowedRoots;
use crate::usage::ServerUsage;
use crate::users::{AuditLog, Scope, User, Users};

/// How long an agent may take to exit after its stdin is closed, and again after it is asked to exit.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait for an agent's exit code after it has closed its stdout.
const EXIT_CODE_TIMEOUT: Duration = Duration::from_millis(500);

/// Why a user is disconnected.
const TOKEN_CHANGED: &str = "permission denied: the user's token was changed or removed";

/// An agent to serve: a command that speaks the protocol on stdin and stdout.
#[derive(Debug, Clone)]
pub struct ServedAgent {
    pub(crate) name: String,
    command: AgentCommand,
    roots: AllowedRoots,
    /// How long the process of a live agent stays when it is not used. `None` if each connection has its own process.
    keep: Option<Duration>,
    /// What clients of a live agent are told about the options that it was started with.
    pub(crate) settings: Option<String>,
    /// Whether all clients belong to one user, who has also started the agent.
    pub(crate) is_private: bool,
    /// The users with tokens of their own.
    pub(crate) users: Option<Arc<Users>>,
    /// Where it is recorded what clients of a live agent do.
    pub(crate) audit: Option<Arc<AuditLog>>,
}

impl ServedAgent {
    /// Creates an agent. The name is the last part of its path: `/acp/NAME`.
    pub fn new(name: impl Into<String>, command: AgentCommand) -> Self {
        Self {
            name: name.into(),
            command,
            roots: AllowedRoots::any(),
            keep: None,
            settings: None,
            is_private: false,
            users: None,
            audit: None,
        }
    }

    /// Returns the name of the agent.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Shares one process of the agent among all connections, which can then share its sessions. When no client is
    /// connected, no turn is running and no question is open for the time `keep`, the process ends.
    #[must_use]
    pub fn live(mut self, keep: Duration) -> Self {
        self.keep = Some(keep);
        self
    }

    /// Returns how long the process of a live agent stays when it is not used.
    pub(crate) fn keep(&self) -> Option<Duration> {
        self.keep
    }

    /// Returns `true` if connections share one process.
    pub(crate) fn is_live(&self) -> bool {
        self.keep.is_some()
    }

    /// Sets what clients of a live agent are told about the options that it was started with.
    #[must_use]
    pub fn settings(mut self, settings: impl Into<String>) -> Self {
        self.settings = Some(settings.into());
        self
    }

    /// Makes a live agent private to one user. Clients are told the end of the agent's stderr if it fails, and may stop
    /// it.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.is_private = true;
        self
    }

    /// Sets the users with tokens of their own. The server's configuration must have them, too.
    #[must_use]
    pub fn users(mut self, users: Arc<Users>) -> Self {
        self.users = Some(users);
        self
    }

    /// Records what clients of a live agent do.
    #[must_use]
    pub fn audit(mut self, log: Arc<AuditLog>) -> Self {
        self.audit = Some(log);
        self
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
    /// The process that all connections share, if they do.
    pub(crate) live: LiveProcess,
    pub(crate) counters: Arc<AgentCounters>,
    /// The maximum length of a client's message, in bytes.
    pub(crate) max_message: usize,
    /// The maximum number of connections on a Unix-domain socket.
    #[cfg_attr(not(unix), allow(dead_code))]
    pub(crate) max_connections: usize,
    /// Cancelled when the server shuts down. Each connection then ends once it has no request in flight.
    pub(crate) draining: CancellationToken,
    /// The connections of all agents.
    pub(crate) connections: TaskTracker,
    pub(crate) usage: ServerUsage,
    /// The server's node, if live sessions are stored.
    pub(crate) node: OnceLock<Arc<StoreNode>>,
}

impl AgentRunner {
    /// Runs the agent for a connection until either of them ends. `span` describes the connection, `user` is who has
    /// opened it.
    pub(crate) async fn handle(
        self: Arc<Self>,
        span: Span,
        user: TokenUser,
        transport: Transport,
    ) -> CloseStatus {
        let _used = self.usage.begin();
        let run = async {
            let status = match user {
                TokenUser::Owner => self.serve(None, transport).await,
                TokenUser::Named(name) => self.serve_user(&name, transport).await,
            };
            tracing::info!(%status, "connection closed");
            status
        };
        self.connections.track_future(run.instrument(span)).await
    }

    async fn serve(
        self: &Arc<Self>,
        user: Option<&Arc<User>>,
        transport: Transport,
    ) -> CloseStatus {
        match self.agent.keep {
            Some(keep) => serve_client(self, keep, user, transport).await,
            None => self.run(user.map(|user| &**user), transport).await,
        }
    }

    /// Serves a user with a token of their own.
    async fn serve_user(self: &Arc<Self>, name: &str, transport: Transport) -> CloseStatus {
        let denied = |reason: &str| CloseStatus::new(CloseStatus::POLICY_VIOLATION, reason);
        let Some(users) = &self.agent.users else {
            return denied("permission denied: this agent has no users");
        };
        let Some(user) = users.named(name) else {
            return denied(TOKEN_CHANGED);
        };
        let may_use_alone = user.can(Scope::Prompt) && user.can(Scope::Answer);
        if !self.agent.is_live() && !may_use_alone {
            return denied("permission denied: this agent needs the scopes `prompt` and `answer`");
        }
        let Some(_connection) = users.begin_connection(&user) else {
            let reason = format!("too many connections of user {name}");
            return CloseStatus::new(CloseStatus::TRY_AGAIN_LATER, reason);
        };
        self.serve(Some(&user), transport).await
    }

    /// Completes when a user must be disconnected, since the token was changed or removed.
    pub(crate) async fn revoked(&self, user: Option<&User>) -> CloseStatus {
        match (&self.agent.users, user) {
            (Some(users), Some(user)) => users.revoked(user).await,
            _ => std::future::pending().await,
        }
        CloseStatus::new(CloseStatus::POLICY_VIOLATION, TOKEN_CHANGED)
    }

    /// Returns the server's node, if live sessions are stored.
    pub(crate) fn node(&self) -> Option<&Arc<StoreNode>> {
        self.node.get()
    }

    /// Starts a process of the agent.
    pub(crate) fn spawn(&self) -> Result<(AgentProcess, (ChildStdin, ChildStdout)), CloseStatus> {
        let stderr = |line: &str| tracing::debug!(target: "agent", "{line}");
        let process = match AgentProcess::spawn_with(&self.agent.command, stderr) {
            Ok(process) => process,
            Err(e) => {
                self.counters.processes_failed.increment();
                tracing::error!(error = %e, "cannot start the agent");
                return Err(CloseStatus::failed(format!("cannot start the agent: {e}")));
            }
        };
        let Some(stdio) = process.take_stdio() else {
            return Err(CloseStatus::failed(
                "cannot open the agent's stdin and stdout",
            ));
        };
        tracing::info!(pid = process.id(), "agent started");
        Ok((process, stdio))
    }

    /// Returns the directories that clients may open.
    pub(crate) fn roots(&self) -> &AllowedRoots {
        &self.agent.roots
    }

    /// Counts a process as running until the guard is dropped.
    pub(crate) fn count_running(&self) -> ProcessCount<'_> {
        ProcessCount::new(&self.counters)
    }

    /// Ends a process of the agent.
    pub(crate) async fn shut_down(&self, process: &AgentProcess) {
        process.shutdown(EXIT_TIMEOUT).await;
        for report in process.undo_report() {
            tracing::warn!("{report}");
        }
    }

    async fn run(&self, user: Option<&User>, transport: Transport) -> CloseStatus {
        let (process, stdio) = match self.spawn() {
            Ok(started) => started,
            Err(status) => return status,
        };
        let _running = ProcessCount::new(&self.counters);
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
            status = self.revoked(user) => status,
            () = drained => CloseStatus::new(CloseStatus::GOING_AWAY, "the server is shutting down"),
        };
        self.shut_down(&process).await;
        status
    }

    /// Returns the close status to send to the client, depending on how its connection ended.
    async fn close_status(&self, end: AgentRelayEnd, process: &AgentProcess) -> CloseStatus {
        match end {
            AgentRelayEnd::Client => CloseStatus::normal(),
            AgentRelayEnd::MessageTooLong => message_too_long(self.max_message),
            AgentRelayEnd::Failed(e) => CloseStatus::failed(format!("cannot relay messages: {e}")),
            AgentRelayEnd::Agent => self.exit_status(process).await,
        }
    }

    /// Returns the close status to send to clients after the agent has closed its stdout.
    pub(crate) async fn exit_status(&self, process: &AgentProcess) -> CloseStatus {
        self.counters.processes_failed.increment();
        let exit = timeout(EXIT_CODE_TIMEOUT, process.wait()).await;
        let reason = match exit {
            Ok(exit) => format!("the agent exited: {exit}"),
            Err(_) => "the agent closed its stdout".to_owned(),
        };
        let stderr = process.stderr_excerpt();
        tracing::warn!("{reason}{stderr}");
        CloseStatus::failed(match self.agent.is_private {
            true => format!("{reason}{stderr}"),
            false => reason,
        })
    }
}

/// Returns the close status for a client that has sent a message that is too long.
pub(crate) fn message_too_long(limit: usize) -> CloseStatus {
    let reason = format!("message too long (limit: {limit} bytes)");
    CloseStatus::new(CloseStatus::TOO_LARGE, reason)
}

/// A guard that counts a process as running until it is dropped.
pub(crate) struct ProcessCount<'a>(&'a AgentCounters);

impl<'a> ProcessCount<'a> {
    fn new(counters: &'a AgentCounters) -> Self {
        counters.processes_running.increment();
        Self(counters)
    }
}

impl Drop for ProcessCount<'_> {
    fn drop(&mut self) {
        self.0.processes_running.decrement();
    }
}
