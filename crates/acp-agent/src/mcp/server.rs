//! A server of a session, from its start to its end: a task of its own, so that none waits for another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp::agent::Session;
use acp::v1::McpServer;
use rmcp::RoleClient;
use rmcp::model::{PaginatedRequestParams, Prompt, Tool};
use rmcp::service::{Peer, RunningService, ServiceError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::McpLimits;
use super::connect::{Process, connect};
use super::handler::{Handler, Shared};

/// How many tools, and how many prompts, of one server are known.
const MOST: usize = 256;

/// In how many pages they may come.
const PAGES: usize = 64;

/// The largest schema of a tool, in bytes. The model is sent all of them each time.
const LARGEST_SCHEMA: usize = 64 * 1024;

/// How long a server may take to list anew what it has.
const LISTING: Duration = Duration::from_secs(30);

/// How long the connection to a server may take to close, and then its process to end.
const CLOSING: Duration = Duration::from_secs(5);

/// A server. Dropping it ends it.
pub(crate) struct Server {
    /// As whoever named it calls it.
    pub(super) name: String,
    /// As it is called in the names of its tools and prompts.
    pub(super) key: String,
    pub(super) state: watch::Receiver<State>,
    /// Its prompts have been waited for once.
    pub(super) awaited: AtomicBool,
    /// The person knows that it failed.
    pub(super) reported: AtomicBool,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// How a server is.
#[derive(Clone)]
pub(super) enum State {
    Starting,
    Ready(Arc<Ready>),
    /// It did not start, or has ended; and why, for people.
    Failed(Arc<str>),
}

/// What a server that answers has.
pub(super) struct Ready {
    pub(super) peer: Peer<RoleClient>,
    pub(super) shared: Arc<Shared>,
    pub(super) tools: Vec<Tool>,
    pub(super) prompts: Vec<Prompt>,
    pub(super) has_resources: bool,
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready")
            .field("tools", &self.tools.len())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Has a server start. `changes` counts what a client or a model may have to be told anew.
    pub(super) fn start(
        definition: McpServer,
        key: String,
        session: Session,
        limits: McpLimits,
        changes: watch::Sender<u64>,
    ) -> Self {
        let name = definition.name().unwrap_or("without a name").to_owned();
        let (states, state) = watch::channel(State::Starting);
        let (stop, stopped) = watch::channel(false);
        let life = Life {
            name: name.clone(),
            definition,
            session,
            start: limits.start,
            states,
            changes,
        };
        let task = tokio::spawn(life.run(stopped));
        Self {
            name,
            key,
            state,
            awaited: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            stop,
            task: Mutex::new(Some(task)),
        }
    }

    /// What it has, if it answers.
    pub(super) fn ready(&self) -> Option<Arc<Ready>> {
        match &*self.state.borrow() {
            State::Ready(ready) => Some(Arc::clone(ready)),
            _ => None,
        }
    }

    /// Why it does not answer, if it does not.
    pub(super) fn failure(&self) -> Option<Arc<str>> {
        match &*self.state.borrow() {
            State::Failed(why) => Some(Arc::clone(why)),
            _ => None,
        }
    }

    /// Waits until it has started, or has not.
    pub(super) async fn started(&self) {
        let mut state = self.state.clone();
        // Its task tells one of both before it ends.
        let _ = state
            .wait_for(|state| !matches!(state, State::Starting))
            .await;
    }

    /// Waits until it is known to have failed, at most this long.
    pub(super) async fn failed(&self, patience: Duration) -> Option<Arc<str>> {
        let mut state = self.state.clone();
        let failed = state.wait_for(|state| matches!(state, State::Failed(_)));
        let _ = timeout(patience, failed).await;
        self.failure()
    }

    /// Whether it has failed and the person has not been told. Says so once.
    pub(super) fn to_report(&self) -> Option<Arc<str>> {
        let why = self.failure()?;
        (!self.reported.swap(true, Ordering::Relaxed)).then_some(why)
    }

    /// Ends it. Its process, and all that it started, is gone then.
    pub(super) async fn close(&self) {
        self.stop.send_replace(true);
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task
            && let Err(error) = task.await
        {
            tracing::warn!(server = self.name, %error, "the end of an MCP server");
        }
    }
}

/// What the task of a server has.
struct Life {
    name: String,
    definition: McpServer,
    session: Session,
    /// How long it may take to start.
    start: Duration,
    states: watch::Sender<State>,
    changes: watch::Sender<u64>,
}

impl Life {
    async fn run(self, stopped: watch::Receiver<bool>) {
        let shared = Arc::new(Shared::new());
        let mut process = Process::default();
        let started = tokio::select! {
            // At once: it has begun nothing that it could end in order.
            () = told(stopped.clone()) => return,
            started = self.begin(&shared, &mut process) => started,
        };
        let (running, ready) = match started {
            Ok(started) => started,
            Err(why) => {
                let words = process.last_words().await;
                let name = &self.name;
                return self.fail(format!(
                    "The MCP server `{name}` did not start. {why}{words}"
                ));
            }
        };
        let peer = ready.peer.clone();
        self.tell(State::Ready(Arc::new(ready)));
        let close = running.cancellation_token();
        let ended = running.waiting();
        tokio::pin!(ended);
        let ended_by_itself = loop {
            tokio::select! {
                () = told(stopped.clone()) => break false,
                _ = &mut ended => break true,
                () = shared.changed.notified() => {
                    let listed = timeout(LISTING, list(&self.name, &peer, &shared));
                    tokio::select! {
                        () = told(stopped.clone()) => break false,
                        _ = &mut ended => break true,
                        listed = listed => match listed {
                            Ok(Ok(ready)) => self.tell(State::Ready(Arc::new(ready))),
                            Ok(Err(why)) => tracing::warn!(server = self.name, why, "what it has is not known anew"),
                            Err(_) => tracing::warn!(server = self.name, "it does not say what it has"),
                        },
                    }
                }
            }
        };
        if ended_by_itself {
            let words = process.last_words().await;
            self.fail(format!("The MCP server `{}` has ended.{words}", self.name));
        } else {
            close.cancel();
            if timeout(CLOSING, ended).await.is_err() {
                tracing::debug!(server = self.name, "its connection does not close");
            }
        }
        process.shutdown().await;
    }

    /// Connects and asks for what it has, within the time for that.
    async fn begin(
        &self,
        shared: &Arc<Shared>,
        process: &mut Process,
    ) -> Result<(RunningService<RoleClient, Handler>, Ready), String> {
        let deadline = Instant::now() + self.start;
        let late = |what| format!("It did not {what} within {} s.", self.start.as_secs_f32());
        let handler = Handler::new(self.session.clone(), self.name.clone(), Arc::clone(shared));
        let connecting = connect(&self.definition, self.session.cwd(), handler, process);
        let running = timeout_at(deadline, connecting).await;
        let running = running.map_err(|_| late("answer"))??;
        let listing = list(&self.name, running.peer(), shared);
        let ready = timeout_at(deadline, listing).await;
        let ready = ready.map_err(|_| late("say what it has"))??;
        Ok((running, ready))
    }

    fn tell(&self, state: State) {
        self.states.send_replace(state);
        self.changes.send_modify(|changes| *changes += 1);
    }

    fn fail(&self, why: String) {
        tracing::warn!(server = self.name, why, "an MCP server failed");
        self.tell(State::Failed(why.into()));
    }
}

/// Waits until the server is to end: somebody says so, or nobody is left who could.
async fn told(mut stopped: watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Asks a server for what it has.
async fn list(name: &str, peer: &Peer<RoleClient>, shared: &Arc<Shared>) -> Result<Ready, String> {
    let info = peer.peer_info();
    let offered = info
        .map(|info| info.capabilities.clone())
        .unwrap_or_default();
    let mut tools = Vec::new();
    if offered.tools.is_some() {
        let listed = pages(name, "tools", |page| async {
            let listed = peer.list_tools(page).await?;
            Ok((listed.tools, listed.next_cursor))
        });
        tools = listed
            .await
            .map_err(|e| format!("Its tools cannot be listed: {e}."))?;
        tools.retain(|tool: &Tool| {
            let size = serde_json::to_vec(&tool.input_schema).map_or(usize::MAX, |text| text.len());
            if size > LARGEST_SCHEMA {
                tracing::warn!(server = name, tool = %tool.name, size, "a tool's schema is too large");
            }
            size <= LARGEST_SCHEMA
        });
    }
    let mut prompts = Vec::new();
    if offered.prompts.is_some() {
        let listed = pages(name, "prompts", |page| async {
            let listed = peer.list_prompts(page).await?;
            Ok((listed.prompts, listed.next_cursor))
        });
        // Its tools are of use without them.
        prompts = listed.await.unwrap_or_else(|error| {
            tracing::warn!(server = name, %error, "its prompts cannot be listed");
            Vec::new()
        });
    }
    Ok(Ready {
        peer: peer.clone(),
        shared: Arc::clone(shared),
        tools,
        prompts,
        has_resources: offered.resources.is_some(),
    })
}

/// All pages of a list, as far as they are looked at.
pub(super) async fn pages<T, F>(
    server: &str,
    what: &str,
    page: impl Fn(Option<PaginatedRequestParams>) -> F,
) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let (more, next) = page(Some(params)).await?;
        all.extend(more);
        if all.len() > MOST {
            tracing::warn!(
                server,
                what,
                "it has more than {MOST}: the rest is not used"
            );
            all.truncate(MOST);
            return Ok(all);
        }
        match next {
            Some(next) => cursor = Some(next),
            None => return Ok(all),
        }
    }
    tracing::warn!(
        server,
        what,
        "they come in more than {PAGES} pages: the rest is not used"
    );
    Ok(all)
}
