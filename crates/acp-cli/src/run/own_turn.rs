//! When the turn of this run starts and ends. In a live session, turns of other clients come before and after it.

use std::sync::{Arc, OnceLock};

use acp::ThreadHandle;
use acp::thread::ItemKind;
use tokio::sync::watch;

/// The part of the thread that is the turn of this run, shared by the run and its client.
#[derive(Clone, Default)]
pub(super) struct OwnTurn(Arc<State>);

#[derive(Default)]
struct State {
    thread: OnceLock<ThreadHandle>,
    /// The thread's revision when the turn started.
    revision: watch::Sender<Option<u64>>,
    /// The number of the first item after the turn.
    end: watch::Sender<Option<usize>>,
}

impl OwnTurn {
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
            self.0.end.send_replace(None);
        }
    }

    /// Records that a turn of another client has started. Called before any further message of the server is handled.
    pub(super) fn record_other(&self) {
        if let Some(thread) = self.0.thread.get()
            && self.revision().is_some()
            && self.end().is_none()
        {
            let end = thread.read(|thread| {
                let items = thread.items();
                // The other client's prompt comes before the notification.
                let is_prompt = |item: &&acp::thread::Item| matches!(item.kind, ItemKind::User(_));
                let prompt = items.iter().rev().take_while(is_prompt).count();
                thread.truncation().items + items.len() - prompt
            });
            self.0.end.send_replace(Some(end));
        }
    }

    /// Returns the number of the first item of the thread after the turn, or `None` if no other turn has started.
    pub(super) fn end(&self) -> Option<usize> {
        *self.0.end.borrow()
    }

    /// Returns the thread's revision when the turn started, or `None` if it has not started yet.
    pub(super) fn revision(&self) -> Option<u64> {
        *self.0.revision.borrow()
    }
}
