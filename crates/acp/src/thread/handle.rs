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
    /// What shows this thread as its subagent's.
    parent: OnceLock<ThreadParent>,
}

/// Where a subagent's thread belongs.
#[derive(Debug)]
struct ThreadParent {
    thread: Weak<SharedThread>,
    /// The session that has announced the subagent.
    session_id: SessionId,
    /// The subagent's session.
    subagent_id: SessionId,
}

/// Whose subagent a session is.
pub(crate) struct SubagentOrigin {
    /// The session that the person has opened.
    pub(crate) root_session_id: SessionId,
    /// What the subagent is called.
    pub(crate) name: String,
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
        self.touch_parent();
        changed
    }

    /// A subagent has changed, and with it whatever shows this thread. A lock is never waited for while one below it is
    /// held.
    fn touch_subagent(&self, subagent: &SessionId) {
        self.lock().touch_subagent(subagent);
        self.0.changed.notify_waiters();
        self.touch_parent();
    }

    /// Tells the thread that shows this one.
    fn touch_parent(&self) {
        if let Some(parent) = self.0.parent.get()
            && let Some(above) = parent.thread.upgrade()
        {
            Self(above).touch_subagent(&parent.subagent_id);
        }
    }

    /// From here on `above`, the thread of this session, is told when this thread changes, which is that of its subagent
    /// with this id. A thread belongs to one other at most, and none to itself.
    pub(crate) fn set_parent(&self, above: &Self, session: &SessionId, subagent: &SessionId) {
        // Otherwise it belongs to another already, which shows it.
        let _ = self.0.parent.set(ThreadParent {
            thread: Arc::downgrade(&above.0),
            session_id: session.clone(),
            subagent_id: subagent.clone(),
        });
    }

    /// Whose subagent the session of this thread is; `None` if it is none. Reads the thread above it: no thread may be
    /// locked by the caller.
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
            // Its item may have been dropped.
            name: name.unwrap_or_else(|| id.to_string()),
        })
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
