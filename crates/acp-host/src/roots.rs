//! The directories of a session, as handles, and the way from a path to a place under one of them.
//!
//! A path as a peer gives it is only compared with the roots to find out which handle it is meant to
//! go through. What the rest of it leads to is the operating system's decision, at the moment of
//! opening: on Linux by `openat2` with `RESOLVE_BENEATH`. A symlink that is put in the way between a
//! check and its use leads nowhere.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use crate::sys;

/// As many symlinks as Linux follows in one path.
const MAX_LINKS: usize = 40;

/// The longest path that is looked at, in bytes. No system takes a longer one, and a path of a peer's
/// may be as long as a message: taken apart it would be many times as large.
const MAX_PATH: usize = 32 * 1024;

/// How much of a path is repeated in an error, in bytes.
const MAX_SHOWN: usize = 1024;

/// The directories of a session, as handles that were opened when it started.
///
/// They stay the same directories, whatever their names become. All access goes through the handles,
/// and the operating system refuses to leave them: through `..`, through symlinks, and also if someone
/// changes the directories at the same time. Symlinks that end under a root are followed. What is
/// mounted under a root is under it, and so is every hard link there.
///
/// [`Files`](crate::Files) reads and writes text through them. This is for whoever needs more than that,
/// as an agent that lists and searches. Everything here may block.
///
/// Cloning is cheap, and the clones have the same handles.
#[derive(Debug, Clone)]
pub struct Roots(Arc<[PinnedRoot]>);

#[derive(Debug)]
struct PinnedRoot {
    /// As it was given, absolute.
    given_path: PathBuf,
    /// The same without symlinks. Agents find out their directory in either form.
    real_path: PathBuf,
    dir: Dir,
}

/// A path from a root on.
#[derive(Debug)]
pub struct RootedPath<'a> {
    root: &'a PinnedRoot,
    path: PathBuf,
}

/// Why a path leads to no place, or to nothing that can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is relative. The specification: "All file paths in the protocol MUST be absolute."
    #[error("not an absolute path")]
    NotAbsolute,
    /// It leads out of the roots.
    #[error("outside the session's directories")]
    Outside,
    /// What is there is something else than a regular file, namely this.
    #[error("not a regular file ({0})")]
    NotAFile(&'static str),
    /// The system fails or refuses.
    #[error("{0}")]
    Io(#[source] io::Error),
}

impl From<io::Error> for PathError {
    fn from(error: io::Error) -> Self {
        // cap-std's own refusal has a kind and no number; the system's always have one.
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            Self::Outside
        } else {
            Self::Io(error)
        }
    }
}

impl<'a> RootedPath<'a> {
    /// The root, as it was given.
    #[must_use]
    pub fn root(&self) -> &'a Path {
        &self.root.given_path
    }

    /// The root's handle.
    #[must_use]
    pub fn dir(&self) -> &'a Dir {
        &self.root.dir
    }

    /// The path from the root on; empty for the root itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of the place from the file system's root on, beginning with the root's name without
    /// symlinks. For comparing and showing; to open it by this name would be to trust names.
    #[must_use]
    pub fn name(&self) -> PathBuf {
        if self.path.as_os_str().is_empty() {
            self.root.real_path.clone()
        } else {
            self.root.real_path.join(&self.path)
        }
    }

    /// The path as the system takes it.
    fn path_or_dot(&self) -> &Path {
        if self.path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &self.path
        }
    }
}

impl Roots {
    /// Opens the roots. From now on they are these directories, whatever their names become.
    ///
    /// # Errors
    /// A root is not an absolute path, or is no directory that can be opened; the error names it.
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

    /// The roots as they were given.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|root| &*root.given_path)
    }

    /// Opens the regular file at the absolute path for reading. Nothing is waited for, as for the other
    /// end of a fifo, and no device is opened.
    ///
    /// # Errors
    /// It is none, is not there, is not under a root, or the system refuses.
    pub fn open_file(&self, path: &Path) -> Result<File, PathError> {
        let place = self.lexical_path(path)?;
        if has_trailing_separator(path) {
            return Err(PathError::NotAFile("a directory"));
        }
        match open_file(place.dir(), place.path_or_dot()) {
            // It may still be a symlink that the system does not follow but that ends under a root.
            Err(PathError::Outside) => {
                let place = self.resolve(path)?;
                open_file(place.dir(), place.path_or_dot())
            }
            other => other,
        }
    }

    /// Opens the directory at the absolute path.
    ///
    /// # Errors
    /// It is none, is not there, is not under a root, or the system refuses.
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

    /// What a refusal means, for people.
    #[must_use]
    pub fn explain(&self, path: &Path, refusal: &PathError) -> String {
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

    /// The root that the path goes through, the innermost if there are several, and the rest of it.
    fn find_root(&self, path: &Path) -> Result<(&PinnedRoot, PathBuf), PathError> {
        if !path.is_absolute() {
            return Err(PathError::NotAbsolute);
        }
        if path.as_os_str().len() > MAX_PATH {
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

    /// The place that the path names as it stands, for the system to follow. The innermost root counts.
    ///
    /// # Errors
    /// The path is relative, or begins with no root's name.
    pub fn lexical_path(&self, path: &Path) -> Result<RootedPath<'_>, PathError> {
        let (root, path) = self.find_root(path)?;
        Ok(RootedPath { root, path })
    }

    /// The place that the path leads to, with every symlink followed, the last one too, even if
    /// nothing is there yet. In contrast to the system, this also follows symlinks that are absolute
    /// or lead from root to root, as long as they end under a root.
    ///
    /// The answer may be stale at once. It is safe all the same, because the place is used through
    /// its root's handle.
    ///
    /// # Errors
    /// The path is relative, leads out of the roots, or the system refuses to look.
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
                // Above the root, which has no symlinks in its real path, a step up is one less name.
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
                    if links > MAX_LINKS {
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

/// Puts the names of a relative path before those that are still ahead.
fn push_front_components(ahead: &mut VecDeque<OsString>, path: &Path) -> Result<(), PathError> {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_owned()),
            Component::ParentDir => ahead.push_front("..".into()),
            Component::CurDir => {}
            // Relative to a drive, which is not ours.
            Component::RootDir | Component::Prefix(_) => return Err(PathError::Outside),
        }
    }
    Ok(())
}

/// Opens the regular file at a path under a directory for reading, as [`Roots::open_file`] does.
///
/// # Errors
/// It is none, is not there, is not under the directory, or the system refuses.
pub fn open_file(dir: &Dir, path: impl AsRef<Path>) -> Result<File, PathError> {
    let path = path.as_ref();
    // Looking first, because opening a device can do something already; and once more at what was
    // opened, because that may be another thing by then.
    let check = |metadata: &Metadata| {
        non_file_kind(metadata).map_or(Ok(()), |what| Err(PathError::NotAFile(what)))
    };
    check(&dir.metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    sys::set_nonblocking(&mut options);
    let file = dir.open_with(path, &options)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// What a thing that is no regular file is called.
pub(crate) fn non_file_kind(metadata: &Metadata) -> Option<&'static str> {
    if metadata.is_file() {
        None
    } else if metadata.is_dir() {
        Some("a directory")
    } else {
        Some("not a regular file")
    }
}

/// Whether a path says that a directory is meant. The standard library's paths forget most of that.
pub(crate) fn has_trailing_separator(path: &Path) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    let last = path
        .rsplit(|byte| std::path::is_separator(char::from(*byte)))
        .next();
    matches!(last, Some(b"" | b"." | b".."))
}

/// A path for people, cut if it is too long for them.
pub(crate) fn display_path(path: &Path) -> String {
    let mut shown = path.to_string_lossy().into_owned();
    if shown.len() > MAX_SHOWN {
        let mut end = MAX_SHOWN;
        while !shown.is_char_boundary(end) {
            end -= 1;
        }
        shown.truncate(end);
        shown.push('…');
    }
    shown
}
