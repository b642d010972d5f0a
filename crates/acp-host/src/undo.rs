//! Undoing what a command in a sandbox changes of the files that other programs obey.
//!
//! Landlock opens directories with all that is below them: there is no way to open a project and not its `.git/hooks`.
//! So what is there is recorded before a command starts, and put back when it has ended. What was there instead is
//! kept, and the person and the agent are told.
//!
//! Everything goes through a handle of the root. What runs there can put symlinks anywhere, and must not have us write
//! outside by them.

mod aside;
mod place;
mod report;

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use self::aside::{Aside, link};
use self::place::{Look, Place, is_bare};
use self::report::Report;
use crate::obeyed::OBEYED;

/// How many entries are looked at, and for how long. What comes after that is not protected, and that is said.
const ENTRIES: usize = 300_000;
const PATIENCE: Duration = Duration::from_secs(10);

/// How much is recorded of a file, and of all of them, in bytes. A change of what is larger is told and stays.
const FILE: u64 = 8 * 1024 * 1024;
const ALL: u64 = 64 * 1024 * 1024;

/// Watches the files that other programs obey in some directories.
#[derive(Debug)]
pub(crate) struct Guard {
    roots: Vec<Root>,
    /// Where that is kept which was undone; beside where it was if there is no such place.
    kept_in: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    dir: Dir,
    /// What may be changed in it all the same.
    open: Vec<PathBuf>,
    /// How many entries are looked at.
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    /// How many watch.
    watches: usize,
    /// What there was when the first of them began, for each root.
    before: Vec<Record>,
    /// What there was when the last of them had ended.
    after: Vec<BTreeMap<PathBuf, Stamp>>,
    /// What was changed between the two, when nobody watched, and is still to be told.
    between: Vec<PathBuf>,
}

/// What there is of such files in a root.
#[derive(Debug, Default)]
struct Record {
    entries: BTreeMap<PathBuf, Entry>,
    /// Not everything was looked at.
    is_cut: bool,
    /// When that began, in seconds since 1970.
    begun: i64,
}

/// One of them as it was.
#[derive(Debug)]
struct Entry {
    kind: Kind,
    mode: u32,
    stamp: Stamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Directory,
    /// With what is in it, unless that is too much.
    File(Option<Vec<u8>>),
    Link(PathBuf),
    /// A socket or the like, which no program obeys.
    Other,
}

/// What no write leaves as it is.
type Stamp = (u64, u64, i64, i64);

/// Looks at what is changed for as long as it is there.
#[derive(Debug)]
pub(crate) struct Watch {
    guard: Arc<Guard>,
    /// Whoever was watched has ended, and what it did was undone.
    is_over: AtomicBool,
}

impl Guard {
    /// Watches these directories, except for what is in `open`; `None` if that is nothing.
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
            watched.push(Root {
                dir: Dir::open_ambient_dir(path, ambient_authority())?,
                open: below.map(Path::to_owned).collect(),
                path: path.clone(),
                most: ENTRIES,
            });
        }
        Ok((!watched.is_empty()).then(|| {
            Arc::new(Self {
                roots: watched,
                kept_in,
                state: Mutex::default(),
            })
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what there is, unless someone watches already: what was changed since may be that one's. Reads files.
    pub(crate) fn watch(self: &Arc<Self>) -> Watch {
        let mut state = self.state();
        if state.watches == 0 {
            state.before = self.roots.iter().map(Root::record).collect();
            // It may be the person's, or of a process that a command has left where nobody finds it.
            let after = std::mem::take(&mut state.after);
            let both = self.roots.iter().zip(after).zip(&state.before);
            let changed: Vec<PathBuf> = both
                .flat_map(|((root, after), before)| before.changed_since(&after, root))
                .collect();
            state.between = changed;
        }
        state.watches += 1;
        drop(state);
        Watch {
            guard: Arc::clone(self),
            is_over: false.into(),
        }
    }

    /// A change to this file was allowed, and is not to be undone. Reads files.
    pub(crate) fn accept(&self, path: &Path) {
        let mut state = self.state();
        for (root, before) in self.roots.iter().zip(&mut state.before) {
            let Ok(path) = path.strip_prefix(&root.path) else {
                continue;
            };
            let now = root.record();
            let of_it = |other: &Path| path.starts_with(other) || other.starts_with(path);
            before.entries.retain(|other, _| !other.starts_with(path));
            let accepted = now.entries.into_iter().filter(|(other, _)| of_it(other));
            for (path, entry) in accepted {
                before.entries.entry(path).or_insert(entry);
            }
        }
    }
}

impl Watch {
    /// Undoes what was changed since it was recorded. What there is to say of that, if anything. Reads and writes
    /// files.
    pub(crate) fn undo(&self) -> Option<String> {
        let guard = &self.guard;
        // Held meanwhile: one undoes at a time.
        let mut state = guard.state();
        let mut report = Report {
            between: std::mem::take(&mut state.between),
            ..Report::default()
        };
        for (root, before) in guard.roots.iter().zip(&state.before) {
            root.undo(before, guard.kept_in.as_deref(), &mut report);
        }
        report.in_words()
    }

    /// The same for the last time.
    pub(crate) fn end(&self) -> Option<String> {
        self.is_over.store(true, Ordering::Relaxed);
        let undone = self.undo();
        let mut state = self.guard.state();
        if state.watches == 1 {
            state.after = self.guard.roots.iter().map(Root::stamps).collect();
        }
        undone
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Nobody waits any more for the end of what was watched, as when the program ends: better now than never.
        if !self.is_over.load(Ordering::Relaxed)
            && let Some(undone) = self.undo()
        {
            tracing::warn!("{}", undone.trim());
        }
        let mut state = self.guard.state();
        state.watches = state.watches.saturating_sub(1);
        if state.watches == 0 {
            state.before = Vec::new();
        }
    }
}

impl Record {
    /// What is not as it was when these were their stamps.
    fn changed_since(&self, then: &BTreeMap<PathBuf, Stamp>, root: &Root) -> Vec<PathBuf> {
        let files = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.kind != Kind::Directory);
        let now: BTreeMap<&PathBuf, Stamp> =
            files.map(|(path, entry)| (path, entry.stamp)).collect();
        let changed = now
            .iter()
            .filter(|(path, stamp)| then.get(**path) != Some(stamp));
        let gone = then.keys().filter(|path| !now.contains_key(path));
        let paths = changed.map(|(path, _)| *path).chain(gone);
        paths.map(|path| root.path.join(path)).collect()
    }
}

impl Root {
    /// The files there are, by when they were last changed.
    fn stamps(&self) -> BTreeMap<PathBuf, Stamp> {
        let (found, _) = self.walk(None);
        let files = found.into_iter().filter(|(_, meta)| !meta.is_dir());
        files.map(|(path, meta)| (path, stamp(&meta))).collect()
    }

    /// The protected files there are, and whether not all were looked at. Directories that may not be read are passed
    /// over, unless there is a list to put them on: then they are opened, with the rights that they had.
    fn walk(
        &self,
        mut opened: Option<&mut Vec<(PathBuf, u32)>>,
    ) -> (BTreeMap<PathBuf, Metadata>, bool) {
        let begin = Instant::now();
        let mut found = BTreeMap::new();
        let mut entries = 0;
        // What is known to be obeyed first, and then from above, so that what is nearest to the root is seen whatever
        // else there is.
        let mut todo = VecDeque::from([
            (PathBuf::from(".git"), Place::Git),
            (PathBuf::new(), Place::Ordinary),
        ]);
        while let Some((directory, place)) = todo.pop_front() {
            let listed = self.list(&directory).or_else(|e| match &mut opened {
                // A command may have closed it so that nobody sees what it has put there.
                Some(opened) if e.kind() == io::ErrorKind::PermissionDenied => {
                    let place = here(&directory);
                    let had = mode(&self.dir.symlink_metadata(place)?);
                    self.set_mode(place, had | 0o700)?;
                    opened.push((place.to_owned(), had));
                    self.list(&directory)
                }
                _ => Err(e),
            });
            let Ok(listed) = listed else {
                continue;
            };
            let room = self.most.saturating_sub(entries);
            let names: Vec<_> = listed
                .flatten()
                .take(room)
                .map(|entry| entry.file_name())
                .collect();
            entries += names.len();
            if entries >= self.most || begin.elapsed() > PATIENCE {
                // Those in the root itself can be named.
                for name in OBEYED
                    .iter()
                    .filter(|name| !name.contains('*') && **name != ".git")
                {
                    let is_open = self
                        .open
                        .iter()
                        .any(|open| Path::new(name).starts_with(open));
                    let there = self.dir.symlink_metadata(name);
                    if let Some(meta) = there.ok().filter(|_| !is_open) {
                        found.entry(PathBuf::from(name)).or_insert(meta);
                    }
                }
                return (found, true);
            }
            let bare = place == Place::Ordinary && is_bare(&names);
            for name in names {
                let path = directory.join(&name);
                if self.open.iter().any(|open| path.starts_with(open)) {
                    continue;
                }
                let look = place.look(directory.file_name(), &name, bare);
                if matches!(look, Look::Pass) {
                    continue;
                }
                let Ok(meta) = self.dir.symlink_metadata(&path) else {
                    continue;
                };
                match look {
                    Look::Descend(Place::Ordinary) if meta.is_dir() => {
                        todo.push_back((path, Place::Ordinary));
                    }
                    Look::Descend(inside) if meta.is_dir() => todo.push_front((path, inside)),
                    // A file that says where the repository is, or a link to it.
                    Look::Descend(Place::Git) => {
                        found.insert(path, meta);
                    }
                    Look::Record => {
                        if meta.is_dir() {
                            todo.push_front((path.clone(), Place::Obeyed));
                        }
                        found.insert(path, meta);
                    }
                    Look::Descend(_) | Look::Pass => {}
                }
            }
        }
        (found, false)
    }

    fn list(&self, directory: &Path) -> io::Result<cap_std::fs::ReadDir> {
        match directory.as_os_str().is_empty() {
            true => self.dir.entries(),
            false => self.dir.read_dir(directory),
        }
    }

    fn record(&self) -> Record {
        let begun = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default();
        let (found, is_cut) = self.walk(None);
        let mut left = ALL;
        let mut entries = BTreeMap::new();
        for (path, meta) in found {
            let kind = self.kind(&path, &meta, left);
            if let Kind::File(Some(content)) = &kind {
                left = left.saturating_sub(content.len() as u64);
            }
            let entry = Entry {
                kind,
                mode: mode(&meta),
                stamp: stamp(&meta),
            };
            entries.insert(path, entry);
        }
        Record {
            entries,
            is_cut,
            begun: begun.as_secs().try_into().unwrap_or_default(),
        }
    }

    /// What is there, with the content of a file that has no more bytes than are `left`.
    fn kind(&self, path: &Path, meta: &Metadata, left: u64) -> Kind {
        if meta.is_dir() {
            return Kind::Directory;
        }
        if meta.is_symlink() {
            return self
                .dir
                .read_link_contents(path)
                .map_or(Kind::Other, Kind::Link);
        }
        if !meta.is_file() {
            return Kind::Other;
        }
        let read = || -> io::Result<Option<Vec<u8>>> {
            let most = FILE.min(left);
            if meta.len() > most {
                return Ok(None);
            }
            let mut content = Vec::new();
            let file = self.dir.open(path)?;
            file.take(most + 1).read_to_end(&mut content)?;
            Ok((content.len() as u64 <= most).then_some(content))
        };
        Kind::File(read().unwrap_or_default())
    }

    /// Whether something is as it was.
    fn is_same(&self, path: &Path, before: &Entry) -> bool {
        let Ok(meta) = self.dir.symlink_metadata(path) else {
            return false;
        };
        match &before.kind {
            Kind::Directory => meta.is_dir(),
            Kind::Other => stamp(&meta) == before.stamp,
            Kind::Link(_) => self.kind(path, &meta, ALL) == before.kind,
            Kind::File(content) => {
                stamp(&meta) == before.stamp
                    || content.is_some()
                        && mode(&meta) == before.mode
                        && self.kind(path, &meta, ALL) == before.kind
            }
        }
    }

    fn undo(&self, before: &Record, kept_in: Option<&Path>, report: &mut Report) {
        let mut undone: Vec<PathBuf> = Vec::new();
        let mut opened = Vec::new();
        let (now, is_cut) = self.walk(Some(&mut opened));
        report.is_cut |= is_cut || before.is_cut;
        let aside = Aside::new(self, kept_in);
        for (path, entry) in &before.entries {
            let meta = self.dir.symlink_metadata(path);
            let is_closed = meta.is_ok_and(|meta| meta.is_dir() && mode(&meta) != entry.mode);
            if is_closed && entry.kind == Kind::Directory && self.set_mode(path, entry.mode).is_ok()
            {
                undone.push(path.clone());
            }
        }
        // First all that is in the way goes, from above: with a directory that is new goes what is in it.
        for (path, meta) in &now {
            let is_new = !before.entries.contains_key(path)
                // What was beyond the bound of the first look may have been there before.
                && (!before.is_cut || stamp(meta).2 >= before.begun);
            let is_gone = self.dir.symlink_metadata(path).is_err();
            if is_gone || !is_new {
                continue;
            }
            self.put_aside(path, &aside, &mut undone, report);
        }
        for (path, entry) in &before.entries {
            if self.is_same(path, entry) {
                continue;
            }
            let why = match entry.kind {
                Kind::File(None) => Some("it is too large to have been recorded"),
                Kind::Other => Some("it was no file"),
                _ => None,
            };
            if let Some(why) = why {
                report.lost.push((self.path.join(path), why.to_owned()));
                continue;
            }
            for parent in path.ancestors().skip(1) {
                let meta = self.dir.symlink_metadata(parent);
                if meta.is_ok_and(|meta| !meta.is_dir()) {
                    self.put_aside(parent, &aside, &mut undone, report);
                }
            }
            if self.dir.symlink_metadata(path).is_ok() {
                self.put_aside(path, &aside, &mut undone, report);
            }
            match self.restore(path, entry) {
                Ok(()) if undone.contains(path) => {}
                Ok(()) => undone.push(path.clone()),
                Err(e) => report.lost.push((self.path.join(path), e.to_string())),
            }
        }
        let opened = opened.into_iter().rev();
        for (path, had) in opened.filter(|(path, _)| !before.entries.contains_key(path)) {
            // It may have been put aside since.
            let _ = self.set_mode(&path, had);
        }
        report
            .undone
            .extend(undone.iter().map(|path| self.path.join(path)));
        if let Some(kept) = aside.used() {
            report.kept = Some(kept);
        }
    }

    fn put_aside(
        &self,
        path: &Path,
        aside: &Aside<'_>,
        undone: &mut Vec<PathBuf>,
        report: &mut Report,
    ) {
        match aside.put(path) {
            Ok(()) if undone.iter().any(|other| other == path) => {}
            Ok(()) => undone.push(path.to_owned()),
            Err(e) => report.lost.push((self.path.join(path), e.to_string())),
        }
    }

    /// Puts back what was there, where nothing is now.
    fn restore(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            self.dir.create_dir_all(parent)?;
        }
        match &entry.kind {
            Kind::Directory => {
                self.dir.create_dir(path)?;
                self.set_mode(path, entry.mode)
            }
            Kind::File(Some(content)) => {
                // Not into one that someone has made meanwhile: it may be a link.
                let mut file = self
                    .dir
                    .open_with(path, OpenOptions::new().write(true).create_new(true))?;
                file.write_all(content)?;
                self.set_mode(path, entry.mode)
            }
            Kind::Link(to) => link(&self.dir, to, path),
            Kind::File(None) | Kind::Other => Ok(()),
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

/// A directory of the root, or the root itself, as it is called by those who do not take an empty path.
fn here(directory: &Path) -> &Path {
    match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    }
}

#[cfg(unix)]
fn stamp(meta: &Metadata) -> Stamp {
    use cap_std::fs::MetadataExt;
    // Who writes cannot set back when the file was changed.
    (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec())
}

#[cfg(not(unix))]
fn stamp(meta: &Metadata) -> Stamp {
    (0, meta.len(), 0, 0)
}

#[cfg(unix)]
fn mode(meta: &Metadata) -> u32 {
    cap_std::fs::MetadataExt::mode(meta)
}

#[cfg(not(unix))]
fn mode(_meta: &Metadata) -> u32 {
    0
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_bound_is_said_and_what_is_nearest_is_protected_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
        std::fs::write(root.join(".git/config"), "as it was").unwrap();
        for number in 0..50 {
            std::fs::write(root.join(format!("file-{number}")), "").unwrap();
        }
        let guard = Guard::new(std::slice::from_ref(&root), &[], None)
            .unwrap()
            .unwrap();
        let mut guard = Arc::into_inner(guard).unwrap();
        guard.roots[0].most = 20;
        let guard = Arc::new(guard);
        let watch = guard.watch();
        std::fs::write(root.join(".git/config"), "evil").unwrap();
        std::fs::write(root.join(".git/hooks/pre-commit"), "evil").unwrap();
        std::fs::write(root.join(".envrc"), "evil").unwrap();
        let told = watch.end().unwrap();
        assert!(told.contains("acp undid 3 changes"), "{told}");
        assert!(told.contains("there are too many"), "{told}");
        let config = std::fs::read_to_string(root.join(".git/config")).unwrap();
        assert_eq!(config, "as it was");
        assert!(!root.join(".git/hooks/pre-commit").exists());
        assert!(!root.join(".envrc").exists());
    }

    #[test]
    fn what_is_too_large_to_be_recorded_is_told_and_not_lost() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let large = std::fs::File::create(root.join(".bashrc")).unwrap();
        large.set_len(FILE + 1).unwrap();
        let guard = Guard::new(std::slice::from_ref(&root), &[], None)
            .unwrap()
            .unwrap();
        let watch = guard.watch();
        large.set_len(FILE + 2).unwrap();
        let told = watch.end().unwrap();
        assert!(told.contains("acp could not undo a change"), "{told}");
        assert!(told.contains("too large to have been recorded"), "{told}");
        assert!(root.join(".bashrc").exists());
    }
}
