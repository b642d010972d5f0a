//! Reads and writes files through an editor's buffers, and keeps track of the text that each agent last saw.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use acp_wire::v1::SessionId;

use crate::buffers::{
    BufferChange, BufferWrite, BufferWriteError, Buffers, DynBuffers, Fingerprint,
};

/// The maximum number of files for which to remember what text an agent last read or wrote. Beyond that, the oldest are
/// forgotten. If the user then changes the buffer of a forgotten file, the agent must read the file again before it can
/// write to it.
const MAX_REMEMBERED_FILES: usize = 512;

/// An editor's buffers, along with the text of each buffer that each session last saw.
#[derive(Clone)]
pub(crate) struct BufferedFiles {
    buffers: Arc<dyn DynBuffers>,
    fingerprints: Arc<Mutex<VecDeque<SeenText>>>,
}

/// A file, and the session that accesses it, if any.
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
    ) -> Result<BufferWrite, BufferWriteError> {
        let seen = self.seen_fingerprint(view);
        let change = BufferChange::new(view.file.clone(), text, seen);
        self.buffers.write(change).await
    }

    pub(crate) async fn notify_saved(&self, file: &Path, text: &Arc<str>) {
        self.buffers.notify_saved(file, text).await;
    }

    fn seen_fingerprint(&self, view: &SessionFile) -> Option<Fingerprint> {
        let seen = self
            .fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        seen.iter()
            .find(|seen| seen.file == *view)
            .map(|seen| seen.fingerprint)
    }

    /// Records that the agent knows this text of the file, because it has read or written it.
    pub(crate) fn remember(&self, view: &SessionFile, text: &str) {
        let text = Fingerprint::new(text);
        self.forget(view);
        let mut seen = self
            .fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MAX_REMEMBERED_FILES {
            seen.pop_front();
        }
        let view = view.clone();
        seen.push_back(SeenText {
            file: view,
            fingerprint: text,
        });
    }

    /// Forgets a file that is not open in the editor, since its text may have changed by the time it is opened again.
    pub(crate) fn forget(&self, view: &SessionFile) {
        let mut seen = self
            .fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        seen.retain(|seen| seen.file != *view);
    }
}
