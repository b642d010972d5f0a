//! Restores a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout};

use cap_std::fs::{Dir, OpenOptions};

use crate::changes::{SnapshotChange, TreeChange};
use crate::error::RewindError;
use crate::git::RunningGit;
use crate::history::{ProjectHistory, Snapshot, is_gone};
use crate::metadata::{SnapshotMetadata, is_executable};
use crate::scan::LeftOutReason;
use crate::stamp::FileStamp;

/// What restoring a snapshot would do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RestorePlan {
    /// The snapshot to restore.
    pub to: Snapshot,
    /// The project as it is now. Restoring it undoes the restoration.
    pub before: Snapshot,
    /// Everything that will change, sorted by path.
    pub changes: Vec<SnapshotChange>,
    /// The files of `before`.
    tree: String,
}

/// A path that was not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedPath {
    /// The path in the project.
    pub path: PathBuf,
    /// Why it was left as it is, in words.
    pub reason: String,
}

impl ProjectHistory {
    /// Finds out what would change if a snapshot were restored. Takes a snapshot of the current files.
    ///
    /// # Errors
    ///
    /// If no snapshot of the current files can be taken, or the snapshot to restore was removed.
    pub fn plan_restore(&mut self, to: &Snapshot) -> Result<RestorePlan, RewindError> {
        let before = self.keep_before(to)?;
        Ok(RestorePlan {
            to: to.clone(),
            changes: self.changes(&before, to)?,
            tree: self.last_tree().unwrap_or_default().to_owned(),
            before,
        })
    }

    /// Takes a snapshot of everything that restoring `to` would overwrite.
    fn keep_before(&mut self, to: &Snapshot) -> Result<Snapshot, RewindError> {
        self.check_exists(to)?;
        let before = self.take_snapshot()?;
        // What will be overwritten, although it is not in the project's snapshots now.
        let created = self.tree_changes(&before, to)?.into_iter();
        let created = created.filter(|change| change.old_mode == 0);
        let old = self.directories(&before, &self.metadata(&before)?)?;
        let new = self.directories(to, &self.metadata(to)?)?;
        let created_directories = new.into_keys().filter(|path| !old.contains_key(path));
        let ignored: BTreeSet<PathBuf> = created
            .map(|change| change.path)
            .chain(created_directories)
            .filter(|path| self.is_there(path))
            .collect();
        match ignored.is_empty() {
            true => Ok(before),
            false => self.take_snapshot_with(&ignored),
        }
    }

    fn is_there(&self, path: &Path) -> bool {
        self.dir.symlink_metadata(path).is_ok()
    }

    /// Brings the project's files back to a snapshot, as planned.
    ///
    /// Files that differ are deleted or replaced. Files that are ignored by git stay, unless the snapshot contains them.
    /// A path that cannot be restored is skipped, and the others are restored nevertheless. Returns the skipped paths.
    ///
    /// # Errors
    ///
    /// If files have changed since the restoration was planned ([`RewindError::FilesChanged`]), or if git fails. Then
    /// nothing was restored.
    pub fn restore(&mut self, plan: &RestorePlan) -> Result<Vec<SkippedPath>, RewindError> {
        let RestorePlan { to, .. } = plan;
        let before = self.keep_before(to)?;
        if self.last_tree() != Some(plan.tree.as_str()) {
            return Err(RewindError::FilesChanged);
        }
        let old = self.metadata(&before)?;
        let new = self.metadata(to)?;
        let mut restoration = Restoration {
            history: &*self,
            new: &new,
            tree_changes: self.tree_changes(&before, to)?,
            mode_changes: self.mode_changes(to, &old, &new)?,
            old_directories: self.directories(&before, &old)?,
            new_directories: self.directories(to, &new)?,
            skipped: BTreeMap::new(),
            opened: BTreeMap::new(),
        };
        let blobs = BlobReader::start(restoration.history)?;
        restoration.run(blobs);
        let skipped = restoration.skipped.into_iter();
        let skipped = skipped.map(|(path, reason)| SkippedPath { path, reason });
        Ok(skipped.collect())
    }
}

/// A snapshot that is being restored.
struct Restoration<'a> {
    history: &'a ProjectHistory,
    /// The metadata of the snapshot to restore.
    new: &'a SnapshotMetadata,
    tree_changes: Vec<TreeChange>,
    mode_changes: BTreeMap<PathBuf, u32>,
    old_directories: BTreeMap<PathBuf, u32>,
    new_directories: BTreeMap<PathBuf, u32>,
    skipped: BTreeMap<PathBuf, String>,
    /// Directories that were made writable, with the permissions that they had.
    opened: BTreeMap<PathBuf, u32>,
}

impl Restoration<'_> {
    /// Restores everything that can be. What cannot is skipped, so that the user learns what has been done.
    fn run(&mut self, mut blobs: BlobReader) {
        let changes = std::mem::take(&mut self.tree_changes);
        // The rules about ignored files come first, because they decide what is deleted.
        let (rules, others): (Vec<_>, Vec<_>) = changes
            .into_iter()
            .partition(|change| change.path.file_name() == Some(OsStr::new(".gitignore")));
        let has_rules = !rules.is_empty();
        let (deleted, written): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|change| change.new_mode == 0);
        let (deleted_rules, written_rules): (Vec<_>, Vec<_>) =
            rules.into_iter().partition(|change| change.new_mode == 0);
        self.delete_files(&deleted_rules);
        // A rule in a directory that does not exist yet makes no difference to files that do.
        let (early, late): (Vec<_>, Vec<_>) = written_rules.into_iter().partition(|change| {
            change
                .path
                .parent()
                .is_some_and(|parent| self.is_directory(parent))
        });
        self.write_files(&early, &mut blobs);
        let deleted = match has_rules && !deleted.is_empty() {
            true => self.without_ignored(deleted),
            false => deleted,
        };
        self.delete_files(&deleted);
        self.delete_directories();
        self.create_directories();
        self.write_files(&late, &mut blobs);
        self.write_files(&written, &mut blobs);
        for (path, mode) in std::mem::take(&mut self.mode_changes) {
            self.set_mode(&path, mode);
        }
        self.set_directory_modes();
    }

    fn dir(&self) -> &Dir {
        &self.history.dir
    }

    fn is_directory(&self, path: &Path) -> bool {
        let metadata = self.dir().symlink_metadata(or_dot(path));
        metadata.is_ok_and(|metadata| metadata.is_dir())
    }

    fn skip(&mut self, path: &Path, reason: impl ToString) {
        self.skipped
            .entry(path.to_owned())
            .or_insert_with(|| reason.to_string());
    }

    /// Removes the files that are ignored by now, which the snapshot to restore did not contain for this reason.
    fn without_ignored(&mut self, deleted: Vec<TreeChange>) -> Vec<TreeChange> {
        let scan = match self.history.scan(&BTreeSet::new()) {
            Ok(scan) => scan,
            Err(e) => {
                for change in deleted {
                    self.skip(&change.path, &e);
                }
                return Vec::new();
            }
        };
        let (deleted, ignored): (Vec<_>, Vec<_>) = deleted
            .into_iter()
            .partition(|change| scan.files.contains_key(change.path.as_os_str()));
        for change in ignored {
            if self.dir().symlink_metadata(&change.path).is_ok() {
                self.skip(&change.path, "ignored by git");
            }
        }
        deleted
    }

    /// Returns why a directory above `path` was skipped, if one was. It may be a link, which must not be followed.
    fn skipped_parent(&self, path: &Path) -> Option<&String> {
        let mut parents = path.ancestors().skip(1);
        parents.find_map(|parent| self.skipped.get(parent))
    }

    /// Returns an error if a file is no longer as it was in the snapshot of the current files.
    fn check_unchanged(&self, change: &TreeChange) -> Result<(), String> {
        if let Some(reason) = self.skipped_parent(&change.path) {
            return Err(reason.clone());
        }
        let metadata = match self.dir().symlink_metadata(&change.path) {
            Ok(metadata) => metadata,
            Err(e) if is_gone(&e) => {
                return match change.old_mode {
                    0 => Ok(()),
                    _ => Err("changed while files were being restored".to_owned()),
                };
            }
            Err(e) => return Err(e.to_string()),
        };
        let known = self.history.known_file(&change.path);
        if known.is_some_and(|known| known.stamp == FileStamp::of(&metadata)) {
            return Ok(());
        }
        if metadata.is_dir() {
            // What it contains is not in the snapshot, so it must stay.
            return Err("a directory with ignored files is in its place".to_owned());
        }
        Err(match change.old_mode {
            0 => "something that snapshots leave out is in its place".to_owned(),
            _ => "changed while files were being restored".to_owned(),
        })
    }

    fn delete_files(&mut self, deleted: &[TreeChange]) {
        for change in deleted {
            let path = &change.path;
            if let Some(reason) = self.new.leaves_out(path) {
                self.skip(path, describe_left_out(reason));
                continue;
            }
            if let Err(reason) = self.check_unchanged(change) {
                self.skip(path, reason);
                continue;
            }
            let removed = self.with_writable_parent(path, |dir| dir.remove_file(path));
            match removed {
                Err(e) if !is_gone(&e) => self.skip(path, e),
                _ => {}
            }
        }
    }

    /// Deletes directories that the snapshot does not have. One with other contents, such as ignored files, stays.
    fn delete_directories(&mut self) {
        let surplus = self.old_directories.keys();
        let surplus = surplus.filter(|path| !self.new_directories.contains_key(*path));
        let surplus: Vec<PathBuf> = surplus.cloned().collect();
        // A directory sorts before what it contains.
        for path in surplus.iter().rev() {
            if !self.is_directory(path) {
                continue;
            }
            if let Some(reason) = self.new.leaves_out(path) {
                self.skip(path, describe_left_out(reason));
                continue;
            }
            match self.with_writable_parent(path, |dir| dir.remove_dir(path)) {
                Ok(()) => {
                    self.opened.remove(path);
                }
                Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty || is_gone(&e) => {}
                Err(e) => self.skip(path, e),
            }
        }
    }

    fn create_directories(&mut self) {
        let missing: Vec<PathBuf> = self
            .new_directories
            .keys()
            .filter(|path| !self.is_directory(path))
            .cloned()
            .collect();
        for path in missing {
            if let Some(reason) = self.skipped_parent(&path).cloned() {
                self.skip(&path, reason);
                continue;
            }
            // An ignored file or link may be in its place. It is moved nowhere and deleted never.
            match self.with_writable_parent(&path, |dir| dir.create_dir(&path)) {
                Ok(()) => {}
                Err(e) => self.skip(&path, format!("the directory cannot be created: {e}")),
            }
        }
    }

    fn write_files(&mut self, written: &[TreeChange], blobs: &mut BlobReader) {
        for change in written {
            let contents = match blobs.read(&change.new_id) {
                Ok(contents) => contents,
                Err(e) => {
                    self.skip(&change.path, e);
                    continue;
                }
            };
            if let Err(reason) = self.check_unchanged(change) {
                self.skip(&change.path, reason);
                continue;
            }
            let executable = is_executable(change.new_mode);
            let mode = self.new.file_mode(&change.path, executable);
            let path = &change.path;
            let written = self.with_writable_parent(path, |dir| match change.is_symlink() {
                true => replace_symlink(dir, path, &contents),
                false => replace_file(dir, path, &contents, mode),
            });
            match written {
                Ok(()) => {
                    self.mode_changes.remove(path);
                }
                Err(e) => self.skip(path, e),
            }
        }
    }

    fn set_mode(&mut self, path: &Path, mode: u32) {
        let metadata = match self.dir().symlink_metadata(or_dot(path)) {
            Ok(metadata) if metadata.is_symlink() => return,
            Ok(metadata) => metadata,
            // It was skipped before.
            Err(_) => return,
        };
        if FileStamp::of(&metadata).mode == mode || self.skipped.contains_key(path) {
            return;
        }
        if let Err(e) = set_mode(self.dir(), path, mode) {
            self.skip(path, e);
        }
    }

    /// Sets the permissions of directories, those inside of others first.
    fn set_directory_modes(&mut self) {
        let mut modes = std::mem::take(&mut self.opened);
        for (path, mode) in &self.new_directories {
            modes.insert(path.clone(), *mode);
        }
        for (path, mode) in modes.into_iter().rev() {
            if self.is_directory(&path) && self.skipped_parent(&path).is_none() {
                self.set_mode(&path, mode);
            }
        }
    }

    /// Calls `change`. If that is denied, makes the directory of `path` writable and calls it again.
    fn with_writable_parent(
        &mut self,
        path: &Path,
        change: impl Fn(&Dir) -> io::Result<()>,
    ) -> io::Result<()> {
        match change(self.dir()) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                let parent = path.parent().unwrap_or(Path::new(""));
                let mode = FileStamp::of(&self.dir().symlink_metadata(or_dot(parent))?).mode;
                set_mode(self.dir(), parent, mode | 0o700)?;
                self.opened.entry(parent.to_owned()).or_insert(mode);
                change(self.dir())
            }
            other => other,
        }
    }
}

fn describe_left_out(reason: LeftOutReason) -> String {
    format!("not in the snapshot: {reason}")
}

/// Returns `.` for the project's own directory.
fn or_dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

/// Replaces a file. Others see either the old or the new one.
fn replace_file(dir: &Dir, path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    with_temporary(path, |temporary| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = dir.open_with(temporary, &options)?;
        let written = file.write_all(contents);
        drop(file);
        let replaced = written
            .and_then(|()| set_mode(dir, temporary, mode))
            .and_then(|()| dir.rename(temporary, dir, path));
        if replaced.is_err() {
            // The first error says more.
            let _ = dir.remove_file(temporary);
        }
        replaced
    })
}

#[cfg(unix)]
fn replace_symlink(dir: &Dir, path: &Path, target: &[u8]) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    with_temporary(path, |temporary| {
        dir.symlink_contents(OsStr::from_bytes(target), temporary)?;
        let replaced = dir.rename(temporary, dir, path);
        if replaced.is_err() {
            let _ = dir.remove_file(temporary);
        }
        replaced
    })
}

#[cfg(not(unix))]
fn replace_symlink(_dir: &Dir, _path: &Path, _target: &[u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Calls `write` with unused names beside `path` until one does not exist.
fn with_temporary(path: &Path, write: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut tries = 0_u32;
    loop {
        let name = format!(".acp-restore-{}-{tries}", std::process::id());
        match write(&path.with_file_name(name)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < 100 => tries += 1,
            other => return other,
        }
    }
}

#[cfg(unix)]
fn set_mode(dir: &Dir, path: &Path, mode: u32) -> io::Result<()> {
    use cap_std::fs::PermissionsExt;
    dir.set_permissions(or_dot(path), cap_std::fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_dir: &Dir, _path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Reads contents of files from the repository, with one git process for all of them.
struct BlobReader {
    git: RunningGit,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl BlobReader {
    fn start(history: &ProjectHistory) -> Result<Self, RewindError> {
        let mut git = history.repository.start("cat-file", ["--batch"])?;
        match (git.child.stdin.take(), git.child.stdout.take()) {
            (Some(input), Some(output)) => Ok(Self {
                git,
                input,
                output: BufReader::new(output),
            }),
            _ => Err(git.failure("no pipes".to_owned())),
        }
    }

    /// Returns the contents of the object with this id.
    fn read(&mut self, id: &str) -> Result<Vec<u8>, RewindError> {
        let read = self.try_read(id);
        read.map_err(|e| self.git.failure(format!("cannot read {id}: {e}")))
    }

    fn try_read(&mut self, id: &str) -> io::Result<Vec<u8>> {
        self.input.write_all(format!("{id}\n").as_bytes())?;
        self.input.flush()?;
        // `ID blob SIZE`, or `ID missing`
        let mut head = String::new();
        (&mut self.output).take(1024).read_line(&mut head)?;
        let size = head
            .trim_end()
            .rsplit(' ')
            .next()
            .and_then(|size| size.parse::<u64>().ok());
        let size = size.ok_or_else(|| io::Error::other(format!("unexpected answer: {head}")))?;
        let mut contents = Vec::new();
        (&mut self.output)
            .take(size + 1)
            .read_to_end(&mut contents)?;
        // A line feed follows.
        match contents.pop() {
            Some(b'\n') if u64::try_from(contents.len()) == Ok(size) => Ok(contents),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
