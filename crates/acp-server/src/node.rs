//! This server as a node of a store: its lease.

use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_remote::Token;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::store::{LiveStore, LiveStoreError, NodeId, NodeInfo};

/// How long to wait before the store is tried again.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The minimum duration of a lease.
const MIN_LEASE: Duration = Duration::from_millis(500);

/// How a server uses a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeOptions {
    /// How long the server's sessions stay its own when it does not renew its lease.
    pub lease: Duration,
    /// The URL at which the other servers of the store reach this one. They pass clients on to it. Without one, they
    /// cannot.
    pub address: Option<String>,
    /// The token with which this server connects to the others.
    pub token: Option<Token>,
}

impl NodeOptions {
    /// Creates options with this lease. It has at least half a second.
    #[must_use]
    pub fn new(lease: Duration) -> Self {
        Self {
            lease: lease.max(MIN_LEASE),
            address: None,
            token: None,
        }
    }
}

/// A lease: this server owns the sessions that it claims with it.
#[derive(Debug, Clone)]
pub(crate) struct NodeLease {
    pub(crate) id: NodeId,
    /// Cancelled when the lease may have expired.
    pub(crate) lost: CancellationToken,
    /// Until when it is valid by this server's clock, unless it is renewed.
    valid_until: Instant,
}

/// A server that stores its live sessions.
#[derive(Debug)]
pub(crate) struct StoreNode {
    pub(crate) store: Arc<dyn LiveStore>,
    pub(crate) options: NodeOptions,
    /// The current lease. `None` while the store cannot be reached.
    lease: watch::Sender<Option<NodeLease>>,
}

impl StoreNode {
    /// Joins a store.
    pub(crate) async fn join(
        store: Arc<dyn LiveStore>,
        options: NodeOptions,
    ) -> Result<Self, LiveStoreError> {
        let lease = watch::Sender::new(None);
        let node = Self {
            store,
            options,
            lease,
        };
        let lease = node.new_lease().await?;
        node.lease.send_replace(Some(lease));
        Ok(node)
    }

    /// Returns the current lease. `None` while the store cannot be reached.
    pub(crate) fn lease(&self) -> Option<NodeLease> {
        self.lease.borrow().clone()
    }

    /// Joins with a new id.
    async fn new_lease(&self) -> Result<NodeLease, LiveStoreError> {
        let id = NodeId(format!("{:032x}", fastrand::u128(..)));
        let asked_at = Instant::now();
        let info = NodeInfo {
            id: id.clone(),
            address: self.options.address.clone(),
        };
        self.store.join(info, self.options.lease).await?;
        Ok(NodeLease {
            id,
            lost: CancellationToken::new(),
            valid_until: asked_at + self.options.lease,
        })
    }

    /// Renews the lease until it is stopped. If the lease expires, joins with a new one.
    pub(crate) async fn keep_lease(&self, stopped: &CancellationToken) {
        let keep = async {
            loop {
                if let Some(lease) = self.lease() {
                    self.renew_until_lost(&lease).await;
                    tracing::warn!(node = %lease.id, "the lease of this server has expired");
                    self.lease.send_replace(None);
                    lease.lost.cancel();
                }
                match self.new_lease().await {
                    Ok(lease) => {
                        tracing::info!(node = %lease.id, "joined the store");
                        self.lease.send_replace(Some(lease));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot join the store");
                        sleep(self.options.lease / 4).await;
                    }
                }
            }
        };
        tokio::select! {
            () = stopped.cancelled() => {}
            () = keep => {}
        }
    }

    /// Renews a lease. Returns when it has expired, or may have.
    async fn renew_until_lost(&self, lease: &NodeLease) {
        let duration = self.options.lease;
        let mut valid_until = lease.valid_until;
        loop {
            sleep(duration / 3).await;
            // From here on, the lease is valid only if the store says so in time. A paused process notices here.
            loop {
                let asked_at = Instant::now();
                let left = valid_until.saturating_duration_since(asked_at);
                if left.is_zero() {
                    return;
                }
                let renewed = self.store.renew(lease.id.clone(), duration);
                match tokio::time::timeout(left, renewed).await {
                    Ok(Ok(())) => {
                        valid_until = asked_at + duration;
                        break;
                    }
                    Ok(Err(LiveStoreError::LeaseExpired)) | Err(_) => return,
                    Ok(Err(error)) => {
                        tracing::warn!(%error, "cannot renew the lease of this server");
                        sleep(RETRY_DELAY).await;
                    }
                }
            }
        }
    }

    /// Gives up the lease and all sessions.
    pub(crate) async fn leave(&self) {
        let Some(lease) = self.lease.send_replace(None) else {
            return;
        };
        lease.lost.cancel();
        if let Err(error) = self.store.leave(lease.id).await {
            tracing::warn!(%error, "cannot leave the store; the lease of this server expires by itself");
        }
    }
}
