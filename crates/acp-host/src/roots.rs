//! Keeps handles to a session's root directories, and resolves paths under them.
//!
//! A path from a peer is compared with the roots only to choose the root's handle. The operating system resolves the
//! rest when the file is opened, on Linux with `openat2` and `RESOLVE_BENEATH`. So a symlink that is created between a
//! check and the use of a path cannot lead out of the root.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use crate::sys;

/// The maximum number of symlinks to follow in a path. The same as on Linux.
const MAX_SYMLINKS: usize = 40;

/// The maximum length of a path, in bytes. No operating system accepts longer ones. A path from a peer may be as long
/// as a whole message, and would take up many times as much memory once split into components.
const MAX_PATH_BYTES: usize = 32 * 1024;

/// The maximum length of a path in an error message, in bytes.
const MAX_DISPLAY_BYTES: usize = 1024;

/// A session's root directories, as handles that were opened when the session started.
///
/// The roots stay the same directories even if they are renamed or replaced. All access goes through the handles, and
/// the operating system refuses to leave them, whether through `..`, through symlinks, or because someone changes the
/// directories at the same time. Symlinks that end under a root are followed. File systems mounted under a root belong
/// to it, and so do all hard links there.
///
/// [`Files`](crate::Files) uses the roots to read and write text. Use them directly for anything else, such as listing
/// and searching. All methods may block.
///
/// Cloning is cheap, and the clones share the handles.
#[derive(Debug, Clone)]
pub struct Roots(Arc<[PinnedRoot]>);

#[derive(Debug)]
struct PinnedRoot {
    /// The absolute path of the root, as given.
    given_path: PathBuf,
    /// The root's path without symlinks. Agents may use either path.
    real_path: PathBuf,
    dir: Dir,
}

/// A path relative to one of the roots.
#[derive(Debug)]
pub struct RootedPath<'a> {
    root: &'a PinnedRoot,
    path: PathBuf,
}

/// The reason why a path cannot be resolved or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is relative. The specification says: "All file paths in the protocol MUST be absolute."
    #[error("not an absolute path")]
    NotAbsolute,
    /// The path is outside the session's roots.
    #[error("outside the session's directories")]
    Outside,
    /// The path does not refer to a regular file. Contains a phrase for what it refers to, such as `a directory`.
    #[error("not a regular file ({0})")]
    NotAFile(&'static str),
    /// The operating system reported an error or denied access.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> Self {
        // cap-std's own error has a kind but no number. The system's errors always have one.
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            Self::Outside
        } else {
            Self::Io(error)
        }
    }
}

impl<'a> RootedPath<'a> {
    /// Returns the path of the root, as given.
    #[must_use]
    pub fn root(&self) -> &'a Path {
        &self.root.given_path
    }

    /// Returns the root's directory handle.
    #[must_use]
    pub fn dir(&self) -> &'a Dir {
        &self.root.dir
    }

    /// Returns the path relative to the root. Empty for the root itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the absolute path, starting with the root's path without symlinks. Use it only for comparing or
    /// displaying paths, since opening a file by this path would bypass the root's handle.
    #[must_use]
    pub fn absolute_path(&self) -> PathBuf {
        if self.path.as_os_str().is_empty() {
            self.root.real_path.clone()
        } else {
            self.root.real_path.join(&self.path)
        }
    }

    /// Returns the path relative to the root, or `.` for the root itself. For calls that do not accept an empty path.
    fn path_or_dot(&self) -> &Path {
        if self.path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.path
        }
    }
}

impl Roots {
    /// Opens the roots. The handles keep referring to the same directories even if those are renamed or replaced later.
    ///
    /// # Errors
    /// A root is not an absolute path, or is not a directory that can be opened. The error names the root.
    pub fn open(roots: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
        let open = |given: PathBuf| {
            let named =
                |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", given.display()));
            if !given.is_absolute() {
                return Err(named(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "not an absolute path",
                )));
            }
            let dir = Dir::open_ambient_dir(&given, ambient_authority()).map_err(named)?;
            let real = std::fs::canonicalize(&given).map_err(named)?;
            Ok(PinnedRoot {
                given_path: given,
                real_path: real,
                dir,
            })
        };
        roots
            .into_iter()
            .map(open)
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Returns the paths of the roots, as given.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|root| &*root.given_path)
    }

    /// Opens the regular file at an absolute path for reading. Does not block on a FIFO or open a device.
    ///
    /// # Errors
    /// The path is not a regular file, does not exist, is not under a root, or the system denies access.
    pub fn open_file(&self, path: &Path) -> Result<File, PathError> {
        let place = self.lexical_path(path)?;
        if has_trailing_separator(path) {
            return Err(PathError::NotAFile("a directory"));
        }
        match open_file(place.dir(), place.path_or_dot()) {
            // The path may still be a symlink that the system does not follow but that ends under a root.
            Err(PathError::Outside) => {
                let place = self.resolve(path)?;
                open_file(place.dir(), place.path_or_dot())
            }
            other => other,
        }
    }

    /// Opens the directory at an absolute path.
    ///
    /// # Errors
    /// The path is not a directory, does not exist, is not under a root, or the system denies access.
    pub fn open_dir(&self, path: &Path) -> Result<Dir, PathError> {
        let place = self.lexical_path(path)?;
        match place
            .dir()
            .open_dir(place.path_or_dot())
            .map_err(PathError::from)
        {
            Err(PathError::Outside) => {
                let place = self.resolve(path)?;
                Ok(place.dir().open_dir(place.path_or_dot())?)
            }
            other => other,
        }
    }

    /// Formats a path error as a message for the user.
    #[must_use]
    pub fn error_message(&self, path: &Path, refusal: &PathError) -> String {
        let path = display_path(path);
        match refusal {
            PathError::NotAbsolute => {
                format!("file path must be absolute: {path}")
            }
            PathError::Outside => {
                let roots: Vec<_> = self.paths().map(display_path).collect();
                format!("{path}: {refusal} ({})", roots.join(", "))
            }
            refusal => format!("{path}: {refusal}"),
        }
    }

    /// Returns the innermost root that contains the path, and the rest of the path.
    fn find_root(&self, path: &Path) -> Result<(&PinnedRoot, PathBuf), PathError> {
        if !path.is_absolute() {
            return Err(PathError::NotAbsolute);
        }
        if path.as_os_str().len() > MAX_PATH_BYTES {
            return Err(PathError::Io(io::ErrorKind::InvalidFilename.into()));
        }
        let rests = self.0.iter().flat_map(|root| {
            let rest = |prefix: &Path| path.strip_prefix(prefix).ok().map(Path::to_path_buf);
            [rest(&root.given_path), rest(&root.real_path)]
                .into_iter()
                .flatten()
                .map(move |rest| (root, rest))
        });
        rests
            .min_by_key(|(_, rest)| rest.components().count())
            .ok_or(PathError::Outside)
    }

    /// Returns the path relative to the innermost root. Does not resolve symlinks, but leaves them to the system.
    ///
    /// # Errors
    /// The path is relative, or is not under the name of a root.
    pub fn lexical_path(&self, path: &Path) -> Result<RootedPath<'_>, PathError> {
        let (root, path) = self.find_root(path)?;
        Ok(RootedPath { root, path })
    }

    /// Resolves all symlinks in a path, including the last component, even if the file does not exist yet. Unlike the
    /// system, this also follows symlinks that are absolute or lead from one root to another, as long as they end under
    /// a root.
    ///
    /// The result may become outdated at any time. It is safe to use anyway, because it is resolved again through the
    /// root's handle.
    ///
    /// # Errors
    /// The path is relative, leads out of the roots, or the system denies access.
    pub fn resolve(&self, path: &Path) -> Result<RootedPath<'_>, PathError> {
        let (mut root, rest) = self.find_root(path)?;
        let mut ahead = VecDeque::new();
        push_front_components(&mut ahead, &rest)?;
        let mut done = PathBuf::new();
        let mut links = 0;
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                if done.pop() {
                    continue;
                }
                // Above the root, whose real path has no symlinks, `..` simply removes one name.
                let mut above = root.real_path.clone();
                above.pop();
                while ahead.front().is_some_and(|name| name == "..") {
                    ahead.pop_front();
                    above.pop();
                }
                above.extend(ahead.drain(..));
                let (next, rest) = self.find_root(&above)?;
                root = next;
                push_front_components(&mut ahead, &rest)?;
                continue;
            }
            let next = done.join(&name);
            match root.dir.symlink_metadata(&next) {
                Ok(metadata) if metadata.is_symlink() => {
                    links += 1;
                    if links > MAX_SYMLINKS {
                        return Err(PathError::Io(io::Error::other(
                            "too many levels of symbolic links",
                        )));
                    }
                    let target = root.dir.read_link_contents(&next)?;
                    if target.is_absolute() {
                        let (next, rest) = self.find_root(&target)?;
                        root = next;
                        done = PathBuf::new();
                        push_front_components(&mut ahead, &rest)?;
                    } else {
                        push_front_components(&mut ahead, &target)?;
                    }
                }
                Ok(_) => done = next,
                Err(e) if e.kind() == io::ErrorKind::NotFound => done = next,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(RootedPath { root, path: done })
    }
}

/// Inserts the components of a relative path in front of the remaining ones.
fn push_front_components(ahead: &mut VecDeque<OsString>, path: &Path) -> Result<(), PathError> {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_owned()),
            Component::ParentDir => ahead.push_front("..".into()),
            Component::CurDir => {}
            // The path is relative to a drive, which is not one of the roots.
            Component::RootDir | Component::Prefix(_) => return Err(PathError::Outside),
        }
    }
    Ok(())
}

/// Opens the regular file at a path under a directory for reading, like [`Roots::open_file`].
///
/// # Errors
/// The path is not a regular file, does not exist, is not under the directory, or the system denies access.
pub fn open_file(dir: &Dir, path: impl AsRef<Path>) -> Result<File, PathError> {
    let path = path.as_ref();
    // Checked before opening, because opening a device can have effects. Checked again afterwards, because the path may
    // lead to another file by then.
    let check = |metadata: &Metadata| {
        describe_file_type(metadata).map_or(Ok(()), |what| Err(PathError::NotAFile(what)))
    };
    check(&dir.metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    sys::set_nonblocking(&mut options);
    let file = dir.open_with(path, &options)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// If the file is not a regular file, returns a phrase for its type, such as `a directory`.
pub(crate) fn describe_file_type(metadata: &Metadata) -> Option<&'static str> {
    if metadata.is_file() {
        None
    } else if metadata.is_dir() {
        Some("a directory")
    } else {
        Some("a pipe, socket or device")
    }
}

/// Returns `true` if a path can only refer to a directory, because it ends with a separator, `.` or `..`. The standard
/// library normalizes most of these endings away.
pub(crate) fn has_trailing_separator(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    let last = path
        .rsplit(|byte| std::path::is_separator(char::from(*byte)))
        .next();
    matches!(last, Some(b"" | b"." | b".."))
}

/// Formats a path for the user, truncating it if it is too long.
pub(crate) fn display_path(path: &Path) -> String {
    let mut shown = path.to_string_lossy().into_owned();
    if shown.len() > MAX_DISPLAY_BYTES {
        let mut end = MAX_DISPLAY_BYTES;
        while !shown.is_char_boundary(end) {
            end -= 1;
        }
        shown.truncate(end);
        shown.push('…');
    }
    shown
}
