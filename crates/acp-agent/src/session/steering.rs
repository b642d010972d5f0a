//! Queues the messages that the user sends during a turn.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp::v1::ContentBlock;

/// The maximum number of messages queued for the next round.
const MAX_MESSAGES: usize = 64;

/// A queue of messages for the running turn. It is `None` when no turn is accepting messages.
#[derive(Default)]
pub(crate) struct Steering(Mutex<Option<Vec<Vec<ContentBlock>>>>);

impl Steering {
    fn lock_messages(&self) -> MutexGuard<'_, Option<Vec<Vec<ContentBlock>>>> {
        // The value is consistent at every point under the lock, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the queue, so that the running turn accepts messages.
    pub(crate) fn open(&self) {
        self.lock_messages().get_or_insert_default();
    }

    /// Adds a message to the running turn. Returns `false` if no turn is accepting messages.
    ///
    /// # Errors
    /// The queue is full.
    pub(crate) fn push(&self, message: Vec<ContentBlock>) -> acp::Result<bool> {
        let mut messages = self.lock_messages();
        let Some(messages) = messages.as_mut() else {
            return Ok(false);
        };
        if messages.len() == MAX_MESSAGES {
            let text = format!("too many queued messages (limit: {MAX_MESSAGES})");
            return Err(acp::Error::internal(text));
        }
        messages.push(message);
        Ok(true)
    }

    /// Takes the queued messages and leaves the queue open.
    pub(crate) fn take(&self) -> Vec<Vec<ContentBlock>> {
        let mut messages = self.lock_messages();
        messages.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes the queued messages. If there are none, closes the queue, so that later messages belong to another turn.
    pub(crate) fn take_or_close(&self) -> Vec<Vec<ContentBlock>> {
        let mut messages = self.lock_messages();
        match messages.as_mut() {
            Some(waiting) if !waiting.is_empty() => std::mem::take(waiting),
            _ => {
                *messages = None;
                Vec::new()
            }
        }
    }

    /// Closes the queue and returns the messages that the model has not seen yet.
    pub(crate) fn close(&self) -> Vec<Vec<ContentBlock>> {
        self.lock_messages().take().unwrap_or_default()
    }
}
