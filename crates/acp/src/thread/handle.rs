//! Thread handles, shared by a connection and its front ends.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use acp_wire::v1::SessionId;
use tokio::sync::Notify;

use super::Thread;

/// A shared [`Thread`]. The connection updates it, and front ends read it and wait for changes. Clones are cheap and
/// refer to the same thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadHandle(Arc<SharedThread>);

#[derive(Debug, Default)]
struct SharedThread {
    thread: Mutex<Thread>,
    changed: Notify,
    /// The parent's thread, if this is a subagent's thread.
    parent: OnceLock<ThreadParent>,
}

/// The parent of a subagent's thread, with the session ids of the parent and the subagent.
#[derive(Debug)]
struct ThreadParent {
    thread: Weak<SharedThread>,
    /// The id of the session that announced the subagent.
    session_id: SessionId,
    /// The id of the subagent's session.
    subagent_id: SessionId,
}

/// A subagent's name and the root session for which it works.
pub(crate) struct SubagentOrigin {
    /// The id of the session that the user opened.
    pub(crate) root_session_id: SessionId,
    /// The name of the subagent.
    pub(crate) name: String,
}

impl ThreadHandle {
    /// Creates a handle to a new, empty thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns `true` if `self` and `other` refer to the same thread.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn lock(&self) -> MutexGuard<'_, Thread> {
        self.0.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the thread, passes it to `look`, and returns the result. `look` should be quick. It must not use a handle
    /// to the same thread, because that would deadlock.
    pub fn read<T>(&self, look: impl FnOnce(&Thread) -> T) -> T {
        look(&self.lock())
    }

    /// Locks the thread, changes it with `change`, and wakes everything that waits for a change.
    pub fn change<T>(&self, change: impl FnOnce(&mut Thread) -> T) -> T {
        let changed = change(&mut self.lock());
        self.0.changed.notify_waiters();
        self.touch_parent();
        changed
    }

    /// Marks a subagent as changed in this thread and its ancestors. Never waits for a lock while holding a
    /// descendant's lock.
    fn touch_subagent(&self, subagent: &SessionId) {
        self.lock().touch_subagent(subagent);
        self.0.changed.notify_waiters();
        self.touch_parent();
    }

    /// Notifies the parent's thread, if any, that this thread has changed.
    fn touch_parent(&self) {
        if let Some(parent) = self.0.parent.get()
            && let Some(above) = parent.thread.upgrade()
        {
            Self(above).touch_subagent(&parent.subagent_id);
        }
    }

    /// Sets this thread's parent to `above`, the thread of `session`, which has announced `subagent`. The parent is
    /// notified of every change to this thread. Does nothing if the thread already has a parent.
    pub(crate) fn set_parent(&self, above: &Self, session: &SessionId, subagent: &SessionId) {
        let parent = ThreadParent {
            thread: Arc::downgrade(&above.0),
            session_id: session.clone(),
            subagent_id: subagent.clone(),
        };
        // This fails if the thread already has a parent, which then remains the parent.
        if self.0.parent.set(parent).is_ok() {
            self.lock().set_parent_session(session);
        }
    }

    /// Returns the root session and the subagent's name if this is a subagent's thread. This reads the parents'
    /// threads, so the caller must not hold the lock of any thread.
    pub(crate) fn subagent_origin(&self) -> Option<SubagentOrigin> {
        let parent = self.0.parent.get()?;
        let above = parent.thread.upgrade().map(Self);
        let id = &parent.subagent_id;
        let name = above
            .as_ref()
            .and_then(|above| above.read(|thread| Some(thread.subagent(id)?.name().to_owned())));
        let mut root_session_id = parent.session_id.clone();
        let mut next = above;
        while let Some(thread) = next.take()
            && let Some(parent) = thread.0.parent.get()
        {
            root_session_id = parent.session_id.clone();
            next = parent.thread.upgrade().map(Self);
        }
        Some(SubagentOrigin {
            root_session_id,
            // The subagent's item may have been dropped from the thread.
            name: name.unwrap_or_else(|| id.to_string()),
        })
    }

    /// Waits until the thread's revision is greater than `seen`, and returns it. Several changes can cause a single
    /// wake-up, so a slow reader can miss intermediate states but never content.
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
