//! Notes for the user that are not part of the thread.

use std::sync::{Arc, Mutex, PoisonError};

/// Notes for the user that have not been shown yet.
#[derive(Clone, Default)]
pub(super) struct RunNotes(Arc<Mutex<Vec<String>>>);

impl RunNotes {
    pub(super) fn add(&self, note: String) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(note);
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
