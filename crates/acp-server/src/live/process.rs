//! The process of a live agent: it starts for the first client, and ends when it is no longer needed.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_host::AgentProcess;
use acp_remote::CloseStatus;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::sync::CancellationToken;

use super::agent::LiveAgent;
use super::log::ClientId;
use crate::metrics::AgentCounters;
use crate::served_agent::AgentRunner;

/// The maximum length of a message of the agent, in bytes. Longer ones are ignored.
const MAX_AGENT_MESSAGE: usize = 64 * 1024 * 1024;

/// The maximum number of bytes to buffer for the agent before clients must wait.
const AGENT_BUFFER: usize = 256 * 1024;

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
}

/// Starts the process, and a task that runs it.
fn start(runner: &Arc<AgentRunner>, keep: Duration) -> Result<Arc<SharedAgent>, CloseStatus> {
    let (process, stdio) = runner.spawn()?;
    let agent = Arc::new(SharedAgent::new(Arc::clone(&runner.counters)));
    agent.update(|agent| {
        agent.settings.clone_from(&runner.agent.settings);
        agent.is_private = runner.agent.is_private;
    });
    let used = runner.usage.begin();
    let shared = Arc::clone(&agent);
    let runner = Arc::clone(runner);
    let connections = runner.connections.clone();
    connections.spawn(async move {
        let status = run(&shared, &runner, &process, stdio, keep).await;
        tracing::info!(%status, "shared agent ended");
        // From here on, no client is added.
        shared.lock().agent_ended(&status);
        shared.ended.cancel();
        runner.shut_down(&process).await;
        drop(used);
    });
    Ok(agent)
}

/// Runs the agent until it exits, or is no longer needed.
async fn run(
    agent: &SharedAgent,
    runner: &AgentRunner,
    process: &AgentProcess,
    (stdin, stdout): (ChildStdin, ChildStdout),
    keep: Duration,
) -> CloseStatus {
    let _running = runner.count_running();
    let drained = async {
        runner.draining.cancelled().await;
        agent.wait_until(|agent| !agent.is_progressing()).await;
    };
    tokio::select! {
        biased;
        end = agent.read(stdout) => match end {
            Some(reason) => CloseStatus::failed(reason),
            None => runner.exit_status(process).await,
        },
        () = agent.write(stdin) => runner.exit_status(process).await,
        () = agent.wait_for_idle(keep) => {
            CloseStatus::new(CloseStatus::GOING_AWAY, "the agent was not used any more")
        }
        () = agent.wait_until(|agent| agent.is_stopped) => {
            CloseStatus::new(CloseStatus::GOING_AWAY, "the agent was stopped")
        }
        () = drained => CloseStatus::new(CloseStatus::GOING_AWAY, "the server is shutting down"),
    }
}

impl SharedAgent {
    fn new(counters: Arc<AgentCounters>) -> Self {
        let agent_wake = Arc::new(Notify::new());
        Self {
            state: Mutex::new(LiveAgent::new(Arc::clone(&agent_wake), counters)),
            agent_wake,
            agent_room: Notify::new(),
            idle_changed: Notify::new(),
            ended: CancellationToken::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, LiveAgent> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state. Wakes those who wait for the agent's work to end, if it has.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut LiveAgent) -> T) -> T {
        let mut agent = self.lock();
        let work = |agent: &LiveAgent| (agent.is_idle(), agent.is_progressing(), agent.is_stopped);
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
        }
        None
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

    /// Waits until a condition is true.
    async fn wait_until(&self, condition: impl Fn(&LiveAgent) -> bool) {
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
