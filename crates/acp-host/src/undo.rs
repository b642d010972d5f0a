//! Undoes changes that sandboxed programs make to files that other programs run or trust.
//!
//! Landlock can only allow a directory together with everything in it. It cannot allow a project except for its
//! `.git/hooks`. So such files are recorded before a command starts, and restored after it has ended. The changed
//! versions are kept, and the user and the agent are informed.
//!
//! All access goes through a handle to the root, because a command can create symlinks anywhere and this program must
//! not follow them out of the root.

mod directory_role;
mod report;
mod undone_files;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use self::directory_role::{DirectoryRole, EntryAction, looks_like_git_directory};
use self::report::UndoReport;
use self::undone_files::{UndoneFiles, create_symlink};
use crate::trusted_files::TRUSTED_PATHS;

/// The maximum number of directory entries to examine. Any others are not protected, which is noted in the report.
const MAX_ENTRIES: usize = 300_000;

/// The maximum time for examining entries. Entries not reached in time are not protected, which is noted in the report.
const SCAN_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of a file to record, in bytes. Changes to larger files are reported but not undone.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The maximum total size of the files recorded in a root, in bytes. Changes to other files are reported but not
/// undone.
const MAX_TOTAL_BYTES: u64 = 64 * 1024 * 1024;

/// Protects files that other programs run or trust, in certain directories, by undoing changes to them.
#[derive(Debug)]
pub(crate) struct UndoGuard {
    roots: Vec<GuardedRoot>,
    /// The directory to move changed versions of files to, or `None` to leave them in their own directory.
    undone_directory: Option<PathBuf>,
    state: Mutex<GuardState>,
}

#[derive(Debug)]
struct GuardedRoot {
    path: PathBuf,
    dir: Dir,
    /// Paths in the root that may be changed.
    writable: Vec<PathBuf>,
    /// The maximum number of directory entries to examine.
    max_entries: usize,
}

#[derive(Debug, Default)]
struct GuardState {
    /// The number of running watches.
    watch_count: usize,
    /// The state of each root when the first of the running watches was started.
    before_watch: Vec<RootSnapshot>,
    /// The stamps of the files in each root when the last watch ended.
    after_watch: Vec<BTreeMap<PathBuf, FileStamp>>,
    /// Paths that changed while no watch was running, and have not been reported yet.
    changed_between: Vec<PathBuf>,
}

/// The files recorded in a root at one moment.
#[derive(Debug, Default)]
struct RootSnapshot {
    entries: BTreeMap<PathBuf, SnapshotEntry>,
    /// Whether some entries were not examined.
    is_incomplete: bool,
    /// The time when recording started, in seconds since 1970.
    started_at: i64,
}

/// A file or directory recorded in a snapshot.
#[derive(Debug)]
struct SnapshotEntry {
    kind: SnapshotKind,
    mode: u32,
    stamp: FileStamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SnapshotKind {
    Directory,
    /// A file, with its contents if they are not too large.
    File(Option<Vec<u8>>),
    Link(PathBuf),
    /// An entry of any other type, such as a socket. Programs do not run these.
    Other,
}

/// A file's metadata. Every write changes at least one of these values.
type FileStamp = (u64, u64, i64, i64);

/// A watch for changes to trusted files. Ends when dropped.
#[derive(Debug)]
pub(crate) struct UndoWatch {
    guard: Arc<UndoGuard>,
    /// Whether the watched program has ended and its changes have been undone.
    has_ended: AtomicBool,
}

impl UndoGuard {
    /// Creates a guard for these directories, except for the paths in `open`. Returns `None` if there is nothing to
    /// protect.
    pub(crate) fn new(
        roots: &[PathBuf],
        open: &[PathBuf],
        kept_in: Option<PathBuf>,
    ) -> io::Result<Option<Arc<Self>>> {
        let mut watched = Vec::new();
        for path in roots {
            if open.iter().any(|open| path.starts_with(open)) || !path.is_dir() {
                continue;
            }
            let below = open.iter().filter_map(|open| open.strip_prefix(path).ok());
            watched.push(GuardedRoot {
                dir: Dir::open_ambient_dir(path, ambient_authority())?,
                writable: below.map(Path::to_owned).collect(),
                path: path.clone(),
                max_entries: MAX_ENTRIES,
            });
        }
        Ok((!watched.is_empty()).then(|| {
            Arc::new(Self {
                roots: watched,
                undone_directory: kept_in,
                state: Mutex::default(),
            })
        }))
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a watch. Also records the current state, unless another watch is already running, because that watch's
    /// program may have made changes since it started. Reads files.
    pub(crate) fn watch(self: &Arc<Self>) -> UndoWatch {
        let mut state = self.state();
        if state.watch_count == 0 {
            state.before_watch = self.roots.iter().map(GuardedRoot::take_snapshot).collect();
            // These changes may come from the user, or from a process that a command left running unnoticed.
            let after = std::mem::take(&mut state.after_watch);
            let both = self.roots.iter().zip(after).zip(&state.before_watch);
            let changed: Vec<PathBuf> = both
                .flat_map(|((root, after), before)| before.changed_since(&after, root))
                .collect();
            state.changed_between = changed;
        }
        state.watch_count += 1;
        drop(state);
        UndoWatch {
            guard: Arc::clone(self),
            has_ended: false.into(),
        }
    }

    /// Accepts a change to this file, so that it will not be undone. Reads files.
    pub(crate) fn allow_change(&self, path: &Path) {
        let mut state = self.state();
        for (root, before) in self.roots.iter().zip(&mut state.before_watch) {
            let Ok(path) = path.strip_prefix(&root.path) else {
                continue;
            };
            let now = root.take_snapshot();
            let of_it = |other: &Path| path.starts_with(other) || other.starts_with(path);
            before.entries.retain(|other, _| !other.starts_with(path));
            let accepted = now.entries.into_iter().filter(|(other, _)| of_it(other));
            for (path, entry) in accepted {
                before.entries.entry(path).or_insert(entry);
            }
        }
    }
}

impl UndoWatch {
    /// Undoes all changes made since the files were recorded. Returns a report if there is anything to report. Reads
    /// and writes files.
    pub(crate) fn undo(&self) -> Option<String> {
        let guard = &self.guard;
        // The lock is held throughout, so that only one watch undoes changes at a time.
        let mut state = guard.state();
        let mut report = UndoReport {
            changed_between: std::mem::take(&mut state.changed_between),
            ..UndoReport::default()
        };
        for (root, before) in guard.roots.iter().zip(&state.before_watch) {
            root.undo(before, guard.undone_directory.as_deref(), &mut report);
        }
        report.to_text()
    }

    /// Undoes changes for the last time and ends the watch.
    pub(crate) fn finish(&self) -> Option<String> {
        self.has_ended.store(true, Ordering::Relaxed);
        let undone = self.undo();
        let mut state = self.guard.state();
        if state.watch_count == 1 {
            state.after_watch = self
                .guard
                .roots
                .iter()
                .map(GuardedRoot::file_stamps)
                .collect();
        }
        undone
    }
}

impl Drop for UndoWatch {
    fn drop(&mut self) {
        // Nothing waits for the watched program to end, for example because this program is exiting. So undo the
        // changes now.
        if !self.has_ended.load(Ordering::Relaxed)
            && let Some(undone) = self.undo()
        {
            tracing::warn!("{}", undone.trim());
        }
        let mut state = self.guard.state();
        state.watch_count = state.watch_count.saturating_sub(1);
        if state.watch_count == 0 {
            state.before_watch = Vec::new();
        }
    }
}

impl RootSnapshot {
    /// Returns the paths that have changed since the stamps in `then` were taken.
    fn changed_since(
        &self,
        then: &BTreeMap<PathBuf, FileStamp>,
        root: &GuardedRoot,
    ) -> Vec<PathBuf> {
        let files = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.kind != SnapshotKind::Directory);
        let now: BTreeMap<&PathBuf, FileStamp> =
            files.map(|(path, entry)| (path, entry.stamp)).collect();
        let changed = now
            .iter()
            .filter(|(path, stamp)| then.get(**path) != Some(stamp));
        let removed = then.keys().filter(|path| !now.contains_key(path));
        let paths = changed.map(|(path, _)| *path).chain(removed);
        paths.map(|path| root.path.join(path)).collect()
    }
}

impl GuardedRoot {
    /// Returns the protected files with their current stamps.
    fn file_stamps(&self) -> BTreeMap<PathBuf, FileStamp> {
        let (found, _) = self.walk(None);
        let files = found.into_iter().filter(|(_, meta)| !meta.is_dir());
        files
            .map(|(path, meta)| (path, file_stamp(&meta)))
            .collect()
    }

    /// Returns the protected files, and whether a limit was exceeded. Skips unreadable directories, unless `opened` is
    /// given. In that case, makes them readable and adds their old modes to `opened`.
    fn walk(
        &self,
        mut opened: Option<&mut Vec<(PathBuf, u32)>>,
    ) -> (BTreeMap<PathBuf, Metadata>, bool) {
        let begin = Instant::now();
        let mut found = BTreeMap::new();
        let mut entries = 0;
        // Start with entries known to be trusted, then go from the top down, so that entries near the root are always
        // examined.
        let mut todo = VecDeque::from([
            (PathBuf::from(".git"), DirectoryRole::Git),
            (PathBuf::new(), DirectoryRole::Ordinary),
        ]);
        while let Some((directory, place)) = todo.pop_front() {
            let Ok(listed) = self.open_for_walk(&directory, opened.as_deref_mut()) else {
                continue;
            };
            let room = self.max_entries.saturating_sub(entries);
            let names: Vec<_> = listed
                .flatten()
                .take(room)
                .map(|entry| entry.file_name())
                .collect();
            entries += names.len();
            if entries >= self.max_entries || begin.elapsed() > SCAN_TIMEOUT {
                self.add_known_names(&mut found);
                return (found, true);
            }
            let bare = place == DirectoryRole::Ordinary && looks_like_git_directory(&names);
            for name in names {
                let path = directory.join(&name);
                if self.writable.iter().any(|open| path.starts_with(open)) {
                    continue;
                }
                let look = place.entry_action(directory.file_name(), &name, bare);
                if matches!(look, EntryAction::Skip) {
                    continue;
                }
                let Ok(meta) = self.dir.symlink_metadata(&path) else {
                    continue;
                };
                match look {
                    EntryAction::Descend(DirectoryRole::Ordinary) if meta.is_dir() => {
                        todo.push_back((path, DirectoryRole::Ordinary));
                    }
                    EntryAction::Descend(inside) if meta.is_dir() => {
                        todo.push_front((path, inside))
                    }
                    // This is a file that says where the repository is, or a link to it.
                    EntryAction::Descend(DirectoryRole::Git) => {
                        found.insert(path, meta);
                    }
                    EntryAction::Record => {
                        if meta.is_dir() {
                            todo.push_front((path.clone(), DirectoryRole::Trusted));
                        }
                        found.insert(path, meta);
                    }
                    EntryAction::Descend(_) | EntryAction::Skip => {}
                }
            }
        }
        (found, false)
    }

    /// Lists a directory. If it is unreadable and `opened` is given, makes it readable and adds its old mode to
    /// `opened`.
    fn open_for_walk(
        &self,
        directory: &Path,
        opened: Option<&mut Vec<(PathBuf, u32)>>,
    ) -> io::Result<cap_std::fs::ReadDir> {
        self.open_directory(directory).or_else(|e| match opened {
            // A command may have made it unreadable to hide what it put there.
            Some(opened) if e.kind() == io::ErrorKind::PermissionDenied => {
                let place = directory_or_dot(directory);
                let had = file_mode(&self.dir.symlink_metadata(place)?);
                self.set_mode(place, had | 0o700)?;
                opened.push((place.to_owned(), had));
                self.open_directory(directory)
            }
            _ => Err(e),
        })
    }

    /// Adds the trusted files that are in the root itself and have known names.
    fn add_known_names(&self, found: &mut BTreeMap<PathBuf, Metadata>) {
        for name in TRUSTED_PATHS
            .iter()
            .filter(|name| !name.contains('*') && **name != ".git")
        {
            let is_open = self
                .writable
                .iter()
                .any(|open| Path::new(name).starts_with(open));
            let there = self.dir.symlink_metadata(name);
            if let Some(meta) = there.ok().filter(|_| !is_open) {
                found.entry(PathBuf::from(name)).or_insert(meta);
            }
        }
    }

    fn open_directory(&self, directory: &Path) -> io::Result<cap_std::fs::ReadDir> {
        match directory.as_os_str().is_empty() {
            true => self.dir.entries(),
            false => self.dir.read_dir(directory),
        }
    }

    fn take_snapshot(&self) -> RootSnapshot {
        let begun = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default();
        let (found, is_cut) = self.walk(None);
        let mut left = MAX_TOTAL_BYTES;
        let mut entries = BTreeMap::new();
        for (path, meta) in found {
            let kind = self.entry_kind(&path, &meta, left);
            if let SnapshotKind::File(Some(content)) = &kind {
                left = left.saturating_sub(content.len() as u64);
            }
            let entry = SnapshotEntry {
                kind,
                mode: file_mode(&meta),
                stamp: file_stamp(&meta),
            };
            entries.insert(path, entry);
        }
        RootSnapshot {
            entries,
            is_incomplete: is_cut,
            started_at: begun.as_secs().try_into().unwrap_or_default(),
        }
    }

    /// Returns the kind of entry at the path, including the contents of a file of at most `left` bytes.
    fn entry_kind(&self, path: &Path, meta: &Metadata, left: u64) -> SnapshotKind {
        if meta.is_dir() {
            return SnapshotKind::Directory;
        }
        if meta.is_symlink() {
            return self
                .dir
                .read_link_contents(path)
                .map_or(SnapshotKind::Other, SnapshotKind::Link);
        }
        if !meta.is_file() {
            return SnapshotKind::Other;
        }
        let read = || -> io::Result<Option<Vec<u8>>> {
            let most = MAX_FILE_BYTES.min(left);
            if meta.len() > most {
                return Ok(None);
            }
            let mut content = Vec::new();
            let file = self.dir.open(path)?;
            file.take(most + 1).read_to_end(&mut content)?;
            Ok((content.len() as u64 <= most).then_some(content))
        };
        SnapshotKind::File(read().unwrap_or_default())
    }

    /// Returns `true` if an entry has not changed since it was recorded.
    fn is_unchanged_since_snapshot(&self, path: &Path, before: &SnapshotEntry) -> bool {
        let Ok(meta) = self.dir.symlink_metadata(path) else {
            return false;
        };
        match &before.kind {
            SnapshotKind::Directory => meta.is_dir(),
            SnapshotKind::Other => file_stamp(&meta) == before.stamp,
            SnapshotKind::Link(_) => self.entry_kind(path, &meta, MAX_TOTAL_BYTES) == before.kind,
            SnapshotKind::File(content) => {
                file_stamp(&meta) == before.stamp
                    || content.is_some()
                        && file_mode(&meta) == before.mode
                        && self.entry_kind(path, &meta, MAX_TOTAL_BYTES) == before.kind
            }
        }
    }

    fn undo(&self, before: &RootSnapshot, kept_in: Option<&Path>, report: &mut UndoReport) {
        let mut undone: Vec<PathBuf> = Vec::new();
        let mut opened = Vec::new();
        let (now, is_cut) = self.walk(Some(&mut opened));
        report.is_incomplete |= is_cut || before.is_incomplete;
        let aside = UndoneFiles::new(self, kept_in);
        for (path, entry) in &before.entries {
            let meta = self.dir.symlink_metadata(path);
            let is_closed = meta.is_ok_and(|meta| meta.is_dir() && file_mode(&meta) != entry.mode);
            if is_closed
                && entry.kind == SnapshotKind::Directory
                && self.set_mode(path, entry.mode).is_ok()
            {
                undone.push(path.clone());
            }
        }
        // First, move new entries out of the way, from the top down. A new directory takes its contents with it.
        for (path, meta) in &now {
            let is_new = !before.entries.contains_key(path)
                // What exceeded the limits of the first scan may have existed before.
                && (!before.is_incomplete || file_stamp(meta).2 >= before.started_at);
            let is_gone = self.dir.symlink_metadata(path).is_err();
            if is_gone || !is_new {
                continue;
            }
            self.move_to_undone(path, &aside, &mut undone, report);
        }
        for (path, entry) in &before.entries {
            if self.is_unchanged_since_snapshot(path, entry) {
                continue;
            }
            let why = match entry.kind {
                SnapshotKind::File(None) => Some("too large to back up"),
                SnapshotKind::Other => Some("not a regular file"),
                _ => None,
            };
            if let Some(why) = why {
                report.failures.push((self.path.join(path), why.to_owned()));
                continue;
            }
            for parent in path.ancestors().skip(1) {
                let meta = self.dir.symlink_metadata(parent);
                if meta.is_ok_and(|meta| !meta.is_dir()) {
                    self.move_to_undone(parent, &aside, &mut undone, report);
                }
            }
            if self.dir.symlink_metadata(path).is_ok() {
                self.move_to_undone(path, &aside, &mut undone, report);
            }
            match self.restore(path, entry) {
                Ok(()) if undone.contains(path) => {}
                Ok(()) => undone.push(path.clone()),
                Err(e) => report.failures.push((self.path.join(path), e.to_string())),
            }
        }
        let opened = opened.into_iter().rev();
        for (path, had) in opened.filter(|(path, _)| !before.entries.contains_key(path)) {
            // The file may have been moved away since.
            let _ = self.set_mode(&path, had);
        }
        report
            .undone_paths
            .extend(undone.iter().map(|path| self.path.join(path)));
        if let Some(kept) = aside.directory_if_used() {
            report.undone_directory = Some(kept);
        }
    }

    fn move_to_undone(
        &self,
        path: &Path,
        aside: &UndoneFiles<'_>,
        undone: &mut Vec<PathBuf>,
        report: &mut UndoReport,
    ) {
        match aside.store(path) {
            Ok(()) if undone.iter().any(|other| other == path) => {}
            Ok(()) => undone.push(path.to_owned()),
            Err(e) => report.failures.push((self.path.join(path), e.to_string())),
        }
    }

    /// Restores a recorded entry at a path where nothing currently exists.
    fn restore(&self, path: &Path, entry: &SnapshotEntry) -> io::Result<()> {
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            self.dir.create_dir_all(parent)?;
        }
        match &entry.kind {
            SnapshotKind::Directory => {
                self.dir.create_dir(path)?;
                self.set_mode(path, entry.mode)
            }
            SnapshotKind::File(Some(content)) => {
                // Never write to a file that was created in the meantime, because it may be a link.
                let mut file = self
                    .dir
                    .open_with(path, OpenOptions::new().write(true).create_new(true))?;
                file.write_all(content)?;
                self.set_mode(path, entry.mode)
            }
            SnapshotKind::Link(to) => create_symlink(&self.dir, to, path),
            SnapshotKind::File(None) | SnapshotKind::Other => Ok(()),
        }
    }

    #[cfg(unix)]
    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        use cap_std::fs::{Permissions, PermissionsExt};
        self.dir
            .set_permissions(path, Permissions::from_mode(mode & 0o7777))
    }

    #[cfg(not(unix))]
    fn set_mode(&self, _path: &Path, _mode: u32) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the path of a directory in the root, or `.` for the root itself. For calls that do not accept an empty path.
fn directory_or_dot(directory: &Path) -> &Path {
    match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    }
}

#[cfg(unix)]
fn file_stamp(meta: &Metadata) -> FileStamp {
    use cap_std::fs::MetadataExt;
    // The writer cannot set the change time back.
    (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec())
}

#[cfg(not(unix))]
fn file_stamp(meta: &Metadata) -> FileStamp {
    (0, meta.len(), 0, 0)
}

#[cfg(unix)]
fn file_mode(meta: &Metadata) -> u32 {
    cap_std::fs::MetadataExt::mode(meta)
}

#[cfg(not(unix))]
fn file_mode(_meta: &Metadata) -> u32 {
    0
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn scan_limit_is_reported_and_the_nearest_files_are_protected() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
        std::fs::write(root.join(".git/config"), "as it was").unwrap();
        for number in 0..50 {
            std::fs::write(root.join(format!("file-{number}")), "").unwrap();
        }
        let guard = UndoGuard::new(std::slice::from_ref(&root), &[], None)
            .unwrap()
            .unwrap();
        let mut guard = Arc::into_inner(guard).unwrap();
        guard.roots[0].max_entries = 20;
        let guard = Arc::new(guard);
        let watch = guard.watch();
        std::fs::write(root.join(".git/config"), "evil").unwrap();
        std::fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
        std::fs::write(root.join(".envrc"), "evil").unwrap();
        let told = watch.finish().unwrap();
        assert!(told.contains("acp reverted 3 changes"), "{told}");
        assert!(told.contains("there are too many"), "{told}");
        let config = std::fs::read_to_string(root.join(".git/config")).unwrap();
        assert_eq!(config, "as it was");
        assert!(!root.join(".git/hooks/pre-commit").exists());
        assert!(!root.join(".envrc").exists());
    }

    #[test]
    fn file_too_large_to_record_is_reported_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let large = std::fs::File::create(root.join(".bashrc")).unwrap();
        large.set_len(MAX_FILE_BYTES + 1).unwrap();
        let guard = UndoGuard::new(std::slice::from_ref(&root), &[], None)
            .unwrap()
            .unwrap();
        let watch = guard.watch();
        large.set_len(MAX_FILE_BYTES + 2).unwrap();
        let told = watch.finish().unwrap();
        assert!(told.contains("acp could not revert a change"), "{told}");
        assert!(told.contains("too large to back up"), "{told}");
        assert!(root.join(".bashrc").exists());
    }
}
