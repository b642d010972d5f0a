//! A server of a session, as the rest of the session sees it. What happens to it is in `life.rs`.

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
use super::state::{McpServerChannel, McpServerNews, McpServerState};

/// A server. Dropping it ends it.
pub(crate) struct SessionMcpServer {
    /// As whoever named it calls it.
    pub(super) name: String,
    /// As it is called in the names of its tools and prompts.
    pub(super) key: String,
    state: watch::Receiver<McpServerState>,
    /// Its prompts have been waited for once.
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

/// A server that answers.
#[derive(Debug, Clone)]
pub(super) struct ConnectedMcpServer {
    pub(super) server: Arc<SessionMcpServer>,
    pub(super) ready: Arc<McpListing>,
}

impl SessionMcpServer {
    /// Has a server start. `changes` counts what a client or a model may have to be told anew.
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
        let told = Arc::<McpServerChannel>::default();
        let life = McpServerTask {
            name: name.clone(),
            key: key.clone(),
            definition,
            session,
            limits,
            channel: Arc::clone(&told),
            states,
            changes,
        };
        let task = tokio::spawn(life.run(stopped));
        Self {
            name,
            key,
            state,
            was_awaited: AtomicBool::new(false),
            channel: told,
            stop,
            task: Mutex::new(Some(task)),
        }
    }

    /// What it has, if it answers.
    pub(super) fn ready(&self) -> Option<Arc<McpListing>> {
        match &*self.state.borrow() {
            McpServerState::Ready(ready) => Some(Arc::clone(ready)),
            _ => None,
        }
    }

    /// Why nothing of it can be used, if it does not answer.
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

    /// Waits until it has started, or has not.
    pub(super) async fn wait_started(&self) {
        let mut state = self.state.clone();
        // Its task tells one of both before it ends.
        let _ = state
            .wait_for(|state| !matches!(state, McpServerState::Starting))
            .await;
    }

    /// If it is gone, has it tried again now, and waits until that is done. If it is not to be tried again, this
    /// waits for nothing.
    pub(super) async fn retry_and_wait(&self) {
        let mut state = self.state.clone();
        if matches!(
            &*state.borrow_and_update(),
            McpServerState::Lost(_) | McpServerState::Failed(_)
        ) {
            self.channel.retry_needed.notify_one();
            // Each try ends with a state; a task that has ended tries nothing.
            let _ = state.changed().await;
        }
    }

    /// What it has after this connection of it was lost, if there is another within this time.
    pub(super) async fn reconnected(
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
        self.ready().filter(|ready| !is_lost(ready))
    }

    /// What has become of it, if the person has not been told. Says so once.
    pub(super) fn to_report(&self) -> Option<McpServerNews> {
        self.channel.news().take()
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
            tracing::warn!(server = self.name, %error, "cannot shut down an MCP server");
        }
    }
}
