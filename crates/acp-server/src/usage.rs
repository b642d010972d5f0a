//! Whether a server is in use.

use std::sync::Arc;

use tokio::sync::watch;

/// Counts what a server is used for: connections, and processes that connections share.
#[derive(Debug, Clone)]
pub(crate) struct ServerUsage(Arc<watch::Sender<usize>>);

/// A use of the server, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct UsageGuard(Arc<watch::Sender<usize>>);

impl Default for ServerUsage {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }
}

impl ServerUsage {
    /// Counts a use until the guard is dropped.
    pub(crate) fn begin(&self) -> UsageGuard {
        self.0.send_modify(|count| *count += 1);
        UsageGuard(Arc::clone(&self.0))
    }

    pub(crate) fn is_used(&self) -> bool {
        *self.0.borrow() > 0
    }

    pub(crate) async fn wait_until_unused(&self) {
        // The sender is not dropped while this waits.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }

    pub(crate) async fn wait_until_used(&self) {
        let _ = self.0.subscribe().wait_for(|count| *count > 0).await;
    }
}

impl Drop for UsageGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
