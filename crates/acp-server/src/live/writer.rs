//! Writes what has changed in a live agent's sessions to the store.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::process::SharedAgent;
use super::unwritten::{EndedSession, UnwrittenBatch};
use crate::node::{NodeLease, StoreNode};
use crate::store::{LiveSessionKey, LiveStoreError, LiveStoreFuture};

/// How long to wait before a change is written again that could not be written.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Writes changes until it is `stopped` and everything is written, or until the lease is lost or the store fails. The
/// reason why it cannot continue is returned.
pub(super) async fn write_changes(
    agent: &SharedAgent,
    node: &StoreNode,
    lease: &NodeLease,
    stopped: &CancellationToken,
) -> Result<(), String> {
    loop {
        let is_stopped = stopped.is_cancelled();
        let batch = agent.update(|agent| agent.take_unwritten());
        let Some(batch) = batch else {
            if is_stopped {
                return Ok(());
            }
            tokio::select! {
                () = agent.has_unwritten.notified() => {}
                () = stopped.cancelled() => {}
            }
            continue;
        };
        let lost = tokio::select! {
            biased;
            lost = write_batch(&batch, node, lease) => lost.map_err(|error| error.to_string())?,
            () = lease.lost.cancelled() => return Err("this server has lost its lease".to_owned()),
        };
        agent.update(|agent| agent.batch_written(&lost));
        agent.store_room.notify_waiters();
    }
}

/// Writes a batch. While the store cannot be reached, tries again. Returns the sessions that another server owns.
async fn write_batch(
    batch: &UnwrittenBatch,
    node: &StoreNode,
    lease: &NodeLease,
) -> Result<Vec<LiveSessionKey>, LiveStoreError> {
    let lost = match batch.changes.is_empty() {
        true => Vec::new(),
        false => retry(|| node.store.write(lease.id.clone(), batch.changes.clone())).await?,
    };
    let (deleted, closed): (Vec<&EndedSession>, Vec<&EndedSession>) =
        batch.ended.iter().partition(|ended| ended.is_deleted);
    for session in deleted {
        retry(|| node.store.delete(session.key.clone(), lease.id.clone())).await?;
    }
    if !closed.is_empty() {
        let sessions = closed.iter().map(|ended| (ended.key.clone(), ended.token));
        let sessions: Vec<_> = sessions.collect();
        retry(|| node.store.release(sessions.clone(), lease.id.clone())).await?;
    }
    Ok(lost)
}

/// Calls the store until it can be reached.
async fn retry<'a, T>(call: impl Fn() -> LiveStoreFuture<'a, T>) -> Result<T, LiveStoreError> {
    loop {
        match call().await {
            Err(LiveStoreError::Unavailable(error)) => {
                tracing::warn!(%error, "cannot reach the store; trying again");
                sleep(RETRY_DELAY).await;
            }
            result => return result,
        }
    }
}
