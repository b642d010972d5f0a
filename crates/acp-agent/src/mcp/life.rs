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

use super::connect::{Process, connect};
use super::failure::Failure;
use super::handler::{Handler, Loss, Shared};
use super::limits::McpLimits;
use super::listing::{Ready, list};
use super::state::{State, Told};

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
pub(super) struct Life {
    pub(super) name: String,
    pub(super) key: String,
    pub(super) definition: McpServer,
    pub(super) session: Session,
    pub(super) limits: McpLimits,
    pub(super) told: Arc<Told>,
    pub(super) states: watch::Sender<State>,
    pub(super) changes: watch::Sender<u64>,
}

/// How a connection ended, or why there was none.
struct Gone {
    failure: Failure,
    /// How long it lasted, if there was one.
    lasted: Option<Duration>,
    /// The server has only forgotten this connection: nobody needs to hear of that if the next one comes.
    expired: bool,
    process: Process,
}

impl Life {
    pub(super) async fn run(self, stopped: watch::Receiver<bool>) {
        let local = matches!(self.definition, McpServer::Stdio(_));
        let mut tries = Tries::new(local, self.limits.retry);
        while let Some(gone) = self.connection(&stopped).await {
            let next = tries.next(&gone);
            self.gone(&gone, &next, tries.connected);
            gone.process.shutdown().await;
            let needed = self.told.needed.notified();
            match next {
                Next::After(wait) => tokio::select! {
                    () = told(stopped.clone()) => return,
                    () = sleep(wait) => {}
                    () = needed => {}
                },
                Next::WhenNeeded => tokio::select! {
                    () = told(stopped.clone()) => return,
                    () = needed => {}
                },
                Next::Never => return,
            }
        }
    }

    /// One connection, from its beginning to its end. `None` if the server is to end, and has.
    async fn connection(&self, stopped: &watch::Receiver<bool>) -> Option<Gone> {
        let shared = Arc::new(Shared::new());
        let mut process = Process::default();
        let begun = tokio::select! {
            // At once: it has begun nothing that it could end in order.
            () = told(stopped.clone()) => return None,
            begun = self.begin(&shared, &mut process) => begun,
        };
        let (running, ready) = match begun {
            Ok(begun) => begun,
            Err(mut failure) => {
                failure.why.push_str(&process.last_words().await);
                return Some(Gone {
                    failure,
                    lasted: None,
                    expired: false,
                    process,
                });
            }
        };
        let since = Instant::now();
        let peer = ready.peer.clone();
        self.ready(ready);
        let close = running.cancellation_token();
        let ended = running.waiting();
        tokio::pin!(ended);
        let loss = loop {
            let changed = tokio::select! {
                () = told(stopped.clone()) => break None,
                loss = shared.lost() => break Some(loss),
                _ = &mut ended => break Some(self.ended(&shared, &process).await),
                () = shared.changed.notified() => timeout(LISTING, list(&self.name, &peer, &shared)),
            };
            tokio::select! {
                () = told(stopped.clone()) => break None,
                loss = shared.lost() => break Some(loss),
                _ = &mut ended => break Some(self.ended(&shared, &process).await),
                listed = changed => match listed {
                    Ok(Ok(ready)) => self.ready(ready),
                    Ok(Err(why)) => tracing::warn!(server = self.name, why, "what it has is not known anew"),
                    Err(_) => tracing::warn!(server = self.name, "it does not say what it has"),
                },
            }
        };
        close.cancel();
        let Some(loss) = loss else {
            if timeout(CLOSING, ended).await.is_err() {
                tracing::debug!(server = self.name, "its connection does not close");
            }
            process.shutdown().await;
            return None;
        };
        Some(Gone {
            failure: Failure::passing(&*loss.why),
            lasted: Some(since.elapsed()),
            expired: loss.expired,
            process,
        })
    }

    /// Connects and asks for what it has, within the time for that.
    async fn begin(
        &self,
        shared: &Arc<Shared>,
        process: &mut Process,
    ) -> Result<(RunningService<RoleClient, Handler>, Ready), Failure> {
        let start = self.limits.start;
        let deadline = Instant::now() + start;
        let late = |what| {
            Failure::passing(format!(
                "It did not {what} within {} s.",
                start.as_secs_f32()
            ))
        };
        let (session, name, key) = (self.session.clone(), self.name.clone(), self.key.clone());
        let handler = Handler::new(session, name, key, Arc::clone(shared));
        let connecting = connect(&self.definition, self.session.cwd(), handler, process);
        let running = timeout_at(deadline, connecting).await;
        let running = running.map_err(|_| late("answer"))??;
        let listing = list(&self.name, running.peer(), shared);
        let ready = timeout_at(deadline, listing).await;
        let ready = ready.map_err(|_| late("say what it has"))?;
        Ok((running, ready.map_err(Failure::passing)?))
    }

    /// A connection has ended by itself: why, for the calls that waited for it, too.
    async fn ended(&self, shared: &Shared, process: &Process) -> Loss {
        let words = process.last_words().await;
        let what = match self.definition {
            McpServer::Stdio(_) => "has ended",
            _ => "has closed the connection",
        };
        shared.lose(
            format!("The MCP server `{}` {what}.{words}", self.name),
            false,
        );
        shared.lost().await
    }

    fn ready(&self, ready: Ready) {
        if matches!(*self.states.borrow(), State::Lost(_) | State::Failed(_)) {
            self.told.back(match self.definition {
                McpServer::Stdio(_) => "It was started again, and does not know what it knew.",
                _ => "It is connected again.",
            });
        }
        self.tell(State::Ready(Arc::new(ready)));
    }

    /// Says that the server is not there, and what becomes of it. `connected`: it has been there in this session.
    fn gone(&self, gone: &Gone, next: &Next, connected: bool) {
        let name = &self.name;
        let why = &gone.failure.why;
        let why: Arc<str> = match (gone.lasted, connected) {
            (Some(_), _) => why.as_str().into(),
            (None, true) => format!("The MCP server `{name}` is not to be had again. {why}").into(),
            (None, false) => format!("The MCP server `{name}` did not start. {why}").into(),
        };
        tracing::warn!(server = name, %why, "an MCP server is not there");
        let is_known = matches!(*self.states.borrow(), State::Lost(_) | State::Failed(_));
        let tries = matches!(next, Next::After(_));
        if gone.expired && tries {
            self.told.hush();
        } else if !is_known || self.told.is_hushed() || *next == Next::Never {
            self.told
                .gone(Arc::clone(&why), self.outlook(gone, next, connected));
        }
        self.tell(if tries {
            State::Lost(why)
        } else {
            State::Failed(why)
        });
    }

    /// What becomes of a server that is gone, for people.
    fn outlook(&self, gone: &Gone, next: &Next, connected: bool) -> &'static str {
        let local = matches!(self.definition, McpServer::Stdio(_));
        match next {
            Next::After(_) if local => "It is being started again.",
            Next::After(_) => "It is being connected again.",
            Next::WhenNeeded => "It is tried again with each prompt.",
            Next::Never if connected && !gone.failure.lasting => {
                "It was started again several times, and is not any more in this session."
            }
            Next::Never => "",
        }
    }

    fn tell(&self, state: State) {
        self.states.send_replace(state);
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// What is done about a server that is not there.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    After(Duration),
    /// When the person wants something done.
    WhenNeeded,
    Never,
}

/// What has been tried.
struct Tries {
    /// The server has a process here.
    local: bool,
    /// How long the second try waits. Each further one waits twice as long.
    retry: Duration,
    count: u32,
    /// There has been a connection in this session.
    connected: bool,
}

impl Tries {
    fn new(local: bool, retry: Duration) -> Self {
        Self {
            local,
            retry,
            count: 0,
            connected: false,
        }
    }

    fn next(&mut self, gone: &Gone) -> Next {
        self.connected |= gone.lasted.is_some();
        let steady = gone.lasted.is_some_and(|lasted| lasted >= STEADY);
        if steady && !self.local {
            self.count = 0;
        }
        let most = if self.local { RESTARTS } else { TRIES };
        match (gone.failure.lasting, self.local) {
            (true, _) => Next::Never,
            // It is not downloaded and started with every prompt.
            (false, true) if !self.connected || self.count >= most => Next::Never,
            (false, false) if !self.connected || self.count >= most => Next::WhenNeeded,
            (false, _) => {
                let wait = match self.count {
                    0 => Duration::ZERO,
                    more => self.retry.saturating_mul(2_u32.saturating_pow(more - 1)),
                };
                self.count += 1;
                Next::After(wait)
            }
        }
    }
}

/// Waits until the server is to end: somebody says so, or nobody is left who could.
async fn told(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(lasted: Option<u64>) -> Gone {
        Gone {
            failure: Failure::passing(""),
            lasted: lasted.map(Duration::from_secs),
            expired: false,
            process: Process::default(),
        }
    }

    fn after(seconds: u64) -> Next {
        Next::After(Duration::from_secs(seconds))
    }

    #[test]
    fn a_process_is_started_again_so_many_times_in_a_session() {
        let mut tries = Tries::new(true, Duration::from_secs(1));
        let lasted = Some(STEADY.as_secs());
        for expected in [after(0), after(1), after(2), Next::Never] {
            assert_eq!(tries.next(&gone(lasted)), expected);
        }
    }

    #[test]
    fn a_process_that_never_started_is_not_tried_again() {
        let mut tries = Tries::new(true, Duration::from_secs(1));
        assert_eq!(tries.next(&gone(None)), Next::Never);
    }

    #[test]
    fn a_server_elsewhere_is_tried_less_and_less_often_and_then_when_it_is_needed() {
        let mut tries = Tries::new(false, Duration::from_secs(1));
        assert_eq!(tries.next(&gone(None)), Next::WhenNeeded);
        for expected in [after(0), after(1), after(2), after(4), after(8)] {
            assert_eq!(tries.next(&gone(Some(1))), expected);
        }
        assert_eq!(tries.next(&gone(None)), Next::WhenNeeded);
        // One that breaks at once each time is no better.
        assert_eq!(tries.next(&gone(Some(1))), Next::WhenNeeded);
        // After a steady connection it begins anew.
        assert_eq!(tries.next(&gone(Some(STEADY.as_secs()))), after(0));
    }

    #[test]
    fn what_only_a_person_can_change_is_not_tried_again() {
        for local in [true, false] {
            let mut tries = Tries::new(local, Duration::from_secs(1));
            let mut wrong = gone(Some(1));
            wrong.failure = Failure::lasting("");
            assert_eq!(tries.next(&wrong), Next::Never);
        }
    }
}
