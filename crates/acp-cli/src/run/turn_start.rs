//! When the turn of this run starts. In a live session, turns of other clients may come first.

use std::sync::{Arc, OnceLock};

use acp::ThreadHandle;
use tokio::sync::watch;

/// Whether the turn has started, shared by the run and its client.
#[derive(Clone, Default)]
pub(super) struct OwnTurnStart(Arc<State>);

#[derive(Default)]
struct State {
    thread: OnceLock<ThreadHandle>,
    /// The thread's revision when the turn started.
    revision: watch::Sender<Option<u64>>,
}

impl OwnTurnStart {
    /// Sets the thread of the session. Called before the prompt is sent.
    pub(super) fn set_thread(&self, thread: ThreadHandle) {
        // There is one session in a run.
        let _ = self.0.thread.set(thread);
    }

    /// Records that the turn has started. Called before any further message of the server is handled.
    pub(super) fn record(&self) {
        if let Some(thread) = self.0.thread.get() {
            let revision = thread.read(acp::Thread::revision);
            self.0.revision.send_replace(Some(revision));
        }
    }

    /// Returns the thread's revision when the turn started, or `None` if it has not started yet.
    pub(super) fn revision(&self) -> Option<u64> {
        *self.0.revision.borrow()
    }
}
