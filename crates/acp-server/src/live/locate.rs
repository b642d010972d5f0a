//! Finds out which server owns a session, and claims those that nobody owns.

use std::sync::Arc;

use acp::v1::SessionId;
use tokio::time::{sleep, timeout};

use super::process::SharedAgent;
use super::reopen::session_directories;
use crate::node::StoreNode;
use crate::roots::RootError;
use crate::served_agent::AgentRunner;
use crate::store::{LiveSessionKey, LiveStoreError, LoggedLine, NodeInfo, SessionClaim};

/// The size of the parts in which a log is read from the store, in bytes.
const READ_SIZE: usize = 4 * 1024 * 1024;

/// How many sessions to take over at once.
const MAX_TAKEN_OVER: usize = 16;

/// Where a session is.
#[derive(Debug)]
pub(super) enum SessionPlace {
    /// This server owns it, and it is live.
    Here,
    /// Another server owns it.
    At(NodeInfo),
    /// The store does not contain it.
    Unknown,
}

/// The reason why a session cannot be found or opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum LocateError {
    #[error(transparent)]
    Store(#[from] LiveStoreError),
    /// Its directories are not those that this server lets clients open.
    #[error("cannot open session {0} on this server: {1}")]
    NotAllowed(SessionId, RootError),
}

/// Finds a session. If nobody owns it, it becomes live on this server.
pub(super) async fn locate(
    runner: &AgentRunner,
    agent: &SharedAgent,
    id: &SessionId,
) -> Result<SessionPlace, LocateError> {
    let (Some(node), Some(lease)) = (runner.node(), &agent.lease) else {
        return Ok(SessionPlace::Unknown);
    };
    // What the agent supports decides how it opens the session.
    agent.wait_until(|agent| !agent.is_starting()).await;
    let _opening = agent.opening.lock().await;
    agent.wait_until_ended(id).await;
    if agent.lock().sessions.contains_key(id) {
        return Ok(SessionPlace::Here);
    }
    let key = LiveSessionKey {
        agent: runner.agent.name.clone(),
        session: id.to_string(),
    };
    // Another server of the store may have allowed other directories.
    if let Some(stored) = node.store.find(key.clone()).await? {
        for directory in session_directories(&stored.head) {
            let checked = runner.roots().check(&directory);
            checked.map_err(|error| LocateError::NotAllowed(id.clone(), error))?;
        }
    }
    let stored = match node.store.claim(key.clone(), lease.id.clone()).await? {
        SessionClaim::Unknown => return Ok(SessionPlace::Unknown),
        SessionClaim::Held(owner) => return Ok(SessionPlace::At(owner)),
        SessionClaim::Granted(stored) => stored,
    };
    let max_bytes = agent.lock().max_log_bytes;
    let lines = read_log(node, &key, max_bytes).await?;
    tracing::info!(session = %id, token = stored.token.0, "claimed a session");
    agent.update(|agent| agent.reopen(*stored, lines));
    Ok(SessionPlace::Here)
}

/// Returns the name of the user who has created a session. Returns `None` if that is not known.
pub(super) async fn creator(
    runner: &AgentRunner,
    agent: &SharedAgent,
    id: &SessionId,
) -> Option<String> {
    {
        let agent = agent.lock();
        let root = agent.root_session(id);
        if let Some(session) = agent.sessions.get(&root) {
            return session.creator.clone();
        }
    }
    let key = LiveSessionKey {
        agent: runner.agent.name.clone(),
        session: id.to_string(),
    };
    let stored = runner.node()?.store.find(key).await;
    stored.ok().flatten()?.head.creator
}

/// Reads the log of a session, without its oldest lines if it is longer than `max_bytes`.
async fn read_log(
    node: &StoreNode,
    key: &LiveSessionKey,
    max_bytes: usize,
) -> Result<Vec<LoggedLine>, LiveStoreError> {
    let mut lines: Vec<LoggedLine> = Vec::new();
    let mut bytes = 0;
    let mut next = Some(0);
    while let Some(from) = next {
        let page = node.store.read_log(key.clone(), from, READ_SIZE).await?;
        bytes += page.lines.iter().map(|line| line.line.len()).sum::<usize>();
        lines.extend(page.lines);
        next = page.next;
        let mut dropped = 0;
        while bytes > max_bytes && dropped < lines.len() {
            bytes -= lines[dropped].line.len();
            dropped += 1;
        }
        lines.drain(..dropped);
    }
    Ok(lines)
}

/// Takes over sessions whose owner has stopped in the middle of its work, until the server shuts down.
pub(crate) async fn take_over_sessions(runner: Arc<AgentRunner>) {
    let (Some(node), Some(keep)) = (runner.node().cloned(), runner.agent.keep()) else {
        return;
    };
    let take_over = async {
        loop {
            tokio::select! {
                () = node.store.sessions_released() => {}
                () = sleep(node.options.lease / 2) => {}
            }
            if node.lease().is_none() {
                continue;
            }
            let name = runner.agent.name.clone();
            let abandoned = match node.store.abandoned(name, MAX_TAKEN_OVER).await {
                Ok(abandoned) => abandoned,
                Err(error) => {
                    tracing::warn!(%error, "cannot look for sessions to take over");
                    sleep(node.options.lease / 2).await;
                    continue;
                }
            };
            if abandoned.is_empty() {
                continue;
            }
            let agent = match runner.live.start(&runner, keep) {
                Ok(agent) => agent,
                Err(status) => {
                    tracing::warn!(%status, "cannot take over sessions");
                    continue;
                }
            };
            for key in abandoned {
                let id = SessionId::from(key.session);
                let located = timeout(node.options.lease, locate(&runner, &agent, &id)).await;
                if let Ok(Err(error)) = located {
                    tracing::warn!(session = %id, %error, "cannot take over a session");
                }
            }
        }
    };
    tokio::select! {
        () = runner.draining.cancelled() => {}
        () = take_over => {}
    }
}
