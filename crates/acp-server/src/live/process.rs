//! The process of a live agent: it starts for the first client, and ends when it is no longer needed.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp::v1::SessionId;
use acp_host::AgentProcess;
use acp_remote::CloseStatus;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

use super::agent::LiveAgent;
use super::log::ClientId;
use super::unwritten::{MAX_UNWRITTEN_BYTES, Unwritten};
use super::writer::write_changes;
use crate::metrics::AgentCounters;
use crate::node::NodeLease;
use crate::served_agent::AgentRunner;

/// The maximum length of a message of the agent, in bytes. Longer ones are ignored.
const MAX_AGENT_MESSAGE: usize = 64 * 1024 * 1024;

/// The maximum number of bytes to buffer for the agent before clients must wait.
const AGENT_BUFFER: usize = 256 * 1024;

/// How long the store may take to write what is left when the agent ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// How often to look for sessions that nobody uses.
const REST_INTERVAL: Duration = Duration::from_secs(30);

/// The maximum number of lines to handle at once.
const MAX_BATCH_LINES: usize = 256;

/// Splits input into lines.
pub(super) fn line_codec(max_length: usize) -> AnyDelimiterCodec {
    AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), b"\n".to_vec(), max_length)
}

/// A live agent, with the signals between its tasks.
#[derive(Debug)]
pub(super) struct SharedAgent {
    state: Mutex<LiveAgent>,
    /// Notified when there is something to write to the agent.
    agent_wake: Arc<Notify>,
    /// Notified when the buffer to the agent has been written.
    agent_room: Notify,
    /// Notified when the agent may have become idle, or is no longer.
    idle_changed: Notify,
    /// Notified when there is something to write to the store.
    pub(super) has_unwritten: Arc<Notify>,
    /// Notified when a batch has been written to the store.
    pub(super) store_room: Notify,
    /// Held while a session of the store is opened.
    pub(super) opening: tokio::sync::Mutex<()>,
    /// The lease with which the agent owns its sessions, if they are stored.
    pub(super) lease: Option<NodeLease>,
    ended: CancellationToken,
}

/// The running process of a live agent, if there is one.
#[derive(Debug, Default)]
pub(crate) struct LiveProcess {
    running: Mutex<Option<Arc<SharedAgent>>>,
}

impl LiveProcess {
    /// Adds a client to the agent. Starts the agent if it is not running.
    pub(super) fn add_client(
        &self,
        runner: &Arc<AgentRunner>,
        keep: Duration,
        wake: &Arc<Notify>,
    ) -> Result<(Arc<SharedAgent>, ClientId), CloseStatus> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = &*running
            && let Some(client) = agent.add_client(wake)
        {
            return Ok((Arc::clone(agent), client));
        }
        let agent = start(runner, keep)?;
        let client = agent.update(|agent| agent.add_client(Arc::clone(wake)));
        *running = Some(Arc::clone(&agent));
        Ok((agent, client))
    }

    /// Returns the agent. Starts it if it is not running.
    pub(super) fn start(
        &self,
        runner: &Arc<AgentRunner>,
        keep: Duration,
    ) -> Result<Arc<SharedAgent>, CloseStatus> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = &*running
            && !agent.lock().has_ended()
        {
            return Ok(Arc::clone(agent));
        }
        let agent = start(runner, keep)?;
        *running = Some(Arc::clone(&agent));
        Ok(agent)
    }
}

/// Starts the process, and a task that runs it.
fn start(runner: &Arc<AgentRunner>, keep: Duration) -> Result<Arc<SharedAgent>, CloseStatus> {
    let lease = match runner.node() {
        None => None,
        Some(node) => Some(node.lease().ok_or_else(|| {
            let reason = "this server cannot reach its store; try again";
            CloseStatus::new(CloseStatus::TRY_AGAIN_LATER, reason)
        })?),
    };
    let (process, stdio) = runner.spawn()?;
    let agent = Arc::new(SharedAgent::new(Arc::clone(&runner.counters), lease));
    let has_unwritten = Arc::clone(&agent.has_unwritten);
    agent.update(|agent| {
        if runner.node().is_some() {
            let wake = has_unwritten;
            agent.unwritten = Some(Unwritten::new(&runner.agent.name, wake));
        }
        agent.settings.clone_from(&runner.agent.settings);
        agent.is_private = runner.agent.is_private;
        let audit = runner.agent.audit.clone();
        agent.audit = audit.map(|log| (log, runner.agent.name.clone()));
    });
    let used = runner.usage.begin();
    let shared = Arc::clone(&agent);
    let runner = Arc::clone(runner);
    let connections = runner.connections.clone();
    connections.spawn(async move {
        let (stopped, failed) = (CancellationToken::new(), CancellationToken::new());
        let writer = runner
            .node()
            .zip(shared.lease.clone())
            .map(|(node, lease)| {
                let (node, shared) = (Arc::clone(node), Arc::clone(&shared));
                let (stopped, failed) = (stopped.clone(), failed.clone().drop_guard());
                tokio::spawn(async move {
                    let written = write_changes(&shared, &node, &lease, &stopped).await;
                    drop(failed);
                    written
                })
            });
        let (status, keeps_queue) = run(&shared, &runner, &process, stdio, keep, &failed).await;
        tracing::info!(%status, "shared agent ended");
        // From here on, no client is added.
        shared.update(|agent| agent.agent_ended(&status, keeps_queue));
        stopped.cancel();
        if let Some(writer) = writer {
            finish_writing(&shared, &runner, writer).await;
        }
        shared.lock().close_clients(&status);
        shared.ended.cancel();
        runner.shut_down(&process).await;
        drop(used);
    });
    Ok(agent)
}

/// Runs the agent until it exits, is no longer needed, or its changes cannot be written (`failed`). Returns whether another
/// server continues with the prompts that wait.
async fn run(
    agent: &SharedAgent,
    runner: &AgentRunner,
    process: &AgentProcess,
    (stdin, stdout): (ChildStdin, ChildStdout),
    keep: Duration,
    failed: &CancellationToken,
) -> (CloseStatus, bool) {
    let _running = runner.count_running();
    let drained = async {
        runner.draining.cancelled().await;
        if agent.lease.is_some() {
            // Another server runs the prompts that wait.
            agent.update(|agent| agent.starts_no_turns = true);
        }
        agent.wait_until(|agent| !agent.is_progressing()).await;
    };
    let going_away = |reason: &str| CloseStatus::new(CloseStatus::GOING_AWAY, reason);
    tokio::select! {
        biased;
        () = failed.cancelled() => {
            (going_away("this server cannot write to its store; connect again"), true)
        }
        end = agent.read(stdout) => (match end {
            Some(reason) => CloseStatus::failed(reason),
            None => runner.exit_status(process).await,
        }, false),
        () = agent.write(stdin) => (runner.exit_status(process).await, false),
        () = agent.wait_for_idle(keep) => (going_away("the agent was not used any more"), true),
        never = agent.forget_sessions_at_rest() => match never {},
        () = agent.wait_until(|agent| agent.is_stopped) => {
            (going_away("the agent was stopped"), false)
        }
        () = drained => (going_away("the server is shutting down"), true),
    }
}

/// Waits until everything is in the store, and then gives up the agent's sessions.
async fn finish_writing(
    agent: &SharedAgent,
    runner: &AgentRunner,
    mut writer: JoinHandle<Result<(), String>>,
) {
    let written = timeout(FLUSH_TIMEOUT, &mut writer).await;
    writer.abort();
    match written {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(reason))) => tracing::warn!("cannot write to the store: {reason}"),
        Ok(Err(error)) => tracing::error!(%error, "the store's writer failed"),
        Err(_) => tracing::warn!("the store does not respond; giving up"),
    }
    let (Some(node), Some(lease)) = (runner.node(), &agent.lease) else {
        return;
    };
    let owned = agent.lock().owned_sessions();
    if owned.is_empty() || lease.lost.is_cancelled() {
        return;
    }
    let released = node.store.release(owned, lease.id.clone());
    if let Ok(Err(error)) = timeout(FLUSH_TIMEOUT, released).await {
        tracing::warn!(%error, "cannot give up sessions; the lease expires by itself");
    }
}

impl SharedAgent {
    fn new(counters: Arc<AgentCounters>, lease: Option<NodeLease>) -> Self {
        let agent_wake = Arc::new(Notify::new());
        Self {
            state: Mutex::new(LiveAgent::new(Arc::clone(&agent_wake), counters)),
            agent_wake,
            agent_room: Notify::new(),
            idle_changed: Notify::new(),
            has_unwritten: Arc::default(),
            store_room: Notify::new(),
            opening: tokio::sync::Mutex::new(()),
            lease,
            ended: CancellationToken::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LiveAgent> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state. Wakes those who wait for the agent's work to end, if it has.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut LiveAgent) -> T) -> T {
        let mut agent = self.lock();
        let work = |agent: &LiveAgent| {
            let is_stopped = agent.is_stopped;
            let is_progressing = agent.is_progressing();
            (
                agent.is_idle(),
                is_progressing,
                is_stopped,
                agent.is_starting(),
            )
        };
        let before = work(&agent);
        let result = change(&mut agent);
        let is_changed = before != work(&agent);
        drop(agent);
        if is_changed {
            self.idle_changed.notify_waiters();
        }
        result
    }

    /// Adds a client, unless the agent has ended.
    fn add_client(&self, wake: &Arc<Notify>) -> Option<ClientId> {
        self.update(|agent| {
            let is_running = !agent.has_ended();
            is_running.then(|| agent.add_client(Arc::clone(wake)))
        })
    }

    /// Removes a client that has disconnected.
    pub(super) fn remove_client(&self, client: ClientId) {
        self.update(|agent| agent.remove_client(client));
    }

    /// Waits until the buffer to the agent has room.
    pub(super) async fn wait_for_room(&self) {
        self.wait_for_backlog(AGENT_BUFFER).await;
    }

    async fn wait_for_backlog(&self, limit: usize) {
        loop {
            let mut room = pin!(self.agent_room.notified());
            room.as_mut().enable();
            if self.lock().agent_backlog() <= limit || self.ended.is_cancelled() {
                return;
            }
            room.await;
        }
    }

    /// Handles the agent's messages. Returns when it closes its output, or with the reason why it cannot be used.
    async fn read(&self, stdout: ChildStdout) -> Option<String> {
        let lines = FramedRead::new(stdout, line_codec(MAX_AGENT_MESSAGE));
        let mut batches = pin!(lines.ready_chunks(MAX_BATCH_LINES));
        while let Some(batch) = batches.next().await {
            if let Err(reason) = self.handle_batch(batch) {
                return Some(reason);
            }
            // An agent that does not read what it is sent gets no more responses.
            self.wait_for_backlog(4 * AGENT_BUFFER).await;
            self.wait_for_store().await;
        }
        None
    }

    /// Waits until the end of a session is written, if it has just been closed.
    pub(super) async fn wait_until_ended(&self, session: &SessionId) {
        loop {
            let mut written = pin!(self.store_room.notified());
            written.as_mut().enable();
            if !self.lock().is_ending(session) {
                return;
            }
            written.await;
        }
    }

    /// Waits until the store has written most of what the agent has sent.
    async fn wait_for_store(&self) {
        loop {
            let mut room = pin!(self.store_room.notified());
            room.as_mut().enable();
            if self.lock().unwritten_bytes() <= MAX_UNWRITTEN_BYTES {
                return;
            }
            room.await;
        }
    }

    /// Handles several lines of the agent, or errors of the codec.
    fn handle_batch(
        &self,
        batch: Vec<Result<Bytes, AnyDelimiterCodecError>>,
    ) -> Result<(), String> {
        self.update(|agent| {
            for line in batch {
                match line {
                    Ok(line) => {
                        let line = line.strip_suffix(b"\r").unwrap_or(&line);
                        agent.handle_agent_line(line)?;
                    }
                    Err(AnyDelimiterCodecError::MaxChunkLengthExceeded) => {
                        tracing::warn!(
                            limit = MAX_AGENT_MESSAGE,
                            "ignoring a message of the agent that is too long"
                        );
                    }
                    Err(AnyDelimiterCodecError::Io(error)) => return Err(error.to_string()),
                }
            }
            Ok(())
        })
    }

    /// Writes to the agent. Returns when it no longer reads.
    async fn write(&self, mut stdin: ChildStdin) {
        loop {
            let bytes = self.lock().take_agent_output();
            if bytes.is_empty() {
                self.agent_wake.notified().await;
                continue;
            }
            self.agent_room.notify_waiters();
            if stdin.write_all(&bytes).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    }

    /// Removes stored sessions from memory that nobody uses.
    async fn forget_sessions_at_rest(&self) -> Infallible {
        loop {
            sleep(REST_INTERVAL).await;
            self.update(LiveAgent::forget_sessions_at_rest);
        }
    }

    /// Waits until a condition is true.
    pub(super) async fn wait_until(&self, condition: impl Fn(&LiveAgent) -> bool) {
        loop {
            let mut changed = pin!(self.idle_changed.notified());
            changed.as_mut().enable();
            if condition(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until the agent has been idle for some time.
    async fn wait_for_idle(&self, keep: Duration) {
        loop {
            self.wait_until(LiveAgent::is_idle).await;
            let keep = match self.lock().ends_when_idle {
                true => Duration::ZERO,
                false => keep,
            };
            tokio::select! {
                () = sleep(keep) => {}
                () = self.wait_until(|agent| !agent.is_idle()) => continue,
            }
            // A client may have connected just now.
            if self.lock().end_if_idle() {
                return;
            }
        }
    }
}
