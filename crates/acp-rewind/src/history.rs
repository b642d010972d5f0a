//! The history of a project: takes, lists and prunes snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::RewindError;
use crate::git::{Repository, path_bytes};
use crate::import::{FileContents, METADATA, SnapshotWriter, WrittenSnapshot, is_object_id};
use crate::metadata::{SnapshotMetadata, is_executable};
use crate::options::HistoryOptions;
use crate::scan::{LeftOutPath, LeftOutReason, ProjectScan, ScannedFile};
use crate::stamp::FileStamp;

/// The prefix of the git references that keep snapshots.
const REFERENCES: &str = "refs/snapshots";

/// The maximum number of files that are read before git takes them. Each is at most as large as
/// [`HistoryOptions::max_file_bytes`].
const MAX_READ_AHEAD: usize = 8;

/// A snapshot of a project's files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Snapshot {
    id: String,
}

impl Snapshot {
    /// Returns the id of the snapshot, which is that of a git commit.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the snapshot with this id. Whether it exists is found out when it is used.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        is_object_id(id).then(|| Self { id: id.to_owned() })
    }
}

impl TryFrom<String> for Snapshot {
    type Error = RewindError;

    fn try_from(id: String) -> Result<Self, RewindError> {
        Self::from_id(&id).ok_or(RewindError::SnapshotNotFound(id))
    }
}

impl From<Snapshot> for String {
    fn from(snapshot: Snapshot) -> Self {
        snapshot.id
    }
}

/// The history of a project.
///
/// Several processes can have the history of the same project open. All methods read or write files, and block.
#[derive(Debug)]
pub struct ProjectHistory {
    root: PathBuf,
    /// The directory that stores the snapshots of all projects.
    store: PathBuf,
    pub(crate) dir: Dir,
    pub(crate) repository: Repository,
    options: HistoryOptions,
    /// A file that a process locks while it writes to the repository.
    lock: File,
    last: Option<LastSnapshot>,
}

/// The last snapshot that this process took. The next one contains only what has changed since then.
#[derive(Debug)]
struct LastSnapshot {
    written: WrittenSnapshot,
    metadata: SnapshotMetadata,
    files: BTreeMap<OsString, KnownFile>,
    directories: BTreeMap<OsString, u32>,
    left_out: BTreeSet<LeftOutPath>,
}

/// A file as it was when it was read.
#[derive(Debug, Clone, Copy)]
struct KnownFile {
    file: ScannedFile,
    /// Whether a write could have left the same stamp, so the file must be read again.
    is_uncertain: bool,
}

/// The files that were written and removed since the last snapshot.
#[derive(Debug, Default)]
struct FileDifference {
    written: Vec<OsString>,
    removed: Vec<OsString>,
}

impl FileDifference {
    fn new(known: &BTreeMap<OsString, KnownFile>, scan: &ProjectScan) -> Self {
        let mut difference = Self::default();
        // Both are sorted, so that one pass over both is enough.
        let mut known = known.iter().peekable();
        for (path, file) in &scan.files {
            while let Some((gone, _)) = known.next_if(|(known, _)| *known < path) {
                difference.removed.push(gone.clone());
            }
            let same = known.next_if(|(known, _)| *known == path);
            if same.is_none_or(|(_, known)| known.is_uncertain || known.file != *file) {
                difference.written.push(path.clone());
            }
        }
        difference
            .removed
            .extend(known.map(|(gone, _)| gone.clone()));
        difference
    }

    fn is_empty(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }
}

impl ProjectHistory {
    /// Opens the history of the project in the directory `project`. Its snapshots are stored in a directory of their own
    /// in `store`, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// If `project` is the home directory or contains it, or is not a directory, or if git is not installed.
    pub fn open(
        project: &Path,
        store: &Path,
        options: HistoryOptions,
    ) -> Result<Self, RewindError> {
        let root = fs::canonicalize(project).map_err(RewindError::io("open", project))?;
        check_is_project(&root)?;
        let dir = Dir::open_ambient_dir(&root, ambient_authority())
            .map_err(RewindError::io("open", &root))?;
        create_private_directory(store)?;
        let store = fs::canonicalize(store).map_err(RewindError::io("open", store))?;
        let own = project_directory(&store, &root);
        create_private_directory(&own)?;
        let lock_path = own.join("lock");
        let lock = fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(RewindError::io("open", &lock_path))?;
        lock.lock().map_err(RewindError::io("lock", &lock_path))?;
        // For people who look into the directory.
        let name_path = own.join("project");
        fs::write(&name_path, path_bytes(&root)).map_err(RewindError::io("write", &name_path))?;
        let repository = Repository::open(own.join("repository.git"));
        lock.unlock()
            .map_err(RewindError::io("unlock", &lock_path))?;
        Ok(Self {
            root,
            store,
            dir,
            repository: repository?,
            options,
            lock,
            last: None,
        })
    }

    /// Takes a snapshot of the project's current files.
    ///
    /// The first snapshot reads all files, later ones only those that have changed. If nothing has changed, the result
    /// is the same snapshot.
    ///
    /// # Errors
    ///
    /// If the project is too large, or the snapshot cannot be stored.
    pub fn take_snapshot(&mut self) -> Result<Snapshot, RewindError> {
        self.take_snapshot_with(&BTreeSet::new())
    }

    /// Takes a snapshot that also contains the files in `also`, even if they are ignored.
    pub(crate) fn take_snapshot_with(
        &mut self,
        also: &BTreeSet<PathBuf>,
    ) -> Result<Snapshot, RewindError> {
        let _lock = self.lock()?;
        match self.write_snapshot(also) {
            // The last snapshot may have been removed by another process.
            Err(RewindError::Git { .. }) if self.last.is_some() => {
                self.last = None;
                self.write_snapshot(also)
            }
            Err(e) => {
                // Git leaves the pack that it was writing. This error says more than one of removing it.
                let _ = self.remove_unused_objects();
                Err(e)
            }
            taken => taken,
        }
    }

    /// Removes objects that no snapshot contains, and what a git command that was killed has left.
    fn remove_unused_objects(&self) -> Result<(), RewindError> {
        let pruned = self.repository.output("prune", ["--expire=now"]);
        pruned.map(drop)
    }

    fn write_snapshot(&mut self, also: &BTreeSet<PathBuf>) -> Result<Snapshot, RewindError> {
        let mut scan = self.scan(also)?;
        let no_files = BTreeMap::new();
        let known_files = self.last.as_ref().map_or(&no_files, |last| &last.files);
        let difference = FileDifference::new(known_files, &scan);
        if let Some(last) = &self.last
            && difference.is_empty()
            && scan.directories == last.directories
            && scan.left_out == last.left_out
            && self.exists(&last.written.commit)
        {
            return Ok(Snapshot {
                id: last.written.commit.clone(),
            });
        }
        let now = SystemTime::now();
        let since_1970 = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        // Sorted by time, and by process if two take a snapshot at the same time.
        let reference = format!(
            "{REFERENCES}/{:020}-{}",
            since_1970.as_nanos(),
            std::process::id()
        );
        let base = self.last.as_ref().map(|last| last.written.tree.as_str());
        let mut writer =
            SnapshotWriter::start(&self.repository, &reference, base, since_1970.as_secs())?;
        writer.remove(difference.removed.iter().map(Path::new))?;
        let mut read_files = Vec::with_capacity(difference.written.len());
        let mut read_bytes = 0;
        let (dir, max_file_bytes) = (&self.dir, self.options.max_file_bytes);
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(MAX_READ_AHEAD);
            // Reads files while git hashes others.
            scope.spawn(move || {
                for path in difference.written {
                    let read = read_known_file(dir, Path::new(&path), max_file_bytes, now);
                    if sender.send((path, read)).is_err() {
                        break;
                    }
                }
            });
            for (path, read) in receiver {
                let left_out = match read {
                    Ok(Some((contents, read))) => {
                        writer.add(Path::new(&path), &contents)?;
                        read_bytes += contents.len();
                        if read_bytes > self.options.max_snapshot_bytes {
                            let limit = self.options.max_snapshot_bytes >> 20;
                            return Err(RewindError::TooLarge(format!("{limit} MiB")));
                        }
                        scan.files.insert(path.clone(), read.file);
                        read_files.push((path, read));
                        continue;
                    }
                    // It was removed since the scan, or is not a file any more.
                    Ok(None) => None,
                    Err(reason) => Some(reason),
                };
                scan.files.remove(&path);
                if known_files.contains_key(&path) {
                    writer.remove([Path::new(&path)].into_iter())?;
                }
                if let Some(reason) = left_out {
                    let path = path.into();
                    scan.left_out.insert(LeftOutPath { path, reason });
                }
            }
            Ok(())
        })?;
        let metadata = SnapshotMetadata::new(&scan);
        let mut written = writer.finish(&metadata.to_bytes())?;
        // A file that was written again with the same contents.
        if let Some(last) = self.last.as_ref().map(|last| &last.written)
            && last.tree == written.tree
            && self.exists(&last.commit)
        {
            self.repository.output("update-ref", ["-d", &reference])?;
            written = last.clone();
        }
        let snapshot = Snapshot {
            id: written.commit.clone(),
        };
        let mut files = self
            .last
            .take()
            .map_or_else(BTreeMap::new, |last| last.files);
        files.retain(|path, _| scan.files.contains_key(path));
        files.extend(read_files);
        self.last = Some(LastSnapshot {
            written,
            metadata,
            files,
            directories: scan.directories,
            left_out: scan.left_out,
        });
        Ok(snapshot)
    }

    /// Lists the project's files, and those in `also`, even if they are ignored.
    pub(crate) fn scan(&self, also: &BTreeSet<PathBuf>) -> Result<ProjectScan, RewindError> {
        ProjectScan::new(&self.root, &self.dir, &self.store, also, &self.options)
    }

    /// Returns the id of the last snapshot's tree, which is the same for snapshots with the same files.
    pub(crate) fn last_tree(&self) -> Option<&str> {
        self.last.as_ref().map(|last| last.written.tree.as_str())
    }

    /// Returns the stamp that a file had in the last snapshot.
    pub(crate) fn known_file(&self, path: &Path) -> Option<ScannedFile> {
        let known = self.last.as_ref()?.files.get(path.as_os_str())?;
        Some(known.file)
    }

    fn exists(&self, commit: &str) -> bool {
        self.repository.output("cat-file", ["-e", commit]).is_ok()
    }

    /// Returns an error if the snapshot was removed.
    pub(crate) fn check_exists(&self, snapshot: &Snapshot) -> Result<(), RewindError> {
        match self.repository.output("cat-file", ["-e", &snapshot.id]) {
            Ok(_) => Ok(()),
            Err(RewindError::Git { .. }) => Err(RewindError::SnapshotNotFound(snapshot.id.clone())),
            Err(e) => Err(e),
        }
    }

    /// Returns the metadata of a snapshot.
    pub(crate) fn metadata(&self, snapshot: &Snapshot) -> Result<SnapshotMetadata, RewindError> {
        if let Some(last) = &self.last
            && last.written.commit == snapshot.id
        {
            return Ok(last.metadata.clone());
        }
        let name = format!("{}:{METADATA}", snapshot.id);
        let bytes = self.repository.blob(&name)?;
        let metadata = bytes.and_then(|bytes| SnapshotMetadata::from_bytes(&bytes));
        metadata.ok_or_else(|| RewindError::SnapshotNotFound(snapshot.id.clone()))
    }

    /// Returns the paths that a snapshot does not contain, and why. Ignored files are not among them.
    ///
    /// # Errors
    ///
    /// If the snapshot was removed.
    pub fn left_out(&self, snapshot: &Snapshot) -> Result<Vec<LeftOutPath>, RewindError> {
        Ok(self.metadata(snapshot)?.left_out.into_iter().collect())
    }

    /// Removes snapshots that are too old or too many, and half of them if they take up too much space.
    ///
    /// Returns the number of snapshots removed. The last snapshot of this process is kept.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn prune(&mut self) -> Result<usize, RewindError> {
        let _lock = self.lock()?;
        let listed = self.list_references("%(objectname) %(refname)")?;
        let references: Vec<(&str, &str)> = listed
            .lines()
            .filter_map(|line| line.split_once(' '))
            .collect();
        let oldest = SystemTime::now().checked_sub(self.options.max_age);
        let oldest = oldest.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let oldest = oldest.map_or(0, |time| time.as_nanos());
        let is_old = |reference: &str| {
            let name = reference.rsplit('/').next().unwrap_or_default();
            let taken = name
                .split('-')
                .next()
                .and_then(|time| time.parse::<u128>().ok());
            taken.is_none_or(|taken| taken < oldest)
        };
        let mut surplus = references.len().saturating_sub(self.options.max_snapshots);
        if self.stored_bytes() > self.options.max_stored_bytes {
            surplus = surplus.max(references.len().div_ceil(2));
        }
        let is_last = |commit: &str| {
            self.last
                .as_ref()
                .is_some_and(|last| last.written.commit == commit)
        };
        let mut removed = 0;
        for (n, (commit, reference)) in references.iter().enumerate() {
            if (n < surplus || is_old(reference)) && !is_last(commit) {
                self.repository.output("update-ref", ["-d", reference])?;
                removed += 1;
            }
        }
        if removed > 0 {
            // Packs everything again, this time compressed.
            self.repository
                .output("repack", ["-a", "-d", "-F", "-q", "--window=0"])?;
        }
        self.remove_unused_objects()?;
        self.prune_turns()?;
        Ok(removed)
    }

    /// Lists the references that keep snapshots, oldest first, in a format of `git for-each-ref`.
    pub(crate) fn list_references(&self, format: &str) -> Result<String, RewindError> {
        let format = format!("--format={format}");
        let arguments = ["--sort=refname", &format, REFERENCES];
        let listed = self.repository.output("for-each-ref", arguments)?;
        Ok(String::from_utf8_lossy(&listed).into_owned())
    }

    /// Returns the path of a file beside the snapshots.
    pub(crate) fn path_beside_snapshots(&self, name: &str) -> PathBuf {
        self.repository.path().with_file_name(name)
    }

    /// Returns the size of the repository's objects, in bytes.
    fn stored_bytes(&self) -> u64 {
        let mut total = 0;
        let mut directories = vec![self.repository.path().join("objects")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                match entry.metadata() {
                    Ok(metadata) if metadata.is_dir() => directories.push(entry.path()),
                    Ok(metadata) => total += metadata.len(),
                    Err(_) => {}
                }
            }
        }
        total
    }

    /// Waits until no other process writes to the repository.
    pub(crate) fn lock(&self) -> Result<HistoryLock, RewindError> {
        let failed = || RewindError::io("lock", self.repository.path());
        // A duplicate shares the lock, and can be held while the history is changed.
        let file = self.lock.try_clone().map_err(failed())?;
        file.lock().map_err(failed())?;
        Ok(HistoryLock(file))
    }
}

/// The lock of a history. Unlocked when dropped.
pub(crate) struct HistoryLock(File);

impl Drop for HistoryLock {
    fn drop(&mut self) {
        // Closing the file would not unlock it, because the history still has it open.
        let _ = self.0.unlock();
    }
}

impl FileContents {
    fn len(&self) -> u64 {
        let (Self::Regular { bytes, .. } | Self::Symlink(bytes)) = self;
        u64::try_from(bytes.len()).unwrap_or(u64::MAX)
    }
}

/// Reads a file for a snapshot that began at `now`. Returns `None` if it is gone.
fn read_known_file(
    dir: &Dir,
    path: &Path,
    limit: u64,
    now: SystemTime,
) -> Result<Option<(FileContents, KnownFile)>, LeftOutReason> {
    let (contents, before, after) = match read_file(dir, path, limit) {
        Ok(read) => read?,
        Err(e) if is_gone(&e) => return Ok(None),
        Err(_) => return Err(LeftOutReason::Unreadable),
    };
    let stamp = FileStamp::of(&after);
    let known = KnownFile {
        file: ScannedFile {
            is_symlink: matches!(contents, FileContents::Symlink(_)),
            stamp,
        },
        is_uncertain: stamp != FileStamp::of(&before) || stamp.is_recent(now),
    };
    Ok(Some((contents, known)))
}

/// A file's contents, with its metadata before and after reading them.
type ReadFile = (FileContents, Metadata, Metadata);

/// Reads a file or symbolic link of at most `limit` bytes.
fn read_file(dir: &Dir, path: &Path, limit: u64) -> io::Result<Result<ReadFile, LeftOutReason>> {
    let before = dir.symlink_metadata(path)?;
    if before.is_symlink() {
        let target = dir.read_link_contents(path)?;
        let after = dir.symlink_metadata(path)?;
        let contents = FileContents::Symlink(path_bytes(&target));
        return Ok(Ok((contents, before, after)));
    }
    if before.is_dir() {
        return Err(io::ErrorKind::NotFound.into());
    }
    if !before.is_file() {
        return Ok(Err(LeftOutReason::Special));
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        // The file may have become a link or a pipe.
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let mut file = dir.open_with(path, &options)?;
    let mut bytes = Vec::with_capacity(usize::try_from(before.len().min(limit)).unwrap_or(0) + 1);
    (&mut file).take(limit + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).map_or(true, |len| len > limit) {
        return Ok(Err(LeftOutReason::TooLarge));
    }
    let after = file.metadata()?;
    let executable = is_executable(FileStamp::of(&after).mode);
    let contents = FileContents::Regular { executable, bytes };
    Ok(Ok((contents, before, after)))
}

/// Returns whether an error says that there is no such file.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Returns the directory in `store` that belongs to the project in the directory `root`.
pub(crate) fn project_directory(store: &Path, root: &Path) -> PathBuf {
    let name: String = Sha256::digest(path_bytes(root))
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    store.join(name)
}

/// Rejects directories in which most files are no project's.
fn check_is_project(root: &Path) -> Result<(), RewindError> {
    let refuse = |what| {
        Err(RewindError::NotAProject {
            path: root.to_owned(),
            what,
        })
    };
    if root.parent().is_none() {
        return refuse("the root directory");
    }
    let home = std::env::home_dir().and_then(|home| fs::canonicalize(home).ok());
    match home {
        Some(home) if home == root => refuse("the home directory"),
        Some(home) if home.starts_with(root) => {
            refuse("a directory that contains the home directory")
        }
        _ => Ok(()),
    }
}

fn create_private_directory(path: &Path) -> Result<(), RewindError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder
        .create(path)
        .map_err(RewindError::io("create", path))
}
