//! Lists what differs between two snapshots.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::RewindError;
use crate::git::path_from_bytes;
use crate::history::{ProjectHistory, Snapshot};
use crate::import::{FILES, is_object_id};
use crate::metadata::{SnapshotMetadata, is_executable};

/// Limits a difference to the project's files, and makes their paths relative to the project. Unlike a path of the tree
/// `files`, this works for a project without files.
const RELATIVE: &str = "--relative=files/";

/// A difference between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SnapshotChange {
    /// The path in the project.
    pub path: PathBuf,
    /// What changes.
    pub kind: ChangeKind,
    /// The numbers of lines added and removed, or `None` if the file is not text, or its contents stay.
    pub lines: Option<(u64, u64)>,
}

/// What changes at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChangeKind {
    /// A file or symbolic link is created.
    Created,
    /// The contents change, or a file becomes a symbolic link or the reverse.
    Modified,
    /// Only the permissions change.
    Permissions,
    /// A file or symbolic link is deleted.
    Deleted,
    /// An empty directory is created.
    DirectoryCreated,
    /// An empty directory is deleted.
    DirectoryDeleted,
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::Modified => "modified",
            Self::Permissions => "permissions",
            Self::Deleted => "deleted",
            Self::DirectoryCreated => "directory created",
            Self::DirectoryDeleted => "directory deleted",
        })
    }
}

/// A git object's mode and id at a path, on both sides of a difference. A mode of 0 means that there is nothing.
#[derive(Debug, Clone)]
pub(crate) struct TreeChange {
    pub(crate) path: PathBuf,
    pub(crate) old_mode: u32,
    pub(crate) new_mode: u32,
    pub(crate) old_id: String,
    pub(crate) new_id: String,
}

impl ProjectHistory {
    /// Lists what differs between two snapshots, sorted by path.
    ///
    /// # Errors
    ///
    /// If one of the snapshots was removed.
    pub fn changes(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<Vec<SnapshotChange>, RewindError> {
        if from == to {
            return Ok(Vec::new());
        }
        self.check_exists(from)?;
        self.check_exists(to)?;
        let lines = self.changed_lines(from, to)?;
        let (old, new) = (self.metadata(from)?, self.metadata(to)?);
        let mut changes = BTreeMap::new();
        let mut add = |path: PathBuf, kind, lines| {
            let change = SnapshotChange {
                path: path.clone(),
                kind,
                lines,
            };
            changes.entry(path).or_insert(change);
        };
        for change in self.tree_changes(from, to)? {
            let kind = match (change.old_mode, change.new_mode) {
                (0, _) => ChangeKind::Created,
                (_, 0) => ChangeKind::Deleted,
                _ if change.old_id == change.new_id && !change.changes_type() => {
                    ChangeKind::Permissions
                }
                _ => ChangeKind::Modified,
            };
            let lines = match kind {
                ChangeKind::Permissions => None,
                _ => lines.get(&change.path).copied().flatten(),
            };
            add(change.path, kind, lines);
        }
        for (path, _) in self.mode_changes(to, &old, &new)? {
            add(path, ChangeKind::Permissions, None);
        }
        let before = self.directories(from, &old)?;
        let after = self.directories(to, &new)?;
        for path in old.directories.keys().chain(new.directories.keys()) {
            // A directory that is not empty is created and deleted together with its files.
            let was_empty = old.directories.contains_key(path);
            let kind = match (before.get(path), after.get(path)) {
                (None, Some(_)) => ChangeKind::DirectoryCreated,
                (Some(_), None) if was_empty => ChangeKind::DirectoryDeleted,
                (Some(before), Some(after)) if before != after => ChangeKind::Permissions,
                _ => continue,
            };
            add(path.clone(), kind, None);
        }
        if !old.has_same_usual_modes(&new) {
            for (path, mode) in &after {
                if before.get(path).is_some_and(|before| before != mode) {
                    add(path.clone(), ChangeKind::Permissions, None);
                }
            }
        }
        Ok(changes.into_values().collect())
    }

    /// Returns the permissions after `to` of the files that may have others before, except for files whose contents
    /// change.
    pub(crate) fn mode_changes(
        &self,
        to: &Snapshot,
        old: &SnapshotMetadata,
        new: &SnapshotMetadata,
    ) -> Result<BTreeMap<PathBuf, u32>, RewindError> {
        let candidates: Vec<(PathBuf, bool)> = if old.has_same_usual_modes(new) {
            let unusual = old.unusual_files().chain(new.unusual_files());
            // Whether a file is executable is the same on both sides: a file for which it changes is in the tree's
            // changes.
            let unusual = unusual.map(|(path, mode)| (path.clone(), is_executable(mode)));
            unusual.collect()
        } else {
            self.listed_files(to)?
        };
        let changed = candidates.into_iter().filter_map(|(path, executable)| {
            let mode = new.file_mode(&path, executable);
            (mode != old.file_mode(&path, executable)).then_some((path, mode))
        });
        Ok(changed.collect())
    }

    /// Returns the regular files of a snapshot, and whether each is executable.
    fn listed_files(&self, snapshot: &Snapshot) -> Result<Vec<(PathBuf, bool)>, RewindError> {
        let listed = self.list_tree(snapshot, &["-r"])?;
        let files = listed.into_iter().filter_map(|(mode, path)| match mode {
            0o100_644 => Some((path, false)),
            0o100_755 => Some((path, true)),
            _ => None,
        });
        Ok(files.collect())
    }

    /// Returns all directories of a snapshot with their permission bits.
    pub(crate) fn directories(
        &self,
        snapshot: &Snapshot,
        metadata: &SnapshotMetadata,
    ) -> Result<BTreeMap<PathBuf, u32>, RewindError> {
        let listed = self.list_tree(snapshot, &["-r", "-d"])?;
        let listed = listed.into_iter().map(|(_, path)| path);
        // A directory that contains only empty ones is in neither list.
        let parents = metadata
            .directories
            .keys()
            .flat_map(|path| path.ancestors());
        let parents = parents.filter(|path| !path.as_os_str().is_empty());
        let mut directories = BTreeMap::new();
        for path in listed.chain(parents.map(Path::to_owned)) {
            let mode = metadata.directory_mode(&path);
            directories.insert(path, mode);
        }
        Ok(directories)
    }

    /// Lists the git modes and paths of a snapshot.
    fn list_tree(
        &self,
        snapshot: &Snapshot,
        options: &[&str],
    ) -> Result<Vec<(u32, PathBuf)>, RewindError> {
        let files = format!("{FILES}/");
        let arguments = ["-z", "--full-tree", snapshot.id(), &files];
        let arguments = options.iter().chain(&arguments);
        let listed = self.repository.output("ls-tree", arguments)?;
        let entries = listed.split(|byte| *byte == 0).filter_map(|record| {
            // `MODE TYPE ID<TAB>files/PATH`
            let tab = record.iter().position(|byte| *byte == b'\t')?;
            let path = record.get(tab + 1..)?.strip_prefix(files.as_bytes())?;
            let mode = record.split(|byte| *byte == b' ').next()?;
            let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
            Some((mode, path_from_bytes(path)?))
        });
        Ok(entries.collect())
    }

    /// Returns the difference between two snapshots as text, in the format of `git diff`, of at most `limit` bytes. Does
    /// not show permissions other than whether a file is executable.
    ///
    /// # Errors
    ///
    /// If one of the snapshots was removed.
    pub fn diff(&self, from: &Snapshot, to: &Snapshot, limit: u64) -> Result<Vec<u8>, RewindError> {
        let arguments = [
            "-r",
            "-p",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--no-prefix",
        ];
        let arguments = arguments.into_iter().chain([RELATIVE, from.id(), to.id()]);
        self.repository.output_up_to(limit, "diff-tree", arguments)
    }

    /// Lists the files that differ between two snapshots.
    pub(crate) fn tree_changes(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<Vec<TreeChange>, RewindError> {
        let options = ["-r", "-z", "--raw", "--no-renames", "--no-abbrev", RELATIVE];
        let arguments = options.into_iter().chain([from.id(), to.id()]);
        let listed = self.repository.output("diff-tree", arguments)?;
        let mut fields = listed.split(|byte| *byte == 0);
        let mut changes = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let change = TreeChange::parse(head, path);
            let unexpected = || RewindError::Git {
                command: "diff-tree",
                message: format!("unexpected output: {}", String::from_utf8_lossy(head)),
            };
            changes.push(change.ok_or_else(unexpected)?);
        }
        Ok(changes)
    }

    /// Returns the numbers of lines added and removed in each changed file, or `None` for a binary file.
    fn changed_lines(
        &self,
        from: &Snapshot,
        to: &Snapshot,
    ) -> Result<BTreeMap<PathBuf, Option<(u64, u64)>>, RewindError> {
        let options = ["-r", "-z", "--numstat", "--no-renames", RELATIVE];
        let arguments = options.into_iter().chain([from.id(), to.id()]);
        let listed = self.repository.output("diff-tree", arguments)?;
        let lines = listed.split(|byte| *byte == 0).filter_map(|record| {
            let mut fields = record.splitn(3, |byte| *byte == b'\t');
            let mut count = || {
                let field = fields.next()?;
                std::str::from_utf8(field).ok()?.parse().ok()
            };
            let counts = count().zip(count());
            // The counts of a binary file are `-`.
            let path = record.splitn(3, |byte| *byte == b'\t').nth(2)?;
            Some((path_from_bytes(path)?, counts))
        });
        Ok(lines.collect())
    }
}

impl TreeChange {
    /// Parses `:100644 100755 OLD NEW M` and a path.
    fn parse(head: &[u8], path: &[u8]) -> Option<Self> {
        let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
        let mut fields = head.split(' ');
        let mut mode = || u32::from_str_radix(fields.next()?, 8).ok();
        let (old_mode, new_mode) = (mode()?, mode()?);
        let mut id = || {
            fields
                .next()
                .filter(|id| is_object_id(id))
                .map(str::to_owned)
        };
        Some(Self {
            path: path_from_bytes(path)?,
            old_mode,
            new_mode,
            old_id: id()?,
            new_id: id()?,
        })
    }

    /// Returns whether a file becomes a symbolic link or the reverse.
    pub(crate) fn changes_type(&self) -> bool {
        const TYPE: u32 = 0o170_000;
        self.old_mode & TYPE != self.new_mode & TYPE
    }

    pub(crate) fn is_symlink(&self) -> bool {
        self.new_mode == 0o120_000
    }
}
