//! Stores the changed versions of files when an undo replaces them. Nothing is deleted.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::GuardedRoot;

/// The maximum number of bytes to copy for an entry that must be moved to another file system.
const MAX_COPY_BYTES: u64 = 256 * 1024 * 1024;

/// A place to store the changed versions of files that an undo replaces.
pub(super) struct UndoneFiles<'a> {
    root: &'a GuardedRoot,
    /// A new directory used only for this undo, if one could be created.
    directory: Option<(PathBuf, Dir)>,
    is_used: std::cell::Cell<bool>,
}

impl<'a> UndoneFiles<'a> {
    /// Creates the storage directory, if possible. If not, undone files stay in the root under another name. The
    /// directory is created in advance, because the cause of a failure would be harder to find later.
    pub(super) fn new(root: &'a GuardedRoot, kept_in: Option<&Path>) -> Self {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = kept_in.map(|kept_in| {
            let seconds = std::time::SystemTime::UNIX_EPOCH
                .elapsed()
                .unwrap_or_default();
            kept_in.join(format!(
                "{}-{}-{number}",
                seconds.as_secs(),
                std::process::id()
            ))
        });
        let place = place.and_then(|place| {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(&place).ok()?;
            let dir = Dir::open_ambient_dir(&place, ambient_authority()).ok()?;
            Some((place, dir))
        });
        Self {
            root,
            directory: place,
            is_used: false.into(),
        }
    }

    /// Moves a file out of the root. If that fails, renames it so that programs no longer run or trust it.
    pub(super) fn store(&self, path: &Path) -> io::Result<()> {
        let from = &self.root.dir;
        if let Some((_, to)) = &self.directory {
            let place = flat_name(path);
            let moved = from.rename(path, to, &place);
            let moved = moved.or_else(|_| {
                let mut left = MAX_COPY_BYTES;
                copy_entry(from, path, to, &place, &mut left)?;
                remove(from, path)
            });
            if moved.is_ok() {
                self.is_used.set(true);
                return Ok(());
            }
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".undone-by-acp-{}", std::process::id()));
        let mut beside = path.with_file_name(&name);
        let mut number = 0;
        while from.symlink_metadata(&beside).is_ok() {
            number += 1;
            let mut name = name.clone();
            name.push(format!("-{number}"));
            beside = path.with_file_name(name);
        }
        from.rename(path, from, beside)
    }

    /// Returns the storage directory if anything has been stored in it. Otherwise, removes it.
    pub(super) fn directory_if_used(&self) -> Option<PathBuf> {
        let place = self.directory.as_ref().map(|(place, _)| place.clone())?;
        if self.is_used.get() {
            return Some(place);
        }
        let _ = std::fs::remove_dir(&place);
        None
    }
}

/// Joins the components of a path into a single name, so that programs do not run or trust the stored file either.
fn flat_name(path: &Path) -> PathBuf {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let mut flat = std::ffi::OsString::from("undone");
    for name in names {
        flat.push("__");
        flat.push(name);
    }
    flat.into()
}

/// Copies a file or directory, and subtracts the number of copied bytes from `left`. Fails if there are more than
/// `left` bytes to copy.
fn copy_entry(from: &Dir, path: &Path, to: &Dir, place: &Path, left: &mut u64) -> io::Result<()> {
    let meta = from.symlink_metadata(path)?;
    if meta.is_dir() {
        to.create_dir(place)?;
        for entry in from.read_dir(path)? {
            let name = entry?.file_name();
            copy_entry(from, &path.join(&name), to, &place.join(&name), left)?;
        }
        return Ok(());
    }
    if meta.is_symlink() {
        return create_symlink(to, &from.read_link_contents(path)?, place);
    }
    if !meta.is_file() {
        return Ok(());
    }
    *left = left
        .checked_sub(meta.len())
        .ok_or_else(|| io::Error::other("too large to copy"))?;
    let mut source = from.open(path)?.take(meta.len());
    let mut target = to.open_with(place, OpenOptions::new().write(true).create_new(true))?;
    io::copy(&mut source, &mut target).map(drop)
}

fn remove(dir: &Dir, path: &Path) -> io::Result<()> {
    match dir.symlink_metadata(path)?.is_dir() {
        true => dir.remove_dir_all(path),
        false => dir.remove_file(path),
    }
}

/// Creates a symlink at `path`. It may point anywhere, because this code never follows it.
#[cfg(unix)]
pub(super) fn create_symlink(dir: &Dir, to: &Path, path: &Path) -> io::Result<()> {
    dir.symlink_contents(to, path)
}

#[cfg(not(unix))]
pub(super) fn create_symlink(_dir: &Dir, _to: &Path, _path: &Path) -> io::Result<()> {
    Err(io::Error::other(
        "symlinks are not supported on this system",
    ))
}
