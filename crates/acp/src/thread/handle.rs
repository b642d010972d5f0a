//! A thread that is being folded while others look at it.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use acp_wire::v1::SessionId;
use tokio::sync::Notify;

use super::Thread;

/// A shared [`Thread`]: the connection folds into it, front ends read it and wait for changes.
/// Cloning it is cheap; all clones are the same thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadHandle(Arc<SharedThread>);

#[derive(Debug, Default)]
struct SharedThread {
    thread: Mutex<Thread>,
    changed: Notify,
    /// The thread that shows this one as its subagent's, and the subagent.
    parent: OnceLock<(Weak<SharedThread>, SessionId)>,
}

impl ThreadHandle {
    /// An empty thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Thread> {
        self.0.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the thread. Nothing is folded meanwhile, so be quick; and `look` must not look at, or
    /// change, the same thread through a handle, for it would wait for itself.
    pub fn read<T>(&self, look: impl FnOnce(&Thread) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the thread and tells those who wait.
    pub fn change<T>(&self, change: impl FnOnce(&mut Thread) -> T) -> T {
        let changed = change(&mut self.lock());
        self.0.changed.notify_waiters();
        if let Some((above, subagent)) = self.0.parent.get()
            && let Some(above) = above.upgrade()
        {
            Self(above).touch_subagent(subagent);
        }
        changed
    }

    /// A subagent has changed, and with it whatever shows this thread. A lock is never waited for while one below it is
    /// held.
    fn touch_subagent(&self, subagent: &SessionId) {
        self.lock().touch_subagent(subagent);
        self.0.changed.notify_waiters();
        if let Some((above, subagent)) = self.0.parent.get()
            && let Some(above) = above.upgrade()
        {
            Self(above).touch_subagent(subagent);
        }
    }

    /// From here on `parent` is told when this thread changes, which is that of its subagent with this id. A thread
    /// belongs to one other at most, and none to itself.
    pub(crate) fn set_parent(&self, above: &Self, subagent: &SessionId) {
        let above = Arc::downgrade(&above.0);
        // Otherwise it belongs to another already, which shows it.
        let _ = self.0.parent.set((above, subagent.clone()));
    }

    /// Waits until the thread's revision is beyond `seen`, and gives it. However many changes came
    /// in between, it is one wake-up: a slow reader falls behind in pictures, not in content.
    pub async fn changed(&self, seen: u64) -> u64 {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // Registered before looking, so that a change in between is not missed.
            changed.as_mut().enable();
            let revision = self.lock().revision();
            if revision > seen {
                return revision;
            }
            changed.await;
        }
    }
}
