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

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// As many symlinks as Linux follows in one path.
const MAX_LINKS: usize = 40;

#[derive(Debug)]
pub(crate) struct Roots(Vec<Root>);

#[derive(Debug)]
pub(crate) struct Root {
    /// As it was given, absolute.
    given: PathBuf,
    /// The same without symlinks. Agents find out their directory in either form.
    real: PathBuf,
    dir: Dir,
}

/// A path from a root on.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    pub(crate) dir: &'a Dir,
    /// Relative to `dir`; empty for `dir` itself.
    pub(crate) path: PathBuf,
}

/// Why a path leads to no place.
#[derive(Debug)]
pub(crate) enum Refusal {
    NotAbsolute,
    Outside,
    Io(io::Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        // cap-std's own refusal has a kind and no number; the system's always have one.
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            Self::Outside
        } else {
            Self::Io(error)
        }
    }
}

impl Roots {
    /// Opens the roots. From now on they are these directories, whatever their names become.
    pub(crate) fn open(roots: impl IntoIterator<Item = PathBuf>) -> io::Result<Self> {
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
            Ok(Root { given, real, dir })
        };
        roots
            .into_iter()
            .map(open)
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// The roots as they were given.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|root| &*root.given)
    }

    /// The root that the path goes through, the innermost if there are several, and the rest of it.
    fn enter(&self, path: &Path) -> Result<(&Root, PathBuf), Refusal> {
        if !path.is_absolute() {
            return Err(Refusal::NotAbsolute);
        }
        let rests = self.0.iter().flat_map(|root| {
            let rest = |prefix: &Path| path.strip_prefix(prefix).ok().map(Path::to_path_buf);
            [rest(&root.given), rest(&root.real)]
                .into_iter()
                .flatten()
                .map(move |rest| (root, rest))
        });
        rests
            .min_by_key(|(_, rest)| rest.components().count())
            .ok_or(Refusal::Outside)
    }

    /// The place that the path names as it stands, for the system to follow.
    pub(crate) fn place(&self, path: &Path) -> Result<Place<'_>, Refusal> {
        let (root, path) = self.enter(path)?;
        Ok(Place {
            dir: &root.dir,
            path,
        })
    }

    /// The place that the path leads to, with every symlink followed, the last one too, even if
    /// nothing is there yet. In contrast to the system, this also follows symlinks that are absolute
    /// or lead from root to root, as long as they end under a root.
    ///
    /// The answer may be stale at once. It is safe all the same, because the place is used through
    /// its root's handle.
    pub(crate) fn follow(&self, path: &Path) -> Result<Place<'_>, Refusal> {
        let (root, path) = self.followed(path)?;
        Ok(Place {
            dir: &root.dir,
            path,
        })
    }

    /// The same as a path without symlinks, for comparing it with others: never for using it.
    pub(crate) fn real(&self, path: &Path) -> Result<PathBuf, Refusal> {
        let (root, path) = self.followed(path)?;
        Ok(match path.as_os_str().is_empty() {
            true => root.real.clone(),
            false => root.real.join(path),
        })
    }

    fn followed(&self, path: &Path) -> Result<(&Root, PathBuf), Refusal> {
        let (mut root, rest) = self.enter(path)?;
        let mut ahead = VecDeque::new();
        put_ahead(&mut ahead, &rest)?;
        let mut done = PathBuf::new();
        let mut links = 0;
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                if done.pop() {
                    continue;
                }
                // Above the root, which has no symlinks in its real path, a step up is one less name.
                let mut above = root.real.clone();
                above.pop();
                while ahead.front().is_some_and(|name| name == "..") {
                    ahead.pop_front();
                    above.pop();
                }
                above.extend(ahead.drain(..));
                let (next, rest) = self.enter(&above)?;
                root = next;
                put_ahead(&mut ahead, &rest)?;
                continue;
            }
            let next = done.join(&name);
            match root.dir.symlink_metadata(&next) {
                Ok(metadata) if metadata.is_symlink() => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Refusal::Io(io::Error::other(
                            "too many levels of symbolic links",
                        )));
                    }
                    let target = root.dir.read_link_contents(&next)?;
                    if target.is_absolute() {
                        let (next, rest) = self.enter(&target)?;
                        root = next;
                        done = PathBuf::new();
                        put_ahead(&mut ahead, &rest)?;
                    } else {
                        put_ahead(&mut ahead, &target)?;
                    }
                }
                Ok(_) => done = next,
                Err(e) if e.kind() == io::ErrorKind::NotFound => done = next,
                Err(e) => return Err(e.into()),
            }
        }
        Ok((root, done))
    }
}

/// Puts the names of a relative path before those that are still ahead.
fn put_ahead(ahead: &mut VecDeque<OsString>, path: &Path) -> Result<(), Refusal> {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_owned()),
            Component::ParentDir => ahead.push_front("..".into()),
            Component::CurDir => {}
            // Relative to a drive, which is not ours.
            Component::RootDir | Component::Prefix(_) => return Err(Refusal::Outside),
        }
    }
    Ok(())
}
