//! Undoing what a command in a sandbox changes of the files that other programs obey.
//!
//! Landlock opens directories with all that is below them: there is no way to open a project and not its `.git/hooks`.
//! So what is there is recorded before a command starts, and put back when it has ended. What was there instead is
//! kept, and the person and the agent are told.
//!
//! Everything goes through a handle of the root. What runs there can put symlinks anywhere, and must not have us write
//! outside by them.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};

use crate::clean;
use crate::obeyed::is_obeyed;

/// How many entries are looked at, and for how long. What comes after that is not protected, and that is said.
const ENTRIES: usize = 300_000;
const PATIENCE: Duration = Duration::from_secs(10);

/// How much is recorded of a file, and of all of them, in bytes. A change of what is larger is told and stays.
const FILE: u64 = 8 * 1024 * 1024;
const ALL: u64 = 64 * 1024 * 1024;

/// How much is copied where what is to be kept cannot be moved, because it is on another disk.
const COPIED: u64 = 256 * 1024 * 1024;

/// How many names a report has.
const NAMES: usize = 10;

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
}

#[derive(Debug, Default)]
struct State {
    /// How many watch.
    watches: usize,
    /// What there was when the first of them began, for each root.
    before: Vec<Record>,
}

/// What there is of such files in a root.
#[derive(Debug, Default)]
struct Record {
    entries: BTreeMap<PathBuf, Entry>,
    /// Not everything was looked at.
    is_cut: bool,
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

/// What was undone.
#[derive(Debug, Default)]
struct Report {
    undone: Vec<PathBuf>,
    /// What was changed and could not be put back, and why.
    lost: Vec<(PathBuf, String)>,
    kept: Option<PathBuf>,
    is_cut: bool,
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
        let state = guard.state();
        let mut report = Report::default();
        for (root, before) in guard.roots.iter().zip(&state.before) {
            root.undo(before, guard.kept_in.as_deref(), &mut report);
        }
        report.in_words()
    }

    /// The same for the last time.
    pub(crate) fn end(&self) -> Option<String> {
        self.is_over.store(true, Ordering::Relaxed);
        self.undo()
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

/// What a directory is to whoever looks through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Some of what is in it may be obeyed.
    Ordinary,
    /// All of it is.
    Obeyed,
    /// It is a repository's own, or one of a submodule or a working tree.
    Git,
    /// What is in such a one with more of them in it.
    GitModules,
    GitWorktrees,
    GitInfo,
}

/// What to do with an entry of a directory.
enum Look {
    /// It is one of those that are protected.
    Record,
    /// It is none, but in it there may be some.
    Descend(Place),
    Pass,
}

impl Place {
    /// What is to be done with `name` in such a directory. `parent` is the directory's own name, and `bare` says that
    /// git takes it for a repository.
    fn look(self, parent: Option<&OsStr>, name: &OsStr, bare: bool) -> Look {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let data = || ["objects", "refs", "logs", "lfs"].into_iter().any(is);
        match self {
            Self::Ordinary | Self::Obeyed if is(".git") => Look::Descend(Self::Git),
            Self::Obeyed => Look::Record,
            Self::Ordinary if bare && is_of_git(name) => Look::Record,
            Self::Ordinary if bare && data() => Look::Pass,
            Self::Ordinary if bare && is("modules") => Look::Descend(Self::GitModules),
            Self::Ordinary if bare && is("worktrees") => Look::Descend(Self::GitWorktrees),
            Self::Ordinary if bare && is("info") => Look::Descend(Self::GitInfo),
            // Packages bring such files for those who work on them.
            Self::Ordinary if is("node_modules") => Look::Pass,
            Self::Ordinary => {
                let path = parent.map_or_else(PathBuf::new, PathBuf::from).join(name);
                match is_obeyed(&path) {
                    true => Look::Record,
                    false => Look::Descend(Self::Ordinary),
                }
            }
            Self::GitInfo if is("attributes") => Look::Record,
            Self::Git | Self::GitModules if is_of_git(name) => Look::Record,
            Self::Git | Self::GitModules if is("info") => Look::Descend(Self::GitInfo),
            Self::Git | Self::GitModules if is("modules") => Look::Descend(Self::GitModules),
            Self::Git if is("worktrees") => Look::Descend(Self::GitWorktrees),
            Self::GitModules if !data() => Look::Descend(Self::GitModules),
            Self::GitWorktrees => Look::Descend(Self::Git),
            Self::Git | Self::GitModules | Self::GitInfo => Look::Pass,
        }
    }
}

/// What git obeys in a repository's own directory: programs are named there, or where else such files are.
fn is_of_git(name: &OsStr) -> bool {
    ["hooks", "config", "config.worktree", "commondir", "gitdir"]
        .iter()
        .any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether git takes a directory with these names in it for a repository.
fn is_bare(names: &[std::ffi::OsString]) -> bool {
    let has = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

impl Root {
    /// The protected files there are, and whether not all were looked at.
    fn walk(&self) -> (BTreeMap<PathBuf, Metadata>, bool) {
        let begin = Instant::now();
        let mut found = BTreeMap::new();
        let mut entries = 0;
        // From above, so that what is nearest to the root is seen first.
        let mut todo = VecDeque::from([(PathBuf::new(), Place::Ordinary)]);
        while let Some((directory, place)) = todo.pop_front() {
            let listed = match directory.as_os_str().is_empty() {
                true => self.dir.entries(),
                false => self.dir.read_dir(&directory),
            };
            let Ok(listed) = listed else {
                continue;
            };
            let room = ENTRIES.saturating_sub(entries);
            let names: Vec<_> = listed
                .flatten()
                .take(room)
                .map(|entry| entry.file_name())
                .collect();
            entries += names.len();
            if entries >= ENTRIES || begin.elapsed() > PATIENCE {
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
                    Look::Descend(inside) if meta.is_dir() => todo.push_back((path, inside)),
                    // A file that says where the repository is, or a link to it.
                    Look::Descend(Place::Git) => {
                        found.insert(path, meta);
                    }
                    Look::Record => {
                        if meta.is_dir() {
                            todo.push_back((path.clone(), Place::Obeyed));
                        }
                        found.insert(path, meta);
                    }
                    Look::Descend(_) | Look::Pass => {}
                }
            }
        }
        (found, false)
    }

    fn record(&self) -> Record {
        let (found, is_cut) = self.walk();
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
        Record { entries, is_cut }
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
        let (now, is_cut) = self.walk();
        report.is_cut |= is_cut || before.is_cut;
        let aside = Aside::new(self, kept_in);
        let mut undone: Vec<PathBuf> = Vec::new();
        // First all that is in the way goes, from above: with a directory that is new goes what is in it.
        for path in now.keys() {
            let is_new = !before.entries.contains_key(path);
            let is_gone = undone.iter().any(|gone| path.starts_with(gone));
            // Beyond the bound of the first look nothing is known.
            if is_gone || !is_new || before.is_cut {
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

/// Where that goes which is undone.
struct Aside<'a> {
    root: &'a Root,
    /// A directory for this time alone, if it could be made.
    place: Option<(PathBuf, Dir)>,
    used: std::cell::Cell<bool>,
}

impl<'a> Aside<'a> {
    /// A place that is made when it is first needed would be found by nobody who looks for a reason why not.
    fn new(root: &'a Root, kept_in: Option<&Path>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
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
            place,
            used: false.into(),
        }
    }

    /// Moves something out of the root, or at least to a name that no program obeys.
    fn put(&self, path: &Path) -> io::Result<()> {
        let from = &self.root.dir;
        if let Some((_, to)) = &self.place {
            let place = flat(path);
            let moved = from.rename(path, to, &place);
            let moved = moved.or_else(|_| {
                let mut left = COPIED;
                copy(from, path, to, &place, &mut left)?;
                remove(from, path)
            });
            if moved.is_ok() {
                self.used.set(true);
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

    /// Where something was kept, if anything was.
    fn used(&self) -> Option<PathBuf> {
        let place = self.place.as_ref().map(|(place, _)| place.clone())?;
        if self.used.get() {
            return Some(place);
        }
        let _ = std::fs::remove_dir(&place);
        None
    }
}

/// A path as one name, so that what is kept is obeyed by nobody there either.
fn flat(path: &Path) -> PathBuf {
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

/// Copies what is there, at most this many bytes of it.
fn copy(from: &Dir, path: &Path, to: &Dir, place: &Path, left: &mut u64) -> io::Result<()> {
    let meta = from.symlink_metadata(path)?;
    if meta.is_dir() {
        to.create_dir(place)?;
        for entry in from.read_dir(path)? {
            let name = entry?.file_name();
            copy(from, &path.join(&name), to, &place.join(&name), left)?;
        }
        return Ok(());
    }
    if meta.is_symlink() {
        return link(to, &from.read_link_contents(path)?, place);
    }
    if !meta.is_file() {
        return Ok(());
    }
    *left = left
        .checked_sub(meta.len())
        .ok_or_else(|| io::Error::other("it is too large to be copied"))?;
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

/// Makes a link, wherever it leads: nobody follows it here.
#[cfg(unix)]
fn link(dir: &Dir, to: &Path, path: &Path) -> io::Result<()> {
    dir.symlink_contents(to, path)
}

#[cfg(not(unix))]
fn link(_dir: &Dir, _to: &Path, _path: &Path) -> io::Result<()> {
    Err(io::Error::other("there are no links"))
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

impl Report {
    /// What there is to say, if anything.
    fn in_words(&self) -> Option<String> {
        let mut text = String::new();
        let changes = |count: usize| match count {
            1 => "a change".to_owned(),
            count => format!("{count} changes"),
        };
        let named = |paths: &[String]| {
            let more = paths.len().saturating_sub(NAMES);
            let named = paths
                .get(..paths.len() - more)
                .unwrap_or_default()
                .join(", ");
            match more {
                0 => named,
                more => format!("{named}, and {more} more"),
            }
        };
        if !self.undone.is_empty() {
            let paths: Vec<_> = self.undone.iter().map(|path| shown(path)).collect();
            text.push_str(&format!(
                "acp undid {} to files that other programs obey: {}",
                changes(paths.len()),
                named(&paths)
            ));
            if let Some(kept) = &self.kept {
                text.push_str(&format!("; what was there is kept in {}", shown(kept)));
            }
            text.push('\n');
        }
        if !self.lost.is_empty() {
            let lost = self.lost.iter();
            let lost: Vec<_> = lost
                .map(|(path, why)| format!("{} ({why})", shown(path)))
                .collect();
            text.push_str(&format!(
                "acp could not undo {} to files that other programs obey: {}\n",
                changes(lost.len()),
                named(&lost)
            ));
        }
        if self.is_cut {
            text.push_str(
                "acp has not looked at all files for changes to those that other programs obey: there are too many\n",
            );
        }
        (!text.is_empty()).then(|| format!("\n{text}"))
    }
}

fn shown(path: &Path) -> String {
    clean::line(&path.to_string_lossy())
}
