//! A project in a temporary directory, with a git repository of the user's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use acp_rewind::{HistoryOptions, ProjectHistory};
use tempfile::TempDir;

pub(crate) struct TestProject {
    _directory: TempDir,
    pub(crate) root: PathBuf,
    pub(crate) store: PathBuf,
    /// A file beside the project.
    pub(crate) outside: PathBuf,
}

/// What is at a path: its permissions, and its contents or target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Directory(u32),
    File(u32, Vec<u8>),
    Symlink(PathBuf),
    Special,
}

impl TestProject {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap().join("project");
        let store = directory.path().join("store");
        let outside = directory.path().join("outside");
        fs::write(&outside, "outside").unwrap();
        fs::create_dir(&root).unwrap();
        user_git(&root, &["init", "--quiet", "--initial-branch=main"]);
        Self {
            _directory: directory,
            root,
            store,
            outside,
        }
    }

    pub(crate) fn options(&self) -> HistoryOptions {
        let mut options = HistoryOptions::default();
        options.max_file_bytes = 64 * 1024;
        options
    }

    pub(crate) fn open(&self) -> ProjectHistory {
        ProjectHistory::open(&self.root, &self.store, self.options()).unwrap()
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    pub(crate) fn set_mode(&self, path: &str, mode: u32) {
        crate::set_mode(self.path(path), mode);
    }

    /// Everything in the project but the user's repository.
    pub(crate) fn entries(&self) -> BTreeMap<PathBuf, Entry> {
        let mut entries = BTreeMap::new();
        collect(&self.root, &self.root, true, &mut entries);
        entries
    }

    /// Everything in the user's repository.
    pub(crate) fn repository(&self) -> BTreeMap<PathBuf, Entry> {
        let mut entries = BTreeMap::new();
        collect(&self.root.join(".git"), &self.root, false, &mut entries);
        entries
    }
}

fn collect(directory: &Path, root: &Path, skip_git: bool, entries: &mut BTreeMap<PathBuf, Entry>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if skip_git && path.file_name().unwrap().as_bytes() == b".git" {
            // A repository inside of the project stays, and so does its directory.
            if directory != root {
                entries.insert(path.strip_prefix(root).unwrap().to_owned(), Entry::Special);
            }
            continue;
        }
        let metadata = fs::symlink_metadata(&path).unwrap();
        let mode = metadata.mode() & 0o7777;
        let found = if metadata.is_dir() {
            collect(&path, root, skip_git, entries);
            Entry::Directory(mode)
        } else if metadata.is_symlink() {
            Entry::Symlink(fs::read_link(&path).unwrap())
        } else if metadata.is_file() {
            Entry::File(mode, fs::read(&path).unwrap())
        } else {
            Entry::Special
        };
        entries.insert(path.strip_prefix(root).unwrap().to_owned(), found);
    }
}

/// Runs git as the user does. Returns whether it succeeded.
pub(crate) fn user_git(directory: &Path, arguments: &[&str]) -> bool {
    let output = Command::new("git")
        .args(["-c", "user.name=User", "-c", "user.email=user@example.com"])
        .args(["-c", "commit.gpgSign=false", "-c", "gc.auto=0"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    output.status.success()
}
