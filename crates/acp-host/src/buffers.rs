//! An editor's open buffers, which take precedence over the files on disk.
//!
//! According to "File System" in the specification, agents read "unsaved changes in the editor", and editors "track
//! file modifications made during Agent execution".

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use crate::text_form::TextForm;

/// The buffers that are open in an editor. With [`Files::with_buffers`](crate::Files::with_buffers), reading an open
/// file returns the buffer's text, and writing to it changes the buffer.
///
/// Files are identified by their real path, which is absolute and without symlinks and `..`. So a file with two names
/// has one buffer. Only files under the session's roots are looked up. An editor that identifies its buffers
/// differently must compare canonical paths ([`std::fs::canonicalize`]). Hard links count as different files.
///
/// Both methods may go through the editor's main thread, and the agent waits for them. A read holds one of the few
/// permits for reading files, so it should return soon. A write may ask the user.
///
/// See [`MemoryBuffers`] for an implementation.
pub trait Buffers: Send + Sync + 'static {
    /// Returns the text of the file as the user sees it, or `None` if it is not open.
    fn read(&self, file: &Path) -> impl Future<Output = Option<Arc<str>>> + Send;

    /// Writes the file for the agent. If the file is open, replaces the buffer's text in a single step that the user
    /// can undo.
    ///
    /// The user may have typed since the agent read the file, and the protocol's request does not say which text it is
    /// based on. [`BufferChange::freshness`] does. Call it and change the buffer without unlocking the buffer in
    /// between, and reject a write that would overwrite text that the agent has not seen.
    ///
    /// # Errors
    /// The buffer and the file stay as they are. The agent gets the reason.
    fn write(
        &self,
        change: BufferChange,
    ) -> impl Future<Output = Result<BufferWrite, BufferWriteError>> + Send;

    /// Reports that the file on disk now has the text from [`BufferWrite::BufferAndFile`]. A buffer that still has this
    /// text no longer has unsaved changes.
    fn notify_saved(&self, file: &Path, text: &Arc<str>) -> impl Future<Output = ()> + Send {
        let _ = (file, text);
        async {}
    }
}

/// The result of writing an agent's text through an editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BufferWrite {
    /// The file is not open, so it is written to disk.
    NotOpen,
    /// The buffer now has this text. Nothing is written to disk, and the user decides whether to save it. Until then,
    /// commands that the agent runs do not see the change.
    Buffer(Arc<str>),
    /// The buffer now has this text, which is also written to disk, along with the user's unsaved changes. If writing
    /// fails, the agent gets an error, and the changes in the buffer remain unsaved.
    BufferAndFile(Arc<str>),
}

/// The reason why a write to a buffer was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferWriteError {
    /// The buffer has changes that the agent has not seen. The error message asks the agent to read the file again.
    #[error(
        "the file was changed in the editor since it was read, so nothing was written; read it again"
    )]
    Changed,
    /// Any other reason, written as a message for the agent.
    #[error("{0}")]
    Other(String),
}

/// A change that an agent wants to make to an open buffer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BufferChange {
    /// The real path of the file to change.
    pub file: PathBuf,
    /// The file's entire new text.
    pub text: Arc<str>,
    last_read: Option<Fingerprint>,
}

/// Whether the agent knows the current text of the buffer it wants to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferFreshness {
    /// The agent last read or wrote exactly this text.
    Current,
    /// The agent last read or wrote a different text.
    Outdated,
    /// The agent has not read the file in this session, or not recently enough.
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

    /// Compares the text that the agent last saw with `current`, the buffer's current text. Reading a part of a file
    /// counts as reading all of it.
    #[must_use]
    pub fn freshness(&self, current: &str) -> BufferFreshness {
        match self.last_read {
            None => BufferFreshness::Unknown,
            Some(seen) if seen == Fingerprint::new(current) => BufferFreshness::Current,
            Some(_) => BufferFreshness::Outdated,
        }
    }
}

/// A hash that identifies a text without storing it. The key is random and private to this process, so other programs
/// cannot construct two texts with the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint(usize, u64);

impl Fingerprint {
    pub(crate) fn new(text: &str) -> Self {
        static HASH_KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(text.len(), HASH_KEYS.hash_one(text))
    }
}

type BufferFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An object-safe form of [`Buffers`].
pub(crate) trait DynBuffers: Send + Sync {
    fn read<'a>(&'a self, file: &'a Path) -> BufferFuture<'a, Option<Arc<str>>>;
    fn write(
        &self,
        change: BufferChange,
    ) -> BufferFuture<'_, Result<BufferWrite, BufferWriteError>>;
    fn notify_saved<'a>(&'a self, file: &'a Path, text: &'a Arc<str>) -> BufferFuture<'a, ()>;
}

impl<B: Buffers> DynBuffers for B {
    fn read<'a>(&'a self, file: &'a Path) -> BufferFuture<'a, Option<Arc<str>>> {
        Box::pin(Buffers::read(self, file))
    }

    fn write(
        &self,
        change: BufferChange,
    ) -> BufferFuture<'_, Result<BufferWrite, BufferWriteError>> {
        Box::pin(Buffers::write(self, change))
    }

    fn notify_saved<'a>(&'a self, file: &'a Path, text: &'a Arc<str>) -> BufferFuture<'a, ()> {
        Box::pin(Buffers::notify_saved(self, file, text))
    }
}

/// Buffers in memory, for tests and for editors that can use this type for their buffers. Cloning is cheap, and clones
/// share the same buffers.
///
/// A write is rejected if it would overwrite text that the agent has not seen: if the buffer differs from the text that
/// the agent last read, or if the agent has not read the file and the buffer has unsaved changes. Line ends and a byte
/// order mark are preserved as described at [`TextForm`].
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
    /// The fingerprint of the text last known to be on disk.
    saved_fingerprint: Fingerprint,
}

impl Buffer {
    fn is_unsaved(&self) -> bool {
        Fingerprint::new(&self.text) != self.saved_fingerprint
    }
}

impl MemoryBuffers {
    /// Creates an empty set of buffers. When an agent writes to a file, only the buffer changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty set of buffers. When an agent writes to a file, both the buffer and the file on disk change.
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

    /// Opens a file. `text` is its text on disk, or empty if the file does not exist yet. Follows a symlink to an
    /// existing file. May block.
    pub fn open(&self, file: &Path, text: impl Into<Arc<str>>) {
        let text = text.into();
        let saved = Fingerprint::new(&text);
        let file = resolve_path(file);
        self.lock().insert(
            file,
            Buffer {
                text,
                saved_fingerprint: saved,
            },
        );
    }

    /// Changes the text as if the user had edited it. Does nothing if the file is not open. May block.
    pub fn edit(&self, file: &Path, text: impl Into<Arc<str>>) {
        let file = resolve_path(file);
        if let Some(buffer) = self.lock().get_mut(&file) {
            buffer.text = text.into();
        }
    }

    /// Returns the text of an open file. May block.
    #[must_use]
    pub fn text(&self, file: &Path) -> Option<Arc<str>> {
        let file = resolve_path(file);
        let open = self.lock();
        open.get(&file).map(|buffer| Arc::clone(&buffer.text))
    }

    /// Returns `true` if the file is open and its text differs from what is on disk. May block.
    #[must_use]
    pub fn is_unsaved(&self, file: &Path) -> bool {
        let file = resolve_path(file);
        self.lock().get(&file).is_some_and(Buffer::is_unsaved)
    }

    /// Records that the user has saved the buffer. May block.
    pub fn mark_saved(&self, file: &Path) {
        let file = resolve_path(file);
        if let Some(buffer) = self.lock().get_mut(&file) {
            buffer.saved_fingerprint = Fingerprint::new(&buffer.text);
        }
    }

    /// Closes a file and returns its text if it was open. May block.
    pub fn close(&self, file: &Path) -> Option<Arc<str>> {
        let file = resolve_path(file);
        self.lock().remove(&file).map(|buffer| buffer.text)
    }
}

/// Returns the real path of a file, which may not exist yet.
fn resolve_path(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| {
        match (file.parent(), file.file_name()) {
            // Some directory above it exists.
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

    async fn write(&self, change: BufferChange) -> Result<BufferWrite, BufferWriteError> {
        let mut open = self.lock();
        let Some(buffer) = open.get_mut(&change.file) else {
            return Ok(BufferWrite::NotOpen);
        };
        match change.freshness(&buffer.text) {
            BufferFreshness::Current => {}
            BufferFreshness::Unknown if !buffer.is_unsaved() => {}
            BufferFreshness::Unknown | BufferFreshness::Outdated => {
                return Err(BufferWriteError::Changed);
            }
        }
        buffer.text = TextForm::detect(&buffer.text).apply(&change.text).into();
        let text = Arc::clone(&buffer.text);
        Ok(if self.writes_to_disk {
            BufferWrite::BufferAndFile(text)
        } else {
            BufferWrite::Buffer(text)
        })
    }

    async fn notify_saved(&self, file: &Path, text: &Arc<str>) {
        if let Some(buffer) = self.lock().get_mut(file) {
            buffer.saved_fingerprint = Fingerprint::new(text);
        }
    }
}
