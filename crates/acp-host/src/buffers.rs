//! What an editor lays over the files: the buffers that are open in it.
//!
//! The specification's page "File System" has agents read "unsaved changes in the editor", and editors
//! "track file modifications made during Agent execution".

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::text_form::TextForm;

/// The buffers that an editor has open. [`Files::with_buffers`](crate::Files::with_buffers) lays them over
/// the disk: reading a file that is open gives the buffer's text, and writing it changes the buffer.
///
/// Files are named by where they really are: absolute, without symlinks and `..`, so that a file that is
/// reached by two names is one buffer. Only files under the session's roots are asked for. An editor
/// whose buffers have other names compares with their canonical ones ([`std::fs::canonicalize`]). Hard links
/// are different files.
///
/// Both methods may take the way to the editor's main thread. As long as an answer is missing, the agent
/// waits; reading holds one of the few places in which files are read at the same time, so that it should be
/// answered soon, while writing may ask the person.
///
/// See [`MemoryBuffers`] for an implementation.
pub trait Buffers: Send + Sync + 'static {
    /// The text of the file as the person sees it, if it is open.
    fn read(&self, file: &Path) -> impl Future<Output = Option<Arc<str>>> + Send;

    /// The agent writes the file. If it is open, the buffer gets this text, as one step that the person can
    /// undo.
    ///
    /// The person may have typed since the agent has read the file, and the protocol's request does not say
    /// what it is based on. [`BufferChange::freshness_of`] does: look at it and change the buffer without letting
    /// go of the buffer in between, and refuse what would overwrite something that the agent has not seen.
    ///
    /// # Errors
    /// The buffer stays as it is, and so does the file. The agent is told why.
    fn write(
        &self,
        change: BufferChange,
    ) -> impl Future<Output = Result<BufferWrite, BufferRefusal>> + Send;

    /// The file has the text now that [`BufferWrite::BufferAndFile`] said. If the buffer still has it, too,
    /// it has no unsaved changes any more.
    fn notify_saved(&self, file: &Path, text: &Arc<str>) -> impl Future<Output = ()> + Send {
        let _ = (file, text);
        async {}
    }
}

/// What became of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferWrite {
    /// The file is not open: it is written on disk.
    NotOpen,
    /// The buffer has this text now, and nothing is written on disk: the person saves it, or does not.
    /// Commands that the agent runs do not see it before.
    Buffer(Arc<str>),
    /// The buffer has this text now, which is to be written on disk, too, with what the person had typed
    /// before. If that fails, the agent is told, and the buffer is one with unsaved changes.
    BufferAndFile(Arc<str>),
}

/// Why a buffer was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferRefusal {
    /// It has changes that the agent has not seen. It is told to read the file again.
    #[error("the person has changed it since it was read; nothing was written, read it again")]
    Changed,
    /// Anything else, in words for the agent.
    #[error("{0}")]
    Other(String),
}

/// What an agent writes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BufferChange {
    /// Where the file really is.
    pub file: PathBuf,
    /// All that is to be in it.
    pub text: Arc<str>,
    last_read: Option<Fingerprint>,
}

/// What an agent knows of a buffer that it wants to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferFreshness {
    /// This text is what it was given last, or what it wrote itself.
    Current,
    /// What it was given last, or wrote, is another text.
    Outdated,
    /// It has not read it in this session, or long ago.
    Unknown,
}

impl BufferChange {
    pub(crate) fn new(file: PathBuf, text: Arc<str>, seen: Option<Fingerprint>) -> Self {
        Self {
            file,
            text,
            last_read: seen,
        }
    }

    /// What the agent knows of the buffer, whose text is `current` now. Parts of a file that it was given
    /// count as the whole.
    #[must_use]
    pub fn freshness_of(&self, current: &str) -> BufferFreshness {
        match self.last_read {
            None => BufferFreshness::Unknown,
            Some(seen) if seen == Fingerprint::of(current) => BufferFreshness::Current,
            Some(_) => BufferFreshness::Outdated,
        }
    }
}

/// Tells one text from another, without keeping it. Nobody outside can make two that are alike: the key is
/// the process's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(usize, u64);

impl Fingerprint {
    pub(crate) fn of(text: &str) -> Self {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(text.len(), KEY.hash_one(text))
    }
}

type BufferFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// [`Buffers`] of any type.
pub(crate) trait DynBuffers: Send + Sync {
    fn read<'a>(&'a self, file: &'a Path) -> BufferFuture<'a, Option<Arc<str>>>;
    fn write(&self, change: BufferChange) -> BufferFuture<'_, Result<BufferWrite, BufferRefusal>>;
    fn notify_saved<'a>(&'a self, file: &'a Path, text: &'a Arc<str>) -> BufferFuture<'a, ()>;
}

impl<B: Buffers> DynBuffers for B {
    fn read<'a>(&'a self, file: &'a Path) -> BufferFuture<'a, Option<Arc<str>>> {
        Box::pin(Buffers::read(self, file))
    }

    fn write(&self, change: BufferChange) -> BufferFuture<'_, Result<BufferWrite, BufferRefusal>> {
        Box::pin(Buffers::write(self, change))
    }

    fn notify_saved<'a>(&'a self, file: &'a Path, text: &'a Arc<str>) -> BufferFuture<'a, ()> {
        Box::pin(Buffers::notify_saved(self, file, text))
    }
}

/// Buffers in memory, for tests and for editors that can keep theirs here. Cloning is cheap, and the clones
/// are the same.
///
/// An agent's write is refused if it would overwrite what the agent has not seen: if the buffer has
/// another text than it was given, or if it was given none and there are unsaved changes. Line ends and a
/// byte order mark stay as [`TextForm`] says.
///
/// ```
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use acp_host::{Files, MemoryBuffers};
///
/// # let directory = tempfile::tempdir()?;
/// # let project = directory.path().to_owned();
/// let notes = project.join("notes.txt");
/// std::fs::write(&notes, "saved")?;
///
/// // The user opens a file and types.
/// let buffers = MemoryBuffers::new();
/// buffers.open(&notes, "saved");
/// buffers.edit(&notes, "saved, and typed");
///
/// // The agent sees the unsaved text, and the user sees what the agent writes.
/// let files = Files::new([project])?.with_buffers(buffers.clone());
/// let read = files.read_text(&notes, None, None).await?;
/// assert_eq!(read, "saved, and typed");
/// files.write_text(&notes, "written").await?;
/// assert_eq!(buffers.text(&notes).as_deref(), Some("written"));
/// assert_eq!(std::fs::read_to_string(&notes)?, "saved");
/// # Ok(())
/// # }
/// # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryBuffers {
    buffers: Arc<Mutex<HashMap<PathBuf, Buffer>>>,
    writes_to_disk: bool,
}

#[derive(Debug)]
struct Buffer {
    text: Arc<str>,
    /// What is on disk, as far as is known.
    saved_fingerprint: Fingerprint,
}

impl Buffer {
    fn is_unsaved(&self) -> bool {
        Fingerprint::of(&self.text) != self.saved_fingerprint
    }
}

impl MemoryBuffers {
    /// No buffers. What agents write is in the buffers only.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// No buffers. What agents write is in the buffers and on disk.
    #[must_use]
    pub fn with_disk_writes() -> Self {
        Self {
            writes_to_disk: true,
            ..Self::default()
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Buffer>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file that has this text on disk; nothing if there is no such file yet. A symlink to a file
    /// that is there is the file. May block.
    pub fn open(&self, file: &Path, text: impl Into<Arc<str>>) {
        let text = text.into();
        let saved = Fingerprint::of(&text);
        let file = resolve_path(file);
        self.lock().insert(
            file,
            Buffer {
                text,
                saved_fingerprint: saved,
            },
        );
    }

    /// The person changes the text. Nothing happens if the file is not open. May block.
    pub fn edit(&self, file: &Path, text: impl Into<Arc<str>>) {
        let file = resolve_path(file);
        if let Some(buffer) = self.lock().get_mut(&file) {
            buffer.text = text.into();
        }
    }

    /// The text of a file that is open. May block.
    #[must_use]
    pub fn text(&self, file: &Path) -> Option<Arc<str>> {
        let file = resolve_path(file);
        let open = self.lock();
        open.get(&file).map(|buffer| Arc::clone(&buffer.text))
    }

    /// Whether a file is open with another text than it has on disk. May block.
    #[must_use]
    pub fn is_unsaved(&self, file: &Path) -> bool {
        let file = resolve_path(file);
        self.lock().get(&file).is_some_and(Buffer::is_unsaved)
    }

    /// The text is on disk: the person has saved it. May block.
    pub fn mark_saved(&self, file: &Path) {
        let file = resolve_path(file);
        if let Some(buffer) = self.lock().get_mut(&file) {
            buffer.saved_fingerprint = Fingerprint::of(&buffer.text);
        }
    }

    /// Closes a file and gives its text, if it was open. May block.
    pub fn close(&self, file: &Path) -> Option<Arc<str>> {
        let file = resolve_path(file);
        self.lock().remove(&file).map(|buffer| buffer.text)
    }
}

/// Where a file really is, which may not be there yet.
fn resolve_path(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| {
        match (file.parent(), file.file_name()) {
            // Some directory above is there.
            (Some(above), Some(name)) => resolve_path(above).join(name),
            _ => file.to_owned(),
        }
    })
}

impl Buffers for MemoryBuffers {
    async fn read(&self, file: &Path) -> Option<Arc<str>> {
        let open = self.lock();
        open.get(file).map(|buffer| Arc::clone(&buffer.text))
    }

    async fn write(&self, change: BufferChange) -> Result<BufferWrite, BufferRefusal> {
        let mut open = self.lock();
        let Some(buffer) = open.get_mut(&change.file) else {
            return Ok(BufferWrite::NotOpen);
        };
        match change.freshness_of(&buffer.text) {
            BufferFreshness::Current => {}
            BufferFreshness::Unknown if !buffer.is_unsaved() => {}
            BufferFreshness::Unknown | BufferFreshness::Outdated => {
                return Err(BufferRefusal::Changed);
            }
        }
        buffer.text = TextForm::of(&buffer.text).apply(&change.text).into();
        let text = Arc::clone(&buffer.text);
        Ok(if self.writes_to_disk {
            BufferWrite::BufferAndFile(text)
        } else {
            BufferWrite::Buffer(text)
        })
    }

    async fn notify_saved(&self, file: &Path, text: &Arc<str>) {
        if let Some(buffer) = self.lock().get_mut(file) {
            buffer.saved_fingerprint = Fingerprint::of(text);
        }
    }
}
