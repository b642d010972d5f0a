//! Text files under a session's roots: the specification's page "File System".

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_wire::jsonrpc::Error;
use acp_wire::v1::{
    ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use cap_std::fs::{File, OpenOptions};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::replace::{NotReplaced, other_than_file, replace};
use crate::roots::{Place, Refusal, Roots};
use crate::sys;

/// The most that is read at once, if nothing else is set, in bytes.
const MAX_READ: usize = 64 * 1024 * 1024;

/// How much is read in one piece, in bytes.
const PIECE: usize = 64 * 1024;

/// How many files are read or written at the same time. The rest wait: the memory that a flood of
/// requests takes is this many times the most that is read at once.
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
    roots: Arc<Roots>,
    max_read: usize,
    turns: Arc<Semaphore>,
}

impl Files {
    /// Files under these directories, which must be there: a session's `cwd` and its additional
    /// directories.
    ///
    /// # Errors
    /// A root is not an absolute path, or is no directory that can be opened; the error names it.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        Ok(Self {
            roots: Arc::new(Roots::open(roots)?),
            max_read: MAX_READ,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// The most that one reading may give, in bytes; 64 MiB if it is not set. It is what one answer
    /// may hold, not how large a file may be: of a larger one, `line` and `limit` read a part.
    #[must_use]
    pub fn max_read(mut self, bytes: usize) -> Self {
        self.max_read = bytes;
        self
    }

    /// The roots, as they were given.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots.paths()
    }

    /// The roots themselves.
    pub(crate) fn pinned(&self) -> &Roots {
        &self.roots
    }

    /// Answers `fs/read_text_file`. See [`read_text`](Self::read_text).
    ///
    /// # Errors
    /// As for [`read_text`](Self::read_text).
    pub async fn read(&self, request: &ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let text = self
            .read_text(Path::new(&request.path), request.line, request.limit)
            .await?;
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
        self.write_text(Path::new(&request.path), request.content.clone())
            .await?;
        Ok(WriteTextFileResponse::new())
    }

    /// Reads from the file at the absolute path, beginning with line `line` (counted from 1; 0 means
    /// 1, too), `limit` lines at most. Lines end with `\n`; the text is returned exactly as it is in
    /// the file, line ends included. Beginning behind the end gives an empty text.
    ///
    /// # Errors
    /// `RESOURCE_NOT_FOUND` if there is no such file. `INVALID_PARAMS` if the path is relative or
    /// leads outside the roots, or if it is no regular file, no UTF-8 text, or too large.
    /// `INTERNAL_ERROR` if the system fails or refuses. `data` has the path, and `errno` with the
    /// system's name of the error, such as `ENOENT`, where there is one.
    pub async fn read_text(
        &self,
        path: &Path,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, Error> {
        let lines = Lines {
            first: line.unwrap_or(1).max(1),
            limit,
        };
        let (roots, max) = (self.roots.clone(), self.max_read);
        // Reading on when nobody wants it any more could take long: up to the first line, any
        // number of bytes may be skipped.
        let abandoned = Abandoned::default();
        let given_up = abandoned.0.clone();
        self.blocking(path, move |path| {
            read_text(&roots, path, lines, max, &given_up)
        })
        .await
    }

    /// Gives the file at the absolute path this content; creates it, and the directories above it, if
    /// they are not there. The file is replaced as a whole or not at all, keeps its mode, and if the
    /// path is a symlink, its target is what is written.
    ///
    /// # Errors
    /// `INVALID_PARAMS` if the path is relative or leads outside the roots, or if something is there
    /// that is no regular file. `INTERNAL_ERROR` if the system fails or refuses; the old content is
    /// still there then. `data` as for [`read_text`](Self::read_text).
    pub async fn write_text(&self, path: &Path, content: impl Into<String>) -> Result<(), Error> {
        let roots = self.roots.clone();
        let content = content.into();
        self.blocking(path, move |path| {
            write_text(&roots, path, content.as_bytes())
        })
        .await
    }

    /// Has a thread that may block do it.
    async fn blocking<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce(&Path) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let stopped =
            |e: &dyn std::fmt::Display| Error::internal(format!("file access stopped: {e}"));
        let turn = self
            .turns
            .clone()
            .acquire_owned()
            .await
            .map_err(|e| stopped(&e))?;
        let owned = path.to_owned();
        let done = tokio::task::spawn_blocking(move || {
            // The turn is over when the work is, not when nobody waits for it any more.
            let _turn = turn;
            work(&owned)
        });
        done.await
            .map_err(|e| stopped(&e))?
            .map_err(|fault| self.error(path, fault))
    }

    fn error(&self, path: &Path, fault: Fault) -> Error {
        let shown = path.display();
        let invalid = |what: &str| Error::invalid_params(format!("{shown}: {what}"));
        let data = json!({ "path": path.to_string_lossy() });
        match fault {
            Fault::NotAbsolute => {
                Error::invalid_params(format!("all file paths must be absolute, and this one is not: {shown}"))
            }
            Fault::Outside => {
                let roots: Vec<_> = self.roots().map(|root| root.display().to_string()).collect();
                invalid(&format!("outside the session's directories ({})", roots.join(", ")))
            }
            Fault::NotAFile(what) => invalid(&format!("{what}, and only regular files can be read or written")),
            Fault::NotText { at } => invalid(&format!("not UTF-8 text (at byte {at} of what was read)")),
            Fault::TooLarge => invalid(&format!(
                "more than {} bytes, which is the most that is read at once; use `line` and `limit` to read a part",
                self.max_read
            )),
            Fault::Io(e) => {
                let errno = errno(e.kind());
                let error = match e.kind() {
                    io::ErrorKind::NotFound => Error::resource_not_found(shown),
                    io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename => invalid(&e.to_string()),
                    _ => Error::internal(format!("{shown}: {e}")),
                };
                return match errno {
                    Some(errno) => error.data(json!({ "path": path.to_string_lossy(), "errno": errno })),
                    None => error.data(data),
                };
            }
        }
        .data(data)
    }
}

/// The names by which agents, most of them written for Node, know the system's errors.
fn errno(kind: io::ErrorKind) -> Option<&'static str> {
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
enum Fault {
    NotAbsolute,
    Outside,
    NotAFile(&'static str),
    NotText { at: usize },
    TooLarge,
    Io(io::Error),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotAbsolute => Self::NotAbsolute,
            Refusal::Outside => Self::Outside,
            Refusal::Io(e) => Self::Io(e),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Refusal::from(error).into()
    }
}

impl From<NotReplaced> for Fault {
    fn from(fault: NotReplaced) -> Self {
        match fault {
            NotReplaced::NotAFile(what) => Self::NotAFile(what),
            NotReplaced::Io(e) => e.into(),
        }
    }
}

/// Tells the thread that works, when dropped, that nobody waits for it any more.
#[derive(Default)]
struct Abandoned(Arc<AtomicBool>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A part of a file.
#[derive(Clone, Copy)]
struct Lines {
    /// Counted from 1.
    first: u32,
    limit: Option<u32>,
}

fn read_text(
    roots: &Roots,
    path: &Path,
    lines: Lines,
    max: usize,
    given_up: &AtomicBool,
) -> Result<String, Fault> {
    let file = match open(&roots.place(path)?) {
        // It may still be a symlink that the system does not follow but that ends under a root.
        Err(Fault::Outside) => open(&roots.follow(path)?)?,
        other => other?,
    };
    let bytes = read_lines(file, lines, max, given_up)?;
    String::from_utf8(bytes).map_err(|e| Fault::NotText {
        at: e.utf8_error().valid_up_to(),
    })
}

fn open(place: &Place<'_>) -> Result<File, Fault> {
    let path = if place.path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        &place.path
    };
    // Looking first, because opening a device can do something already; and once more at what was
    // opened, because that may be another thing by then.
    let check =
        |metadata| other_than_file(&metadata).map_or(Ok(()), |what| Err(Fault::NotAFile(what)));
    check(place.dir.metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    sys::never_wait(&mut options);
    let file = place.dir.open_with(path, &options)?;
    check(file.metadata()?)?;
    Ok(file)
}

fn read_lines(
    mut file: impl Read,
    lines: Lines,
    max: usize,
    given_up: &AtomicBool,
) -> Result<Vec<u8>, Fault> {
    let mut skip = lines.first - 1;
    let mut left = lines.limit;
    let mut kept = Vec::new();
    let mut buffer = vec![0; PIECE];
    while left != Some(0) {
        if given_up.load(Ordering::Relaxed) {
            return Err(Fault::Io(io::ErrorKind::Interrupted.into()));
        }
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e.into()),
        };
        let mut piece = buffer.get(..read).unwrap_or_default();
        if skip > 0 {
            let mut start = piece.len();
            for end in memchr::memchr_iter(b'\n', piece) {
                skip -= 1;
                if skip == 0 {
                    start = end + 1;
                    break;
                }
            }
            piece = piece.get(start..).unwrap_or_default();
        }
        if let Some(left) = &mut left {
            for end in memchr::memchr_iter(b'\n', piece) {
                *left -= 1;
                if *left == 0 {
                    piece = piece.get(..=end).unwrap_or_default();
                    break;
                }
            }
        }
        if kept.len() + piece.len() > max {
            return Err(Fault::TooLarge);
        }
        kept.extend_from_slice(piece);
    }
    Ok(kept)
}

fn write_text(roots: &Roots, path: &Path, content: &[u8]) -> Result<(), Fault> {
    let place = roots.follow(path)?;
    let Some(name) = place.path.file_name() else {
        return Err(Fault::NotAFile("a directory"));
    };
    let above = place
        .path
        .parent()
        .filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above {
        place.dir.create_dir_all(above)?;
    }
    // Everything from here on happens in this one directory, whatever becomes of the way to it.
    let dir = place.dir.open_dir(above.unwrap_or(Path::new(".")))?;
    Ok(replace(&dir, name, content)?)
}
