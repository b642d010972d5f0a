//! The life of a server: it is started or reached, listens for what changes, and is tried again when it is lost.
//! A task of its own, so that no server waits for another.

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
use super::listing::{McpListing, list};
use super::state::{McpServerChannel, McpServerState};

/// How long a server may take to list anew what it has.
const LISTING: Duration = Duration::from_secs(30);

/// How long the connection to a server may take to close, and then its process to end.
const CLOSING: Duration = Duration::from_secs(5);

/// How many times a server that has a process here is started again in a session. What makes it end may be in
/// what it is given, and each start may be a download.
const RESTARTS: u32 = 3;

/// How many times in a row a server elsewhere is tried again by itself. After that it is tried when a prompt comes.
const TRIES: u32 = 5;

/// How long a connection must have lasted for what was tried before to be forgotten.
const STEADY: Duration = Duration::from_secs(60);

/// What the task of a server has.
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

/// How a connection ended, or why there was none.
struct LostConnection {
    failure: ConnectFailure,
    /// How long it lasted, if there was one.
    lifetime: Option<Duration>,
    /// The server has only forgotten this connection: nobody needs to hear of that if the next one comes.
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
                    () = wait_stopped(stopped.clone()) => return,
                    () = sleep(wait) => {}
                    () = needed => {}
                },
                RetryPlan::WhenNeeded => tokio::select! {
                    () = wait_stopped(stopped.clone()) => return,
                    () = needed => {}
                },
                RetryPlan::Never => return,
            }
        }
    }

    /// One connection, from its beginning to its end. `None` if the server is to end, and has.
    async fn run_connection(&self, stopped: &watch::Receiver<bool>) -> Option<LostConnection> {
        let shared = Arc::new(McpConnectionState::new());
        let mut process = McpProcess::default();
        let begun = tokio::select! {
            // At once: it has begun nothing that it could end in order.
            () = wait_stopped(stopped.clone()) => return None,
            begun = self.connect(&shared, &mut process) => begun,
        };
        let (running, ready) = match begun {
            Ok(begun) => begun,
            Err(mut failure) => {
                failure.why.push_str(&process.last_words().await);
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
                () = wait_stopped(stopped.clone()) => break None,
                loss = shared.wait_lost() => break Some(loss),
                _ = &mut ended => break Some(self.wait_ended(&shared, &process).await),
                () = shared.changed.notified() => timeout(LISTING, list(&self.name, &peer, &shared)),
            };
            tokio::select! {
                () = wait_stopped(stopped.clone()) => break None,
                loss = shared.wait_lost() => break Some(loss),
                _ = &mut ended => break Some(self.wait_ended(&shared, &process).await),
                listed = changed => match listed {
                    Ok(Ok(ready)) => self.set_ready(ready),
                    Ok(Err(why)) => tracing::warn!(server = self.name, why, "cannot refresh its tools and prompts"),
                    Err(_) => tracing::warn!(server = self.name, "it did not list its tools"),
                },
            }
        };
        close.cancel();
        let Some(loss) = loss else {
            if timeout(CLOSING, ended).await.is_err() {
                tracing::debug!(server = self.name, "cannot close its connection");
            }
            process.shutdown().await;
            return None;
        };
        Some(LostConnection {
            failure: ConnectFailure::passing(&*loss.why),
            lifetime: Some(since.elapsed()),
            has_expired: loss.has_expired,
            process,
        })
    }

    /// Connects and asks for what it has, within the time for that.
    async fn connect(
        &self,
        shared: &Arc<McpConnectionState>,
        process: &mut McpProcess,
    ) -> Result<(RunningService<RoleClient, McpClientHandler>, McpListing), ConnectFailure> {
        let start = self.limits.start;
        let deadline = Instant::now() + start;
        let late = |what| {
            ConnectFailure::passing(format!(
                "Timed out: it did not {what} within {} s.",
                start.as_secs_f32()
            ))
        };
        let (session, name, key) = (self.session.clone(), self.name.clone(), self.key.clone());
        let handler = McpClientHandler::new(session, name, key, Arc::clone(shared));
        let connecting = connect(&self.definition, self.session.cwd(), handler, process);
        let running = timeout_at(deadline, connecting).await;
        let running = running.map_err(|_| late("respond"))??;
        let listing = list(&self.name, running.peer(), shared);
        let ready = timeout_at(deadline, listing).await;
        let ready = ready.map_err(|_| late("list its tools"))?;
        Ok((running, ready.map_err(ConnectFailure::passing)?))
    }

    /// A connection has ended by itself: why, for the calls that waited for it, too.
    async fn wait_ended(
        &self,
        shared: &McpConnectionState,
        process: &McpProcess,
    ) -> ConnectionLoss {
        let words = process.last_words().await;
        let what = match self.definition {
            McpServer::Stdio(_) => "has ended",
            _ => "closed the connection",
        };
        shared.set_lost(
            format!("The MCP server `{}` {what}.{words}", self.name),
            false,
        );
        shared.wait_lost().await
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

    /// Says that the server is not there, and what becomes of it. `was_connected`: it has been there in this session.
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

    /// What becomes of a server that is gone, for people.
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
            RetryPlan::WhenNeeded => "It is retried with each prompt.",
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

/// What is done about a server that is not there.
#[derive(Debug, PartialEq, Eq)]
enum RetryPlan {
    After(Duration),
    /// When the person wants something done.
    WhenNeeded,
    Never,
}

/// What has been tried.
struct RetryState {
    /// The server has a process here.
    is_local: bool,
    /// How long the second try waits. Each further one waits twice as long.
    retry: Duration,
    count: u32,
    /// There has been a connection in this session.
    was_connected: bool,
}

impl RetryState {
    fn new(local: bool, retry: Duration) -> Self {
        Self {
            is_local: local,
            retry,
            count: 0,
            was_connected: false,
        }
    }

    fn next(&mut self, gone: &LostConnection) -> RetryPlan {
        self.was_connected |= gone.lifetime.is_some();
        let steady = gone.lifetime.is_some_and(|lasted| lasted >= STEADY);
        if steady && !self.is_local {
            self.count = 0;
        }
        let most = if self.is_local { RESTARTS } else { TRIES };
        match (gone.failure.is_permanent, self.is_local) {
            (true, _) => RetryPlan::Never,
            // It is not downloaded and started with every prompt.
            (false, true) if !self.was_connected || self.count >= most => RetryPlan::Never,
            (false, false) if !self.was_connected || self.count >= most => RetryPlan::WhenNeeded,
            (false, _) => {
                let wait = match self.count {
                    0 => Duration::ZERO,
                    more => self.retry.saturating_mul(2_u32.saturating_pow(more - 1)),
                };
                self.count += 1;
                RetryPlan::After(wait)
            }
        }
    }
}

/// Waits until the server is to end: somebody says so, or nobody is left who could.
async fn wait_stopped(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(lasted: Option<u64>) -> LostConnection {
        LostConnection {
            failure: ConnectFailure::passing(""),
            lifetime: lasted.map(Duration::from_secs),
            has_expired: false,
            process: McpProcess::default(),
        }
    }

    fn after(seconds: u64) -> RetryPlan {
        RetryPlan::After(Duration::from_secs(seconds))
    }

    #[test]
    fn a_process_is_started_again_so_many_times_in_a_session() {
        let mut tries = RetryState::new(true, Duration::from_secs(1));
        let lasted = Some(STEADY.as_secs());
        for expected in [after(0), after(1), after(2), RetryPlan::Never] {
            assert_eq!(tries.next(&gone(lasted)), expected);
        }
    }

    #[test]
    fn a_process_that_never_started_is_not_tried_again() {
        let mut tries = RetryState::new(true, Duration::from_secs(1));
        assert_eq!(tries.next(&gone(None)), RetryPlan::Never);
    }

    #[test]
    fn a_server_elsewhere_is_tried_less_and_less_often_and_then_when_it_is_needed() {
        let mut tries = RetryState::new(false, Duration::from_secs(1));
        assert_eq!(tries.next(&gone(None)), RetryPlan::WhenNeeded);
        for expected in [after(0), after(1), after(2), after(4), after(8)] {
            assert_eq!(tries.next(&gone(Some(1))), expected);
        }
        assert_eq!(tries.next(&gone(None)), RetryPlan::WhenNeeded);
        // One that breaks at once each time is no better.
        assert_eq!(tries.next(&gone(Some(1))), RetryPlan::WhenNeeded);
        // After a steady connection it begins anew.
        assert_eq!(tries.next(&gone(Some(STEADY.as_secs()))), after(0));
    }

    #[test]
    fn what_only_a_person_can_change_is_not_tried_again() {
        for local in [true, false] {
            let mut tries = RetryState::new(local, Duration::from_secs(1));
            let mut wrong = gone(Some(1));
            wrong.failure = ConnectFailure::lasting("");
            assert_eq!(tries.next(&wrong), RetryPlan::Never);
        }
    }
}
