//! An editor's buffers in front of the files on disk, and what each agent last read of them.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use acp_wire::v1::SessionId;

use crate::buffers::{BufferChange, BufferRefusal, BufferWrite, Buffers, DynBuffers, Fingerprint};

/// For how many files the text that an agent last read or wrote is remembered. Beyond that, the oldest are forgotten: a
/// write to one of those is rejected if the user has changed the buffer, and the agent has to read it again.
const REMEMBERED: usize = 512;

/// The buffers, and the text of each that every session last saw.
#[derive(Clone)]
pub(crate) struct BufferedFiles {
    buffers: Arc<dyn DynBuffers>,
    fingerprints: Arc<Mutex<VecDeque<SeenText>>>,
}

/// A file, and the session it is accessed for, if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionFile {
    pub(crate) session: Option<SessionId>,
    pub(crate) file: PathBuf,
}

struct SeenText {
    file: SessionFile,
    fingerprint: Fingerprint,
}

impl fmt::Debug for BufferedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferedFiles").finish_non_exhaustive()
    }
}

impl BufferedFiles {
    pub(crate) fn new(buffers: impl Buffers) -> Self {
        Self {
            buffers: Arc::new(buffers),
            fingerprints: Arc::default(),
        }
    }

    pub(crate) async fn read(&self, file: &Path) -> Option<Arc<str>> {
        self.buffers.read(file).await
    }

    pub(crate) async fn write(
        &self,
        view: &SessionFile,
        text: Arc<str>,
    ) -> Result<BufferWrite, BufferRefusal> {
        let seen = self.fingerprint_of(view);
        let change = BufferChange::new(view.file.clone(), text, seen);
        self.buffers.write(change).await
    }

    pub(crate) async fn notify_saved(&self, file: &Path, text: &Arc<str>) {
        self.buffers.notify_saved(file, text).await;
    }

    fn fingerprint_of(&self, view: &SessionFile) -> Option<Fingerprint> {
        let seen = self
            .fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        seen.iter()
            .find(|seen| seen.file == *view)
            .map(|seen| seen.fingerprint)
    }

    /// Remembers that the agent knows this text of the file, because it read or wrote it.
    pub(crate) fn remember(&self, view: &SessionFile, text: &str) {
        let text = Fingerprint::of(text);
        self.forget(view);
        let mut seen = self
            .fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= REMEMBERED {
            seen.pop_front();
        }
        let view = view.clone();
        seen.push_back(SeenText {
            file: view,
            fingerprint: text,
        });
    }

    /// Forgets the file, which is not open in the editor. If it is opened again, its text may be another.
    pub(crate) fn forget(&self, view: &SessionFile) {
        let mut seen = self
            .fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        seen.retain(|seen| seen.file != *view);
    }
}
