//! Lists the files of a project.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc;

use cap_std::fs::{Dir, Metadata};
use ignore::{DirEntry, WalkBuilder, WalkState};

use crate::error::RewindError;
use crate::options::HistoryOptions;
use crate::stamp::FileStamp;

/// A path that no snapshot keeps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct LeftOutPath {
    /// The path in the project.
    pub path: PathBuf,
    /// Why the path is left out.
    pub reason: LeftOutReason,
}

/// Why a path is left out of snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// The file is too large.
    TooLarge,
    /// It is a socket, a pipe or a device.
    Special,
    /// The file or directory cannot be read.
    Unreadable,
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "too large",
            Self::Special => "not a regular file",
            Self::Unreadable => "cannot be read",
        })
    }
}

/// The files of a project at one moment.
#[derive(Debug, Default)]
pub(crate) struct ProjectScan {
    /// The files by path. Paths are compared as bytes, which is much faster than comparing their components.
    pub(crate) files: BTreeMap<OsString, ScannedFile>,
    /// All directories with their permission bits, except for the project's own.
    pub(crate) directories: BTreeMap<OsString, u32>,
    pub(crate) left_out: BTreeSet<LeftOutPath>,
}

/// A file or symbolic link in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScannedFile {
    pub(crate) is_symlink: bool,
    pub(crate) stamp: FileStamp,
}

/// What a scan found at a path.
enum ScannedEntry {
    File(ScannedFile),
    Directory(u32),
    LeftOut(LeftOutReason),
}

impl ProjectScan {
    /// Lists the files of the project in `root`, and the files and directories in `also`, even if they are ignored. Leaves out the directory
    /// `store`, in which snapshots are stored.
    pub(crate) fn new(
        root: &Path,
        dir: &Dir,
        store: &Path,
        also: &BTreeSet<PathBuf>,
        options: &HistoryOptions,
    ) -> Result<Self, RewindError> {
        let mut scan = Self::walk(root, store, options)?;
        for path in also {
            if scan.files.contains_key(path.as_os_str()) {
                continue;
            }
            // What is behind a link is not in the project. What cannot be read is found when it is to be overwritten.
            if has_real_parents(dir, path)
                && let Ok(metadata) = dir.symlink_metadata(path)
            {
                scan.add(path.clone(), Self::examine(&metadata, options));
            }
        }
        Ok(scan)
    }

    /// Lists the files that git does not ignore.
    fn walk(root: &Path, store: &Path, options: &HistoryOptions) -> Result<Self, RewindError> {
        let store = store.to_owned();
        let (sender, receiver) = mpsc::sync_channel(1024);
        let too_many = Mutex::new(false);
        let mut found = Vec::new();
        let mut file_count = 0;
        std::thread::scope(|scope| {
            let too_many = &too_many;
            scope.spawn(move || {
                let walker = WalkBuilder::new(root)
                    .standard_filters(false)
                    .git_ignore(true)
                    .git_exclude(true)
                    .git_global(true)
                    .parents(true)
                    // A project may have rules before it has a repository.
                    .require_git(false)
                    .filter_entry(move |entry| !is_git(entry.file_name()) && entry.path() != store)
                    .build_parallel();
                walker.run(|| {
                    let sender = sender.clone();
                    // One message for each file would cost more than the walk.
                    let mut batch = EntryBatch::new(sender);
                    Box::new(move |entry| {
                        let found = examine_entry(root, entry, options);
                        match found.is_none_or(|found| batch.push(found)) {
                            true => WalkState::Continue,
                            false => WalkState::Quit,
                        }
                    })
                });
            });
            for batch in receiver {
                let is_file = |(_, entry): &&_| matches!(entry, ScannedEntry::File(_));
                file_count += batch.iter().filter(is_file).count();
                found.extend(batch);
                if file_count > options.max_files {
                    *too_many.lock().unwrap_or_else(|e| e.into_inner()) = true;
                    // Dropping the receiver ends the walk.
                    break;
                }
            }
        });
        if too_many.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(RewindError::TooLarge(format!(
                "{} files",
                options.max_files
            )));
        }
        found.sort_unstable_by(|(one, _), (other, _)| one.as_os_str().cmp(other.as_os_str()));
        let mut scan = Self::default();
        // A map that is built from a sorted list is built quickly.
        let mut files = Vec::with_capacity(file_count);
        for (path, entry) in found {
            match entry {
                ScannedEntry::File(file) => files.push((path.into(), file)),
                entry => scan.add(path, entry),
            }
        }
        scan.files = files.into_iter().collect();
        Ok(scan)
    }

    fn add(&mut self, path: PathBuf, entry: ScannedEntry) {
        match entry {
            ScannedEntry::File(file) => {
                self.files.insert(path.into(), file);
            }
            ScannedEntry::Directory(mode) => {
                self.directories.insert(path.into(), mode);
            }
            ScannedEntry::LeftOut(reason) => {
                self.left_out.insert(LeftOutPath { path, reason });
            }
        }
    }

    fn examine(metadata: &Metadata, options: &HistoryOptions) -> ScannedEntry {
        let kind = metadata.file_type();
        let stamp = FileStamp::of(metadata);
        if kind.is_dir() {
            ScannedEntry::Directory(stamp.mode)
        } else if kind.is_symlink() {
            ScannedEntry::File(ScannedFile {
                is_symlink: true,
                stamp,
            })
        } else if !kind.is_file() {
            ScannedEntry::LeftOut(LeftOutReason::Special)
        } else if metadata.len() > options.max_file_bytes {
            ScannedEntry::LeftOut(LeftOutReason::TooLarge)
        } else {
            ScannedEntry::File(ScannedFile {
                is_symlink: false,
                stamp,
            })
        }
    }
}

/// Returns whether everything above `path` is a directory, and not a symbolic link to one.
fn has_real_parents(dir: &Dir, path: &Path) -> bool {
    let parents = path.ancestors().skip(1);
    let mut parents = parents.filter(|parent| !parent.as_os_str().is_empty());
    parents.all(|parent| {
        let metadata = dir.symlink_metadata(parent);
        metadata.is_ok_and(|metadata| metadata.is_dir())
    })
}

/// Found entries that a thread of the walk has not handed over yet.
struct EntryBatch {
    entries: Vec<(PathBuf, ScannedEntry)>,
    sender: mpsc::SyncSender<Vec<(PathBuf, ScannedEntry)>>,
}

impl EntryBatch {
    const SIZE: usize = 256;

    fn new(sender: mpsc::SyncSender<Vec<(PathBuf, ScannedEntry)>>) -> Self {
        Self {
            entries: Vec::new(),
            sender,
        }
    }

    /// Adds an entry. Returns `false` if the receiver has ended.
    fn push(&mut self, entry: (PathBuf, ScannedEntry)) -> bool {
        self.entries.push(entry);
        self.entries.len() < Self::SIZE || self.flush()
    }

    fn flush(&mut self) -> bool {
        self.sender.send(std::mem::take(&mut self.entries)).is_ok()
    }
}

impl Drop for EntryBatch {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Returns what is at an entry of the walk, or `None` if it does not count.
fn examine_entry(
    root: &Path,
    entry: Result<DirEntry, ignore::Error>,
    options: &HistoryOptions,
) -> Option<(PathBuf, ScannedEntry)> {
    let unreadable = |path: &Path, error: Option<&io::Error>| {
        // A file that was removed in the meantime is not one that is left out.
        if error.is_some_and(|e| e.kind() == io::ErrorKind::NotFound) {
            return None;
        }
        let path = path.strip_prefix(root).ok()?.to_owned();
        Some((path, ScannedEntry::LeftOut(LeftOutReason::Unreadable)))
    };
    match entry {
        Ok(entry) if entry.depth() == 0 => None,
        Ok(entry) => {
            // Ambient paths are safe here: nothing is read but the metadata, and nothing is written.
            match std::fs::symlink_metadata(entry.path()) {
                Ok(metadata) => {
                    let path = entry.path().strip_prefix(root).ok()?.to_owned();
                    let metadata = Metadata::from_just_metadata(metadata);
                    Some((path, ProjectScan::examine(&metadata, options)))
                }
                Err(e) => unreadable(entry.path(), Some(&e)),
            }
        }
        Err(error) => {
            let path = path_of(&error)?.to_owned();
            unreadable(&path, error.io_error())
        }
    }
}

/// Returns the path that an error of the walk is about.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
        _ => None,
    }
}

/// Returns whether a name is that of a git repository's directory or file. Some file systems ignore case.
pub(crate) fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}
