//! A thread that is being folded while others look at it.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Thread;

/// A shared [`Thread`]: the connection folds into it, front ends read it and wait for changes.
/// Cloning it is cheap; all clones are the same thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadHandle(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    thread: Mutex<Thread>,
    changed: Notify,
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
        changed
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
