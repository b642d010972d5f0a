//! Text files under a session's roots: the specification's page "File System".

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
use crate::buffers::{BufferRefusal, BufferWrite, Buffers};
use crate::read_lines::{AbandonGuard, LineRange, ReadLinesError, read_lines};
use crate::replace::replace;
use crate::roots::{PathError, RootedPath, Roots, display_path, has_trailing_separator};

/// The most that is read at once, if nothing else is set, in bytes.
const MAX_READ: usize = 64 * 1024 * 1024;

/// How many files are read or written at the same time. The rest wait: the memory that a flood of
/// requests takes is this many times the most that is read at once, and the answers that the agent has not taken yet,
/// which the connection bounds (`acp::Limits::request_memory`).
const AT_ONCE: usize = 4;

/// The text files of a session: those under its roots and no others.
///
/// The roots are pinned when this is made: they stay the same directories when their names change.
/// What a path leads to from there on is up to the operating system, which refuses to leave the root,
/// through symlinks and `..` too, and also if someone changes the directories at the same time.
/// Symlinks whose target is under a root are followed.
///
/// Cloning is cheap; the clones share their limits.
#[derive(Debug, Clone)]
pub struct Files {
    roots: Roots,
    max_read: usize,
    permits: Arc<Semaphore>,
    buffers: Option<BufferedFiles>,
}

impl Files {
    /// Files under these directories, which must be there: a session's `cwd` and its additional
    /// directories.
    ///
    /// # Errors
    /// A root is not an absolute path, or is no directory that can be opened; the error names it.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        Roots::open(roots).map(Self::with_roots)
    }

    /// Files under roots that are open already.
    #[must_use]
    pub fn with_roots(roots: Roots) -> Self {
        Self {
            roots,
            max_read: MAX_READ,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            buffers: None,
        }
    }

    /// The most that one reading may give, in bytes; 64 MiB if it is not set. It is what one answer
    /// may hold, written as JSON, where a control character takes six bytes, and not how large a file may be: of a
    /// larger one, `line` and `limit` read a part.
    #[must_use]
    pub fn max_read(mut self, bytes: usize) -> Self {
        self.max_read = bytes;
        self
    }

    /// Lays an editor's buffers over the files: what is open there is read and written there. A file is
    /// under the roots or is refused before the editor is asked.
    ///
    /// Between two requests of an agent the person may type. What it was given last of a file, in each
    /// session, is remembered, so that the editor can tell whether a write is based on the text that is
    /// there: [`BufferChange::freshness_of`](crate::BufferChange::freshness_of). A file that is opened while it
    /// is being written on disk is to the editor like one that any other program writes.
    #[must_use]
    pub fn with_buffers(mut self, buffers: impl Buffers) -> Self {
        self.buffers = Some(BufferedFiles::new(buffers));
        self
    }

    /// The roots, as they were given.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.paths()
    }

    /// The roots themselves.
    pub(crate) fn roots_handle(&self) -> &Roots {
        &self.roots
    }

    /// Answers `fs/read_text_file`. See [`read_text`](Self::read_text).
    ///
    /// # Errors
    /// As for [`read_text`](Self::read_text).
    pub async fn read(&self, request: &ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let (session, path) = (&request.session_id, Path::new(&request.path));
        let lines = LineRange::new(request.line, request.limit);
        let text = self.read_as(Some(session), path, lines).await?;
        Ok(ReadTextFileResponse::new(text))
    }

    /// Answers `fs/write_text_file`. See [`write_text`](Self::write_text).
    ///
    /// # Errors
    /// As for [`write_text`](Self::write_text).
    pub async fn write(
        &self,
        request: &WriteTextFileRequest,
    ) -> Result<WriteTextFileResponse, Error> {
        let (session, path) = (&request.session_id, Path::new(&request.path));
        let content = Arc::from(request.content.as_str());
        self.write_as(Some(session), path, content).await?;
        Ok(WriteTextFileResponse::new())
    }

    /// Reads from the file at the absolute path, beginning with line `line` (counted from 1; 0 means
    /// 1, too), `limit` lines at most. Lines end with `\n`; the text is returned exactly as it is in
    /// the file, line ends included. Beginning behind the end gives an empty text. A line that is longer than
    /// the most that may be read at once cannot be read.
    ///
    /// The file is read in pieces, and as far as is asked for: how large it is does not matter, nor that it
    /// grows meanwhile. What is in front of the first line is read and thrown away; if the future is
    /// dropped, that ends.
    ///
    /// # Errors
    /// `RESOURCE_NOT_FOUND` if there is no such file. `INVALID_PARAMS` if the path is relative or
    /// leads outside the roots, or if it is no regular file, no UTF-8 text, or too large.
    /// `INTERNAL_ERROR` if the system fails or refuses. `data` has the path, and `errno_name` with the
    /// system's name of the error, such as `ENOENT`, where there is one.
    pub async fn read_text(
        &self,
        path: &Path,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, Error> {
        self.read_as(None, path, LineRange::new(line, limit)).await
    }

    async fn read_as(
        &self,
        session: Option<&SessionId>,
        path: &Path,
        lines: LineRange,
    ) -> Result<String, Error> {
        let max = self.max_read;
        // Reading on when nobody wants it any more could take long: up to the first line, any
        // number of bytes may be skipped.
        let abandoned = AbandonGuard::default();
        let given_up = abandoned.watch();
        if let Some(laid) = self.buffers.clone() {
            let view = self.session_file(session, path).await?;
            // Taken before, so that no more texts of the editor's are in memory than of files.
            let turn = self.acquire_permit().await?;
            match laid.read(&view.file).await {
                Some(text) => {
                    let read = move |_: &Path| {
                        let read = read_lines(text.as_bytes(), lines, max, &given_up)?;
                        laid.remember(&view, &text);
                        decode_text(read)
                    };
                    return self.run_blocking(turn, path, read).await;
                }
                None => laid.forget(&view),
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

    /// Gives the file at the absolute path this content; creates it, and the directories above it, if
    /// they are not there. If the path is a symlink, its target is what is written.
    ///
    /// The file is replaced as a whole or not at all, whatever happens meanwhile: a full disk, or the end of
    /// this process by any means. Directories that were created stay.
    ///
    /// It keeps its mode, its owner and group as far as this process may, and on Linux its access control
    /// list and, as far as this process may, other extended attributes. It does not keep set-id bits,
    /// capabilities, flags of its file system (`chattr`), and the time at which it was made. A file that
    /// cannot be written is not replaced, even if its directory could be.
    ///
    /// What the content does not say itself is taken from the text that is there, as [`TextForm`] has it: if
    /// all of its lines end with CR LF, and there is no CR in the content, its line ends become CR LF, and a
    /// byte order mark stays. An agent that writes back what it has read finds exactly that.
    ///
    /// [`TextForm`]: crate::TextForm
    ///
    /// # Errors
    /// `INVALID_PARAMS` if the path is relative or leads outside the roots, or if something is there
    /// that is no regular file. `INTERNAL_ERROR` if the system fails or refuses, or if the editor has the
    /// file open and refuses; the old content is still there then. `data` as for
    /// [`read_text`](Self::read_text).
    pub async fn write_text(&self, path: &Path, content: impl Into<String>) -> Result<(), Error> {
        self.write_as(None, path, content.into().into()).await
    }

    async fn write_as(
        &self,
        session: Option<&SessionId>,
        path: &Path,
        content: Arc<str>,
    ) -> Result<(), Error> {
        let Some(laid) = &self.buffers else {
            return self.write_on_disk(path, content).await;
        };
        let view = self.session_file(session, path).await?;
        let written = laid.write(&view, Arc::clone(&content)).await;
        match written.map_err(|refusal| self.to_error(path, FileError::Buffer(refusal)))? {
            BufferWrite::NotOpen => {
                laid.forget(&view);
                self.write_on_disk(path, content).await
            }
            BufferWrite::Buffer(text) => {
                laid.remember(&view, &text);
                Ok(())
            }
            BufferWrite::BufferAndFile(text) => {
                laid.remember(&view, &text);
                self.write_on_disk(path, Arc::clone(&text)).await?;
                laid.notify_saved(&view.file, &text).await;
                Ok(())
            }
        }
    }

    async fn write_on_disk(&self, path: &Path, content: Arc<str>) -> Result<(), Error> {
        let roots = self.roots.clone();
        let turn = self.acquire_permit().await?;
        self.run_blocking(turn, path, move |path| write_text(&roots, path, &content))
            .await
    }

    /// Where the file really is.
    async fn session_file(
        &self,
        session: Option<&SessionId>,
        path: &Path,
    ) -> Result<SessionFile, Error> {
        let roots = self.roots.clone();
        let turn = self.acquire_permit().await?;
        let follow = move |path: &Path| Ok(resolve_file(&roots, path)?.name());
        let file = self.run_blocking(turn, path, follow).await?;
        let session = session.cloned();
        Ok(SessionFile { session, file })
    }

    async fn acquire_permit(&self) -> Result<OwnedSemaphorePermit, Error> {
        let turn = self.permits.clone().acquire_owned().await;
        turn.map_err(|e| worker_error(&e))
    }

    /// Has a thread that may block do it.
    async fn run_blocking<T: Send + 'static>(
        &self,
        turn: OwnedSemaphorePermit,
        path: &Path,
        work: impl FnOnce(&Path) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Error> {
        let owned = path.to_owned();
        let done = tokio::task::spawn_blocking(move || {
            // The turn is over when the work is, not when nobody waits for it any more.
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
                let why = format!("{shown}: not UTF-8 text (at byte {at} of what was read)");
                return Error::invalid_params(why).data(data);
            }
            FileError::Buffer(refusal) => {
                return Error::internal(format!("{shown}: {refusal}")).data(data);
            }
            FileError::TooLarge => {
                return Error::invalid_params(format!(
                    "{shown}: more than {} bytes as JSON, which is the most that is read at once; use `line` and `limit` to read a part",
                    self.max_read
                ))
                .data(data);
            }
        };
        let explained = self.roots.explain(path, &refusal);
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
        error.data(match errno_name(e.kind()) {
            Some(errno) => json!({ "path": shown, "errno": errno }),
            None => data,
        })
    }
}

/// The names by which agents, most of them written for Node, know the system's errors.
fn errno_name(kind: io::ErrorKind) -> Option<&'static str> {
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

/// Why a file could not be read or written.
#[derive(Debug)]
enum FileError {
    Path(PathError),
    NotText { at: usize },
    TooLarge,
    Buffer(BufferRefusal),
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
    Error::internal(format!("file access stopped: {why}"))
}

fn decode_text(bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|e| FileError::NotText {
        at: e.utf8_error().valid_up_to(),
    })
}

/// The place of a file, with every symlink followed.
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
    // Everything from here on happens in this one directory, whatever becomes of the way to it.
    let dir = place.dir().open_dir(above.unwrap_or(Path::new(".")))?;
    Ok(replace(&dir, name, content)?)
}
