//! What a store of live sessions does.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::error::LiveStoreError;
use super::record::{
    LiveSessionChange, LiveSessionFilter, LiveSessionKey, LiveSessionPage, LogPage, NodeId,
    NodeInfo, StoreSummary, StoredLiveSession,
};

/// What a method of a store returns.
pub type LiveStoreFuture<'a, T> = BoxFuture<'a, Result<T, LiveStoreError>>;

/// The result of [`LiveStore::claim`].
#[derive(Debug)]
pub enum SessionClaim {
    /// There is no such session.
    Unknown,
    /// The node owns the session now. Its fencing token is new.
    Granted(Box<StoredLiveSession>),
    /// Another node owns it, and its lease is valid.
    Held(NodeInfo),
}

/// Stores live sessions. Several servers can use one store at the same time.
///
/// A server joins as a node, and has a lease that it must renew. Each session has at most one owner: a node, with a
/// fencing token. As long as the lease of the owner is valid, no other node can claim the session. When it has expired,
/// any node can, and gets a higher token. Changes with a lower token are rejected. So a node that was paused cannot
/// change a session that another one owns by now. The store's clock alone decides when a lease expires.
///
/// A change is durable when the method returns. Repeating a change that was written already has no effect, so a caller
/// can repeat it when it does not know whether it was written.
pub trait LiveStore: Debug + Send + Sync {
    /// Adds a node, whose lease expires after this time.
    fn join(&self, node: NodeInfo, lease: Duration) -> LiveStoreFuture<'_, ()>;

    /// Renews the lease of a node.
    ///
    /// # Errors
    /// [`LeaseExpired`](LiveStoreError::LeaseExpired): the lease has expired before. The node must not use its sessions
    /// any more, and must join again with another id.
    fn renew(&self, node: NodeId, lease: Duration) -> LiveStoreFuture<'_, ()>;

    /// Removes a node. Its sessions have no owner then.
    fn leave(&self, node: NodeId) -> LiveStoreFuture<'_, ()>;

    /// Makes a node the owner of a session, unless another node with a valid lease owns it. If the node owns it
    /// already, it gets a new token all the same.
    ///
    /// # Errors
    /// [`LeaseExpired`](LiveStoreError::LeaseExpired): the lease of the node that claims has expired.
    fn claim(&self, session: LiveSessionKey, node: NodeId) -> LiveStoreFuture<'_, SessionClaim>;

    /// Gives sessions of a node up, so that any node can claim them. Sessions with another token are left as they are.
    fn release(
        &self,
        sessions: Vec<(LiveSessionKey, super::FencingToken)>,
        node: NodeId,
    ) -> LiveStoreFuture<'_, ()>;

    /// Writes changes of several sessions in one transaction. Returns the sessions that were not changed because this
    /// node does not own them with this token any more, or because a new session exists already.
    fn write(
        &self,
        node: NodeId,
        changes: Vec<LiveSessionChange>,
    ) -> LiveStoreFuture<'_, Vec<LiveSessionKey>>;

    /// Returns a session, whoever owns it.
    fn find(&self, session: LiveSessionKey) -> LiveStoreFuture<'_, Option<StoredLiveSession>>;

    /// Returns the lines of a session's log from a number on, up to about `max_bytes`, but at least one.
    fn read_log(
        &self,
        session: LiveSessionKey,
        from: u64,
        max_bytes: usize,
    ) -> LiveStoreFuture<'_, LogPage>;

    /// Returns the names of the agents that have sessions.
    fn agents(&self) -> LiveStoreFuture<'_, Vec<String>>;

    /// Returns the sessions of an agent, or those of one working directory. Those that changed last come first.
    fn list(
        &self,
        agent: String,
        filter: LiveSessionFilter,
        cursor: Option<String>,
        limit: usize,
    ) -> LiveStoreFuture<'_, LiveSessionPage>;

    /// Returns sessions of an agent that have a prompt that waits or runs, but no owner whose lease is valid.
    fn abandoned(&self, agent: String, limit: usize) -> LiveStoreFuture<'_, Vec<LiveSessionKey>>;

    /// Deletes a session, if the node owns it.
    fn delete(&self, session: LiveSessionKey, node: NodeId) -> LiveStoreFuture<'_, ()>;

    /// Returns what the store contains.
    fn summary(&self) -> LiveStoreFuture<'_, StoreSummary>;

    /// Waits until a node has given up sessions, or has failed to. May return without a reason.
    fn sessions_released(&self) -> BoxFuture<'_, ()>;
}
