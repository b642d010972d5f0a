//! What a person says while a turn runs, until the model is told.

use std::sync::{Mutex, MutexGuard, PoisonError};

use acp::v1::ContentBlock;

/// How many messages wait at most until the model is asked next.
const MOST: usize = 64;

/// Messages for the turn that runs, which the model has not been told yet. `None` while no turn takes any.
#[derive(Default)]
pub(crate) struct Steering(Mutex<Option<Vec<Vec<ContentBlock>>>>);

impl Steering {
    fn lock_messages(&self) -> MutexGuard<'_, Option<Vec<Vec<ContentBlock>>>> {
        // Nothing that is done under the lock can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A turn takes messages from now on.
    pub(crate) fn open(&self) {
        self.lock_messages().get_or_insert_default();
    }

    /// Puts a message into the turn that runs. `false` if none does.
    ///
    /// # Errors
    /// Too many wait already.
    pub(crate) fn push(&self, message: Vec<ContentBlock>) -> acp::Result<bool> {
        let mut messages = self.lock_messages();
        let Some(messages) = messages.as_mut() else {
            return Ok(false);
        };
        if messages.len() == MOST {
            let text = format!("too many queued messages (limit: {MOST})");
            return Err(acp::Error::internal(text));
        }
        messages.push(message);
        Ok(true)
    }

    /// The messages that wait.
    pub(crate) fn take(&self) -> Vec<Vec<ContentBlock>> {
        let mut messages = self.lock_messages();
        messages.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The messages that wait. If there are none, the turn takes no more: what comes now is for another.
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

    /// The turn takes no more. Gives what the model has not been told.
    pub(crate) fn close(&self) -> Vec<Vec<ContentBlock>> {
        self.lock_messages().take().unwrap_or_default()
    }
}
