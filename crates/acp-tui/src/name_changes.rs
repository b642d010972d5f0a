//! Changes of session names, which are stored in a file.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

/// How long quitting waits for changes.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Makes changes in the background, one after another in their order: a name that moves to a copy of a session and back
/// must end where it was. Quitting waits for them. Otherwise a name could be left at a session that is discarded.
#[derive(Debug, Default)]
pub(crate) struct NameChanges {
    /// The last change that was started. It waits for the one before it.
    last: Mutex<Option<JoinHandle<()>>>,
}

impl NameChanges {
    /// Makes a change after those before it.
    pub(crate) fn start(&self, change: impl Future<Output = ()> + Send + 'static) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.take();
        *last = Some(tokio::spawn(async move {
            if let Some(before) = before {
                // A change that failed has reported it.
                let _ = before.await;
            }
            change.await;
        }));
    }

    /// Waits for all changes, but not for long.
    pub(crate) async fn finish(&self) {
        let pending = {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.take()
        };
        if let Some(pending) = pending {
            let _ = tokio::time::timeout(QUIT_TIMEOUT, pending).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn changes_are_made_in_order_and_awaited_at_the_end() {
        let changes = NameChanges::default();
        let (made, go) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
        for number in 0..3 {
            let (made, go) = (Arc::clone(&made), Arc::clone(&go));
            changes.start(async move {
                if number == 0 {
                    go.notified().await;
                }
                made.lock().unwrap().push(number);
            });
        }
        tokio::task::yield_now().await;
        assert!(made.lock().unwrap().is_empty());
        go.notify_one();
        changes.finish().await;
        assert_eq!(*made.lock().unwrap(), [0, 1, 2]);
    }
}
