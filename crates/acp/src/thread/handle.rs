//! A thread that is shared between the connection and front ends.

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
    /// The thread that shows this one as a subagent's, and the subagent's session.
    parent: OnceLock<(Weak<SharedThread>, SessionId)>,
}

impl ThreadHandle {
    /// Creates an empty thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Thread> {
        self.0.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the thread. It cannot change meanwhile, so be quick. `look` must not read or change the same thread
    /// through a handle: this would deadlock.
    pub fn read<T>(&self, look: impl FnOnce(&Thread) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the thread and notifies those who wait.
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

    /// Marks a subagent as changed, in all threads above this one. Never waits for a lock while a lower one is held.
    fn touch_subagent(&self, subagent: &SessionId) {
        self.lock().touch_subagent(subagent);
        self.0.changed.notify_waiters();
        if let Some((above, subagent)) = self.0.parent.get()
            && let Some(above) = above.upgrade()
        {
            Self(above).touch_subagent(subagent);
        }
    }

    /// Sets the thread that is notified when this one changes, as that of its subagent with this id. A thread has at
    /// most one parent, and is never its own.
    pub(crate) fn set_parent(&self, above: &Self, subagent: &SessionId) {
        let above = Arc::downgrade(&above.0);
        // Fails if the thread has a parent already, which shows it.
        let _ = self.0.parent.set((above, subagent.clone()));
    }

    /// Waits until the thread's revision is greater than `seen`, and returns it. Any number of changes causes one
    /// wake-up: a slow reader misses intermediate states, never content.
    pub async fn changed(&self, seen: u64) -> u64 {
        loop {
            let mut changed = pin!(self.0.changed.notified());
            // Register before checking, so that a change in between is not missed.
            changed.as_mut().enable();
            let revision = self.lock().revision();
            if revision > seen {
                return revision;
            }
            changed.await;
        }
    }
}
