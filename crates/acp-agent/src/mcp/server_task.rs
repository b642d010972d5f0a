//! The task of an MCP server, which connects to the server, listens for changes, and reconnects after a loss. Each
//! server has a task of its own, so that no server has to wait for another.

use std::sync::Arc;
use std::time::Duration;

use acp::agent::Session;
use acp::v1::McpServer;
use rmcp::RoleClient;
use rmcp::service::RunningService;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::connect::{McpProcess, connect};
use super::failure::ConnectFailure;
use super::handler::{ConnectionLoss, McpClientHandler, McpConnectionState};
use super::limits::McpLimits;
use super::listing::{McpListing, list_server};
use super::state::{McpServerChannel, McpServerState};

/// The time limit for listing a server's tools and prompts again.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit for closing a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of restarts of a local server in a session. The limit exists because a server may keep exiting on
/// the same input, and each start may involve a download.
const MAX_RESTARTS: u32 = 3;

/// The maximum number of consecutive automatic attempts to reconnect to a remote server. After that, the connection is
/// retried with each prompt.
const MAX_ATTEMPTS: u32 = 5;

/// How long a connection must last before the attempt counter is reset.
const STABLE_AFTER: Duration = Duration::from_secs(60);

/// The task of an MCP server, with the data it needs.
pub(super) struct McpServerTask {
    pub(super) name: String,
    pub(super) key: String,
    pub(super) definition: McpServer,
    pub(super) session: Session,
    pub(super) limits: McpLimits,
    pub(super) channel: Arc<McpServerChannel>,
    pub(super) states: watch::Sender<McpServerState>,
    pub(super) changes: watch::Sender<u64>,
}

/// A connection that was lost or could not be established.
struct LostConnection {
    failure: ConnectFailure,
    /// How long the connection lasted. `None` if it could not be established.
    lifetime: Option<Duration>,
    /// Whether only the server's MCP session has ended. If so, the user is not told unless reconnecting fails.
    has_expired: bool,
    process: McpProcess,
}

impl McpServerTask {
    pub(super) async fn run(self, stopped: watch::Receiver<bool>) {
        let local = matches!(self.definition, McpServer::Stdio(_));
        let mut tries = RetryState::new(local, self.limits.retry);
        while let Some(gone) = self.run_connection(&stopped).await {
            let next = tries.next(&gone);
            self.set_lost(&gone, &next, tries.was_connected);
            gone.process.shutdown().await;
            let needed = self.channel.retry_needed.notified();
            match next {
                RetryPlan::After(wait) => tokio::select! {
                    () = wait_until_stopped(stopped.clone()) => return,
                    () = sleep(wait) => {}
                    () = needed => {}
                },
                RetryPlan::WhenNeeded => tokio::select! {
                    () = wait_until_stopped(stopped.clone()) => return,
                    () = needed => {}
                },
                RetryPlan::Never => return,
            }
        }
    }

    /// Runs one connection from start to end. Returns `None` if the server was shut down on request.
    async fn run_connection(&self, stopped: &watch::Receiver<bool>) -> Option<LostConnection> {
        let shared = Arc::new(McpConnectionState::new());
        let mut process = McpProcess::default();
        let begun = tokio::select! {
            // Stop at once, because there is no connection yet that should be closed properly.
            () = wait_until_stopped(stopped.clone()) => return None,
            begun = self.connect(&shared, &mut process) => begun,
        };
        let (running, ready) = match begun {
            Ok(begun) => begun,
            Err(mut failure) => {
                failure.why.push_str(&process.describe_exit().await);
                return Some(LostConnection {
                    failure,
                    lifetime: None,
                    has_expired: false,
                    process,
                });
            }
        };
        let since = Instant::now();
        let peer = ready.peer.clone();
        self.set_ready(ready);
        let close = running.cancellation_token();
        let ended = running.waiting();
        tokio::pin!(ended);
        let loss = loop {
            let changed = tokio::select! {
                () = wait_until_stopped(stopped.clone()) => break None,
                loss = shared.wait_until_lost() => break Some(loss),
                _ = &mut ended => break Some(self.handle_unexpected_end(&shared, &process).await),
                () = shared.changed.notified() => timeout(LIST_TIMEOUT, list_server(&self.name, &peer, &shared)),
            };
            tokio::select! {
                () = wait_until_stopped(stopped.clone()) => break None,
                loss = shared.wait_until_lost() => break Some(loss),
                _ = &mut ended => break Some(self.handle_unexpected_end(&shared, &process).await),
                listed = changed => match listed {
                    Ok(Ok(ready)) => self.set_ready(ready),
                    Ok(Err(why)) => tracing::warn!(server = self.name, why, "cannot refresh an MCP server's tools and prompts"),
                    Err(_) => tracing::warn!(server = self.name, "cannot list an MCP server's tools"),
                },
            }
        };
        close.cancel();
        let Some(loss) = loss else {
            if timeout(CLOSE_TIMEOUT, ended).await.is_err() {
                tracing::debug!(
                    server = self.name,
                    "cannot close the connection to an MCP server"
                );
            }
            process.shutdown().await;
            return None;
        };
        Some(LostConnection {
            failure: ConnectFailure::temporary(&*loss.why),
            lifetime: Some(since.elapsed()),
            has_expired: loss.has_expired,
            process,
        })
    }

    /// Connects to the server and lists its tools and prompts, within the time limit.
    async fn connect(
        &self,
        shared: &Arc<McpConnectionState>,
        process: &mut McpProcess,
    ) -> Result<(RunningService<RoleClient, McpClientHandler>, McpListing), ConnectFailure> {
        let start = self.limits.start;
        let deadline = Instant::now() + start;
        let late = |what| {
            ConnectFailure::temporary(format!(
                "Timed out: it did not {what} within {} s.",
                start.as_secs_f32()
            ))
        };
        let (session, name, key) = (self.session.clone(), self.name.clone(), self.key.clone());
        let handler = McpClientHandler::new(session, name, key, Arc::clone(shared));
        let connecting = connect(&self.definition, self.session.cwd(), handler, process);
        let running = timeout_at(deadline, connecting).await;
        let running = running.map_err(|_| late("respond"))??;
        let listing = list_server(&self.name, running.peer(), shared);
        let ready = timeout_at(deadline, listing).await;
        let ready = ready.map_err(|_| late("list its tools"))?;
        Ok((running, ready.map_err(ConnectFailure::temporary)?))
    }

    /// Handles the unexpected end of a connection. Records the reason, which is also reported by pending calls.
    async fn handle_unexpected_end(
        &self,
        shared: &McpConnectionState,
        process: &McpProcess,
    ) -> ConnectionLoss {
        let words = process.describe_exit().await;
        let what = match self.definition {
            McpServer::Stdio(_) => "has ended",
            _ => "closed the connection",
        };
        shared.set_lost(
            format!("The MCP server `{}` {what}.{words}", self.name),
            false,
        );
        shared.wait_until_lost().await
    }

    fn set_ready(&self, ready: McpListing) {
        if matches!(
            *self.states.borrow(),
            McpServerState::Lost(_) | McpServerState::Failed(_)
        ) {
            self.channel.set_recovered(match self.definition {
                McpServer::Stdio(_) => "It was restarted and lost its state.",
                _ => "It reconnected.",
            });
        }
        self.set_state(McpServerState::Ready(Arc::new(ready)));
    }

    /// Records that the server is lost, and what happens next. `connected` is `true` if the server was connected
    /// earlier in this session.
    fn set_lost(&self, gone: &LostConnection, next: &RetryPlan, connected: bool) {
        let name = &self.name;
        let why = &gone.failure.why;
        let why: Arc<str> = match (gone.lifetime, connected) {
            (Some(_), _) => why.as_str().into(),
            (None, true) => format!("The MCP server `{name}` could not be restarted. {why}").into(),
            (None, false) => format!("The MCP server `{name}` did not start. {why}").into(),
        };
        tracing::warn!(server = name, %why, "MCP server not available");
        let is_known = matches!(
            *self.states.borrow(),
            McpServerState::Lost(_) | McpServerState::Failed(_)
        );
        let tries = matches!(next, RetryPlan::After(_));
        if gone.has_expired && tries {
            self.channel.suppress_report();
        } else if !is_known || self.channel.is_report_suppressed() || *next == RetryPlan::Never {
            self.channel.set_lost(
                Arc::clone(&why),
                self.retry_description(gone, next, connected),
            );
        }
        self.set_state(if tries {
            McpServerState::Lost(why)
        } else {
            McpServerState::Failed(why)
        });
    }

    /// Tells the user what will be done about a lost server.
    fn retry_description(
        &self,
        gone: &LostConnection,
        next: &RetryPlan,
        connected: bool,
    ) -> &'static str {
        let local = matches!(self.definition, McpServer::Stdio(_));
        match next {
            RetryPlan::After(_) if local => "Restarting it.",
            RetryPlan::After(_) => "Reconnecting.",
            RetryPlan::WhenNeeded => "The agent will try again with each prompt.",
            RetryPlan::Never if connected && !gone.failure.is_permanent => {
                "It was restarted several times and will not be restarted again in this session."
            }
            RetryPlan::Never => "",
        }
    }

    fn set_state(&self, state: McpServerState) {
        self.states.send_replace(state);
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// The next step for a server that is not connected.
#[derive(Debug, PartialEq, Eq)]
enum RetryPlan {
    After(Duration),
    /// Reconnect with the next prompt.
    WhenNeeded,
    Never,
}

/// Tracks the attempts to reconnect to a server.
struct RetryState {
    /// Whether the server is a process on this machine.
    is_local: bool,
    /// The wait before the second attempt. It doubles with each attempt after that.
    retry_delay: Duration,
    count: u32,
    /// Whether the server has been connected in this session.
    was_connected: bool,
}

impl RetryState {
    fn new(local: bool, retry: Duration) -> Self {
        Self {
            is_local: local,
            retry_delay: retry,
            count: 0,
            was_connected: false,
        }
    }

    fn next(&mut self, gone: &LostConnection) -> RetryPlan {
        self.was_connected |= gone.lifetime.is_some();
        let steady = gone.lifetime.is_some_and(|lasted| lasted >= STABLE_AFTER);
        if steady && !self.is_local {
            self.count = 0;
        }
        let most = if self.is_local {
            MAX_RESTARTS
        } else {
            MAX_ATTEMPTS
        };
        match (gone.failure.is_permanent, self.is_local) {
            (true, _) => RetryPlan::Never,
            // A local server is not downloaded and started again with every prompt.
            (false, true) if !self.was_connected || self.count >= most => RetryPlan::Never,
            (false, false) if !self.was_connected || self.count >= most => RetryPlan::WhenNeeded,
            (false, _) => {
                let wait = match self.count {
                    0 => Duration::ZERO,
                    more => self
                        .retry_delay
                        .saturating_mul(2_u32.saturating_pow(more - 1)),
                };
                self.count += 1;
                RetryPlan::After(wait)
            }
        }
    }
}

/// Waits until the server must stop, either on request or because the sender was dropped.
async fn wait_until_stopped(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost_connection(lasted: Option<u64>) -> LostConnection {
        LostConnection {
            failure: ConnectFailure::temporary(""),
            lifetime: lasted.map(Duration::from_secs),
            has_expired: false,
            process: McpProcess::default(),
        }
    }

    fn retry_after(seconds: u64) -> RetryPlan {
        RetryPlan::After(Duration::from_secs(seconds))
    }

    #[test]
    fn process_is_restarted_a_limited_number_of_times() {
        let mut tries = RetryState::new(true, Duration::from_secs(1));
        let lasted = Some(STABLE_AFTER.as_secs());
        for expected in [
            retry_after(0),
            retry_after(1),
            retry_after(2),
            RetryPlan::Never,
        ] {
            assert_eq!(tries.next(&lost_connection(lasted)), expected);
        }
    }

    #[test]
    fn process_that_never_started_is_not_retried() {
        let mut tries = RetryState::new(true, Duration::from_secs(1));
        assert_eq!(tries.next(&lost_connection(None)), RetryPlan::Never);
    }

    #[test]
    fn remote_server_is_retried_with_increasing_delays_and_then_on_demand() {
        let mut tries = RetryState::new(false, Duration::from_secs(1));
        assert_eq!(tries.next(&lost_connection(None)), RetryPlan::WhenNeeded);
        for expected in [
            retry_after(0),
            retry_after(1),
            retry_after(2),
            retry_after(4),
            retry_after(8),
        ] {
            assert_eq!(tries.next(&lost_connection(Some(1))), expected);
        }
        assert_eq!(tries.next(&lost_connection(None)), RetryPlan::WhenNeeded);
        // A connection that breaks immediately every time does not reset the count.
        assert_eq!(tries.next(&lost_connection(Some(1))), RetryPlan::WhenNeeded);
        // A stable connection resets the count.
        assert_eq!(
            tries.next(&lost_connection(Some(STABLE_AFTER.as_secs()))),
            retry_after(0)
        );
    }

    #[test]
    fn permanent_failure_is_not_retried() {
        for local in [true, false] {
            let mut tries = RetryState::new(local, Duration::from_secs(1));
            let mut wrong = lost_connection(Some(1));
            wrong.failure = ConnectFailure::permanent("");
            assert_eq!(tries.next(&wrong), RetryPlan::Never);
        }
    }
}
