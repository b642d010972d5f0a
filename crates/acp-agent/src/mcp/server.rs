//! An MCP server as seen by the other parts of a session. Its task is in `server_task.rs`.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp::agent::Session;
use acp::v1::McpServer;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::limits::McpLimits;
use super::listing::McpListing;
use super::server_task::McpServerTask;
use super::state::{McpServerChange, McpServerChannel, McpServerState};

/// An MCP server of a session. Dropping it shuts the server down.
pub(crate) struct SessionMcpServer {
    /// The name that the client or the user gave to the server.
    pub(super) name: String,
    /// The prefix that identifies the server in the names of its tools and prompts.
    pub(super) key: String,
    state: watch::Receiver<McpServerState>,
    /// Whether a turn has waited for the server to start.
    pub(super) was_awaited: AtomicBool,
    channel: Arc<McpServerChannel>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for SessionMcpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A connected server, with its tools and prompts.
#[derive(Debug, Clone)]
pub(super) struct ConnectedMcpServer {
    pub(super) server: Arc<SessionMcpServer>,
    pub(super) listing: Arc<McpListing>,
}

impl SessionMcpServer {
    /// Starts a server. `changes` is incremented whenever the client or the model may need an update.
    pub(super) fn start(
        definition: McpServer,
        key: String,
        session: Session,
        limits: McpLimits,
        changes: watch::Sender<u64>,
    ) -> Self {
        let name = definition.name().unwrap_or("unnamed").to_owned();
        let (states, state) = watch::channel(McpServerState::Starting);
        let (stop, stopped) = watch::channel(false);
        let task_channel = Arc::<McpServerChannel>::default();
        let life = McpServerTask {
            name: name.clone(),
            key: key.clone(),
            definition,
            session,
            limits,
            channel: Arc::clone(&task_channel),
            states,
            changes,
        };
        let task = tokio::spawn(life.run(stopped));
        Self {
            name,
            key,
            state,
            was_awaited: AtomicBool::new(false),
            channel: task_channel,
            stop,
            task: Mutex::new(Some(task)),
        }
    }

    /// Returns the tools and prompts of the server, if it is connected.
    pub(super) fn listing(&self) -> Option<Arc<McpListing>> {
        match &*self.state.borrow() {
            McpServerState::Ready(ready) => Some(Arc::clone(ready)),
            _ => None,
        }
    }

    /// Returns why the server cannot be used, or `None` if it is connected.
    pub(super) fn unavailable_reason(&self) -> Option<String> {
        match &*self.state.borrow() {
            McpServerState::Lost(why) | McpServerState::Failed(why) => Some(why.to_string()),
            McpServerState::Starting => Some(format!(
                "The MCP server `{}` has not started yet.",
                self.name
            )),
            McpServerState::Ready(_) => None,
        }
    }

    /// Waits until the server has either started or failed to start.
    pub(super) async fn wait_until_started(&self) {
        let mut state = self.state.clone();
        // The task sets one of these states before it ends.
        let _ = state
            .wait_for(|state| !matches!(state, McpServerState::Starting))
            .await;
    }

    /// Retries the connection to a lost server, and waits for the result. Returns at once if the server will not be
    /// retried again.
    pub(super) async fn retry_and_wait(&self) {
        let mut state = self.state.clone();
        if matches!(
            &*state.borrow_and_update(),
            McpServerState::Lost(_) | McpServerState::Failed(_)
        ) {
            self.channel.retry_needed.notify_one();
            // Each attempt ends with a new state. If the task has ended, this returns at once.
            let _ = state.changed().await;
        }
    }

    /// Waits for the connection that replaces `lost`, and returns its tools and prompts. Returns `None` if this takes
    /// longer than `patience`.
    pub(super) async fn wait_until_reconnected(
        &self,
        lost: &McpListing,
        patience: Duration,
    ) -> Option<Arc<McpListing>> {
        let is_lost = |ready: &McpListing| Arc::ptr_eq(&ready.shared, &lost.shared);
        let mut state = self.state.clone();
        let decided = state.wait_for(|state| match state {
            McpServerState::Ready(ready) => !is_lost(ready),
            McpServerState::Failed(_) => true,
            McpServerState::Starting | McpServerState::Lost(_) => false,
        });
        let _ = timeout(patience, decided).await;
        self.listing().filter(|ready| !is_lost(ready))
    }

    /// Takes the most recent state change that the user has not been told about.
    pub(super) fn take_unreported_change(&self) -> Option<McpServerChange> {
        self.channel.lock_unreported_change().take()
    }

    /// Shuts down the server and waits for its process, and everything that process started, to exit.
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
            tracing::warn!(server = self.name, %error, "cannot shut down an MCP server");
        }
    }
}
