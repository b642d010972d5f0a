//! Access to text files under a session's roots (specification: File System).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_wire::jsonrpc::Error;
use acp_wire::v1::{
    ReadTextFileRequest, ReadTextFileResponse, SessionId, WriteTextFileRequest,
    WriteTextFileResponse,
};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::buffered_files::{BufferedFiles, SessionFile};
use crate::buffers::{BufferWrite, BufferWriteError, Buffers};
use crate::read_lines::{CancelOnDrop, LineRange, ReadLinesError, read_lines};
use crate::replace::replace_file;
use crate::roots::{PathError, RootedPath, Roots, display_path, has_trailing_separator};

/// The default size limit for one read, in bytes.
const DEFAULT_MAX_READ_BYTES: usize = 64 * 1024 * 1024;

/// The maximum number of files to read or write at the same time. Further requests wait. A flood of requests can
/// therefore use no more memory than this number times the size limit for one read, plus the responses that the agent
/// has not read yet. The connection limits the latter (`acp::Limits::request_memory`).
const MAX_CONCURRENT_REQUESTS: usize = 4;

/// Access to the text files under a session's roots, and only those.
///
/// The roots are pinned when this is created: they stay the same directories even if they are renamed or replaced. From
/// there, the operating system resolves each path and refuses to leave the root, whether through symlinks, through
/// `..`, or because someone changes the directories at the same time. Symlinks whose target is under a root are
/// followed.
///
/// Cloning is cheap. The clones share their limits.
#[derive(Debug, Clone)]
pub struct Files {
    roots: Roots,
    max_read: usize,
    permits: Arc<Semaphore>,
    buffers: Option<BufferedFiles>,
}

impl Files {
    /// Gives access to the files under these directories: a session's `cwd` and its additional directories. They must
    /// exist.
    ///
    /// # Errors
    /// A root is not an absolute path, or is not a directory that can be opened. The error names the root.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        Roots::open(roots).map(Self::with_roots)
    }

    /// Gives access to the files under roots that are already open.
    #[must_use]
    pub fn with_roots(roots: Roots) -> Self {
        Self {
            roots,
            max_read: DEFAULT_MAX_READ_BYTES,
            permits: Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS)),
            buffers: None,
        }
    }

    /// Sets the size limit for one read, in bytes. The default is 64 MiB. The limit applies to the text of one response
    /// in its JSON form, in which a control character takes six bytes. It does not limit the size of files, because a
    /// larger file can be read in parts with `line` and `limit`.
    #[must_use]
    pub fn max_read(mut self, bytes: usize) -> Self {
        self.max_read = bytes;
        self
    }

    /// Reads and writes files through an editor's buffers if the files are open in the editor. Files outside the roots
    /// are rejected without consulting the editor.
    ///
    /// The user may type between two requests of an agent. For each session, the text of a file that the agent last
    /// read is remembered, so that the editor can check whether a write is based on the current text:
    /// [`BufferChange::freshness`](crate::BufferChange::freshness). If a file is opened while it is being written
    /// to disk, the editor sees a write by another program.
    #[must_use]
    pub fn with_buffers(mut self, buffers: impl Buffers) -> Self {
        self.buffers = Some(BufferedFiles::new(buffers));
        self
    }

    /// Returns the paths of the roots as given.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.paths()
    }

    /// Returns the open directories that file access is confined to.
    pub(crate) fn roots_handle(&self) -> &Roots {
        &self.roots
    }

    /// Handles `fs/read_text_file`. See [`read_text`](Self::read_text).
    ///
    /// # Errors
    /// Same as for [`read_text`](Self::read_text).
    pub async fn read(&self, request: &ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let (session, path) = (&request.session_id, Path::new(&request.path));
        let lines = LineRange::new(request.line, request.limit);
        let text = self.read_for_session(Some(session), path, lines).await?;
        Ok(ReadTextFileResponse::new(text))
    }

    /// Handles `fs/write_text_file`. See [`write_text`](Self::write_text).
    ///
    /// # Errors
    /// Same as for [`write_text`](Self::write_text).
    pub async fn write(
        &self,
        request: &WriteTextFileRequest,
    ) -> Result<WriteTextFileResponse, Error> {
        let (session, path) = (&request.session_id, Path::new(&request.path));
        let content = Arc::from(request.content.as_str());
        self.write_for_session(Some(session), path, content).await?;
        Ok(WriteTextFileResponse::new())
    }

    /// Reads at most `limit` lines of the file at an absolute path, starting at line `line` (counted from 1; 0 also
    /// means 1). Lines end with `\n`. The text, including its line endings, is returned exactly as it is in the file.
    /// It is empty if the file ends before the first requested line. Fails if a line exceeds the size limit for one
    /// read.
    ///
    /// The file is read in chunks, and only as far as necessary. So its size does not matter, even if it grows in the
    /// meantime. Everything before the first line is read and discarded. Dropping the future stops the read.
    ///
    /// # Errors
    /// `RESOURCE_NOT_FOUND` if the file does not exist. `INVALID_PARAMS` if the path is relative or leads outside the
    /// roots, or if it is not a regular file, not UTF-8, or too large. `INTERNAL_ERROR` if the system fails or denies
    /// access. `data` has the path, and `node_error_code` with the system's name of the error, such as `ENOENT`, if there is
    /// one.
    pub async fn read_text(
        &self,
        path: &Path,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, Error> {
        self.read_for_session(None, path, LineRange::new(line, limit))
            .await
    }

    async fn read_for_session(
        &self,
        session: Option<&SessionId>,
        path: &Path,
        lines: LineRange,
    ) -> Result<String, Error> {
        let max = self.max_read;
        // Any number of bytes may be skipped before the first line, so reading must stop when nobody waits for it.
        let abandoned = CancelOnDrop::default();
        let given_up = abandoned.flag();
        if let Some(editor_buffers) = self.buffers.clone() {
            let view = self.session_file(session, path).await?;
            // Acquired first, so that no more buffers than files are in memory at a time.
            let turn = self.acquire_permit().await?;
            match editor_buffers.read(&view.file).await {
                Some(text) => {
                    let read = move |_: &Path| {
                        let read = read_lines(text.as_bytes(), lines, max, &given_up)?;
                        editor_buffers.remember(&view, &text);
                        decode_text(read)
                    };
                    return self.run_blocking(turn, path, read).await;
                }
                None => editor_buffers.forget(&view),
            }
        }
        let roots = self.roots.clone();
        let turn = self.acquire_permit().await?;
        self.run_blocking(turn, path, move |path| {
            let file = roots.open_file(path)?;
            decode_text(read_lines(file, lines, max, &given_up)?)
        })
        .await
    }

    /// Writes `content` to the file at an absolute path, creating the file and its parent directories if necessary. If
    /// the path is a symlink, writes to its target.
    ///
    /// The file is replaced either completely or not at all, even if the disk is full or this process is killed.
    /// Directories that were created remain.
    ///
    /// The file keeps its mode. It also keeps its owner and group and, on Linux, its access control list and other
    /// extended attributes, as far as this process is allowed to set them. It does not keep set-id bits, capabilities,
    /// file system flags (`chattr`) or its creation time. A file that is not writable is not replaced, even if its
    /// directory is writable.
    ///
    /// The text form of the file is preserved, as described at [`TextForm`]. If all lines of the old text end with CR
    /// LF, and the content has no CR, its line ends become CR LF. A byte order mark is kept. So an agent that writes
    /// the text that it has read changes nothing.
    ///
    /// [`TextForm`]: crate::TextForm
    ///
    /// # Errors
    /// `INVALID_PARAMS` if the path is relative or leads outside the roots, or if it exists and is not a regular file.
    /// `INTERNAL_ERROR` if the system fails or denies access, or if the editor has the file open and rejects the write.
    /// The old content stays in all these cases. `data` is the same as for [`read_text`](Self::read_text).
    pub async fn write_text(&self, path: &Path, content: impl Into<String>) -> Result<(), Error> {
        self.write_for_session(None, path, content.into().into())
            .await
    }

    async fn write_for_session(
        &self,
        session: Option<&SessionId>,
        path: &Path,
        content: Arc<str>,
    ) -> Result<(), Error> {
        let Some(editor_buffers) = &self.buffers else {
            return self.write_to_disk(path, content).await;
        };
        let view = self.session_file(session, path).await?;
        let written = editor_buffers.write(&view, Arc::clone(&content)).await;
        match written.map_err(|refusal| self.to_error(path, FileError::Buffer(refusal)))? {
            BufferWrite::NotOpen => {
                editor_buffers.forget(&view);
                self.write_to_disk(path, content).await
            }
            BufferWrite::Buffer(text) => {
                editor_buffers.remember(&view, &text);
                Ok(())
            }
            BufferWrite::BufferAndFile(text) => {
                editor_buffers.remember(&view, &text);
                self.write_to_disk(path, Arc::clone(&text)).await?;
                editor_buffers.notify_saved(&view.file, &text).await;
                Ok(())
            }
        }
    }

    async fn write_to_disk(&self, path: &Path, content: Arc<str>) -> Result<(), Error> {
        let roots = self.roots.clone();
        let turn = self.acquire_permit().await?;
        self.run_blocking(turn, path, move |path| write_text(&roots, path, &content))
            .await
    }

    /// Returns the real path of a file, along with the session that accesses it.
    async fn session_file(
        &self,
        session: Option<&SessionId>,
        path: &Path,
    ) -> Result<SessionFile, Error> {
        let roots = self.roots.clone();
        let turn = self.acquire_permit().await?;
        let follow = move |path: &Path| Ok(resolve_file(&roots, path)?.absolute_path());
        let file = self.run_blocking(turn, path, follow).await?;
        let session = session.cloned();
        Ok(SessionFile { session, file })
    }

    async fn acquire_permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        let turn = self.permits.clone().acquire_owned().await;
        turn.map_err(|e| worker_error(&e))
    }

    /// Runs `work` on a thread that may block.
    async fn run_blocking<T: Send + 'static>(
        &self,
        turn: OwnedSemaphorePermit,
        path: &Path,
        work: impl FnOnce(&Path) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Error> {
        let owned = path.to_owned();
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work ends, even if nobody waits for it any more.
            let _turn = turn;
            work(&owned)
        });
        done.await
            .map_err(|e| worker_error(&e))?
            .map_err(|fault| self.to_error(path, fault))
    }

    fn to_error(&self, path: &Path, fault: FileError) -> Error {
        let shown = display_path(path);
        let data = json!({ "path": shown });
        let refusal = match fault {
            FileError::Path(refusal) => refusal,
            FileError::NotText { at } => {
                let why = format!("{shown}: invalid UTF-8 at byte {at} of the text that was read");
                return Error::invalid_params(why).data(data);
            }
            FileError::Buffer(refusal) => {
                return Error::internal(format!("{shown}: {refusal}")).data(data);
            }
            FileError::TooLarge => {
                return Error::invalid_params(format!(
                    "{shown}: file too large (limit: {} bytes as JSON); use `line` and `limit` to read part of it",
                    self.max_read
                ))
                .data(data);
            }
        };
        let explained = self.roots.error_message(path, &refusal);
        let PathError::Io(e) = refusal else {
            return Error::invalid_params(explained).data(data);
        };
        let error = match e.kind() {
            io::ErrorKind::NotFound => Error::resource_not_found(&shown),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => {
                Error::invalid_params(explained)
            }
            _ => Error::internal(explained),
        };
        error.data(match node_error_code(e.kind()) {
            Some(errno) => json!({ "path": shown, "errno": errno }),
            None => data,
        })
    }
}

/// Returns the error code that agents expect, which is the one used by Node, since most agents are written for it.
fn node_error_code(kind: io::ErrorKind) -> Option<&'static str> {
    Some(match kind {
        io::ErrorKind::NotFound => "ENOENT",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::NotADirectory => "ENOTDIR",
        io::ErrorKind::IsADirectory => "EISDIR",
        io::ErrorKind::StorageFull => "ENOSPC",
        io::ErrorKind::QuotaExceeded => "EDQUOT",
        io::ErrorKind::ReadOnlyFilesystem => "EROFS",
        io::ErrorKind::FileTooLarge => "EFBIG",
        io::ErrorKind::InvalidFilename => "ENAMETOOLONG",
        _ => return None,
    })
}

/// The reason why a file could not be read or written.
#[derive(Debug)]
enum FileError {
    Path(PathError),
    NotText { at: usize },
    TooLarge,
    Buffer(BufferWriteError),
}

impl From<ReadLinesError> for FileError {
    fn from(fault: ReadLinesError) -> Self {
        match fault {
            ReadLinesError::TooLarge => Self::TooLarge,
            ReadLinesError::Io(e) => e.into(),
        }
    }
}

impl<E: Into<PathError>> From<E> for FileError {
    fn from(refusal: E) -> Self {
        Self::Path(refusal.into())
    }
}

fn worker_error(why: &dyn std::fmt::Display) -> Error {
    Error::internal(format!("file access failed: {why}"))
}

fn decode_text(bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|e| FileError::NotText {
        at: e.utf8_error().valid_up_to(),
    })
}

/// Resolves the path of a file by following all symlinks.
fn resolve_file<'a>(roots: &'a Roots, path: &Path) -> Result<RootedPath<'a>, PathError> {
    let place = roots.resolve(path)?;
    if has_trailing_separator(path) || place.path().file_name().is_none() {
        return Err(PathError::NotAFile("a directory"));
    }
    Ok(place)
}

fn write_text(roots: &Roots, path: &Path, content: &str) -> Result<(), FileError> {
    let place = resolve_file(roots, path)?;
    let name = place.path().file_name().unwrap_or_default();
    let above = place
        .path()
        .parent()
        .filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above {
        place.dir().create_dir_all(above)?;
    }
    // Everything from here on happens in this one directory, even if the path to it changes.
    let dir = place.dir().open_dir(above.unwrap_or(Path::new(".")))?;
    Ok(replace_file(&dir, name, content)?)
}
