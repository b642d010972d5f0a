//! Buffers of an editor's laid over files, and what each agent has seen of them.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use acp_wire::v1::SessionId;

use crate::buffers::{BufferChange, BufferRefusal, BufferWrite, Buffers, DynBuffers, Fingerprint};

/// Of how many files it is known what was given of them. Of further ones it is forgotten, so that changing
/// those is refused if the person has changed them, and they are read again.
const REMEMBERED: usize = 512;

/// The buffers, and who was given what.
#[derive(Clone)]
pub(crate) struct BufferedFiles {
    buffers: Arc<dyn DynBuffers>,
    fingerprints: Arc<Mutex<VecDeque<SeenText>>>,
}

/// Where a file is, and for which session, if it is for one.
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
        f.debug_struct("Laid").finish_non_exhaustive()
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

    /// This is what the agent knows of the file from here on: it was given it, or it wrote it.
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

    /// The file is not open: when it is again, it is another text.
    pub(crate) fn forget(&self, view: &SessionFile) {
        let mut seen = self
            .fingerprints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        seen.retain(|seen| seen.file != *view);
    }
}
