//! Copies the sessions of one store into another.

use std::time::Duration;

use super::error::LiveStoreError;
use super::live_store::LiveStore;
use super::record::{
    FencingToken, LiveSessionChange, LiveSessionFilter, LiveSessionKey, LogPage, NodeId, NodeInfo,
    StoredLiveSession,
};

/// The number of sessions to list at once.
const SESSIONS_PER_PAGE: usize = 100;

/// The size of the parts in which logs are copied, in bytes.
const COPY_SIZE: usize = 1024 * 1024;

/// The lease with which the copies are made.
const LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// What [`copy_sessions`] has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopiedSessions {
    /// The number of sessions that were copied.
    pub copied: u64,
    /// The number of sessions that the other store contains already.
    pub skipped: u64,
}

/// Copies the sessions of a store into another one. Those that are in both are left as they are. Nobody owns the copies.
///
/// # Errors
/// A store fails. What was copied until then stays, except for the session that was being copied.
pub async fn copy_sessions(
    from: &dyn LiveStore,
    to: &dyn LiveStore,
) -> Result<CopiedSessions, LiveStoreError> {
    let node = NodeId(format!("{:032x}", fastrand::u128(..)));
    let info = NodeInfo {
        id: node.clone(),
        address: None,
    };
    to.join(info, LEASE).await?;
    let copied = copy_all(from, to, &node).await;
    to.leave(node).await?;
    copied
}

async fn copy_all(
    from: &dyn LiveStore,
    to: &dyn LiveStore,
    node: &NodeId,
) -> Result<CopiedSessions, LiveStoreError> {
    let mut copied = CopiedSessions::default();
    for agent in from.agents().await? {
        let mut cursor = None;
        loop {
            let listed = from.list(
                agent.clone(),
                LiveSessionFilter::default(),
                cursor,
                SESSIONS_PER_PAGE,
            );
            let page = listed.await?;
            for session in page.sessions {
                let Some(stored) = from.find(session.key).await? else {
                    continue;
                };
                let key = stored.key.clone();
                if to.find(key.clone()).await?.is_some() {
                    copied.skipped += 1;
                    continue;
                }
                if let Err(error) = copy_session(from, to, node, stored).await {
                    // Half a session would look like a whole one.
                    to.delete(key, node.clone()).await?;
                    return Err(error);
                }
                copied.copied += 1;
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(copied)
}

async fn copy_session(
    from: &dyn LiveStore,
    to: &dyn LiveStore,
    node: &NodeId,
    stored: StoredLiveSession,
) -> Result<(), LiveStoreError> {
    let key: LiveSessionKey = stored.key.clone();
    let mut change = LiveSessionChange {
        key: key.clone(),
        token: FencingToken(1),
        is_new: true,
        head: Some(stored.head),
        next_line: stored.next_line,
        next_prompt: stored.next_prompt,
        replaced: Vec::new(),
        lines: Vec::new(),
        prompts: stored.prompts,
    };
    let mut next = Some(0);
    while let Some(number) = next {
        let LogPage { lines, next: more } = from.read_log(key.clone(), number, COPY_SIZE).await?;
        change.lines = lines;
        to.write(node.clone(), vec![change.clone()]).await?;
        change.is_new = false;
        change.head = None;
        change.prompts = Vec::new();
        next = more;
    }
    Ok(())
}
