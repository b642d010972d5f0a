//! Random sequences of edits by an agent that writes by itself and by the user, with undo and redo in between.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use acp_rewind::Snapshot;
use fastrand::Rng;

use crate::project::{Entry, TestProject, user_git};
use crate::{Restored, restore};

/// How much was done.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) edits: usize,
    pub(crate) user_operations: usize,
    pub(crate) restorations: usize,
    pub(crate) skipped: usize,
}

/// The largest file that the history keeps, in bytes.
const LIMIT: usize = 64 * 1024;

const NAMES: [&[u8]; 14] = [
    b"a",
    b"b",
    b"c.txt",
    b"d.log",
    b"ignored",
    b"with space",
    b"quote\"backslash\\",
    b"line\nfeed",
    b"tab\t",
    b"-dash",
    b":colon",
    b"\xff\xfe",
    "ümlaut".as_bytes(),
    b".gitattributes",
];

const MODES: [u32; 8] = [0o644, 0o644, 0o755, 0o600, 0o664, 0o700, 0o444, 0o4755];

/// Runs this many sequences from this seed on, and checks the project after each restoration.
pub(crate) fn run(first_seed: u64, sequences: usize) -> Counts {
    let next = AtomicU64::new(first_seed);
    let end = first_seed + u64::try_from(sequences).unwrap();
    let counts = Mutex::new(Counts::default());
    // The sequences mostly wait for git.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    println!("seed {seed}");
                    let mut own = Counts::default();
                    run_sequence(Rng::with_seed(seed), &mut own);
                    counts.lock().unwrap().add(&own);
                }
            });
        }
    });
    counts.into_inner().unwrap()
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.edits += other.edits;
        self.user_operations += other.user_operations;
        self.restorations += other.restorations;
        self.skipped += other.skipped;
    }
}

/// The project when a snapshot was taken.
struct KnownState {
    snapshot: Snapshot,
    entries: BTreeMap<PathBuf, Entry>,
    kept: BTreeSet<PathBuf>,
}

fn run_sequence(mut random: Rng, counts: &mut Counts) {
    let project = TestProject::new();
    project.write(".gitignore", "*.log\nignored\n");
    let mut history = project.open();
    let mut states = Vec::new();
    for _ in 0..random.usize(3..8) {
        for _ in 0..random.usize(0..12) {
            edit(&project, &mut random);
            counts.edits += 1;
        }
        if random.u8(..4) == 0 {
            counts.user_operations += use_git(&project, &mut random);
        }
        let repository = project.repository();
        let entries = project.entries();
        let snapshot = history.take_snapshot().unwrap();
        assert_eq!(project.entries(), entries, "a snapshot changes nothing");
        assert_eq!(project.repository(), repository);
        let kept = kept_paths(&entries);
        states.push(KnownState {
            snapshot,
            entries,
            kept,
        });
        // The user and the agent may have changed something since, or nothing.
        for _ in 0..random.usize(0..4) {
            edit(&project, &mut random);
            counts.edits += 1;
        }
        for _ in 0..random.usize(1..3) {
            let state = &states[random.usize(..states.len())];
            let repository = project.repository();
            let now = project.entries();
            let outcome = restore(&mut history, &state.snapshot);
            counts.restorations += 1;
            counts.skipped += outcome.skipped.len();
            check(state, &now, &project.entries(), &outcome);
            assert_eq!(project.repository(), repository);
            if random.bool() {
                let undone = project.entries();
                // What was replaced comes back, also if it was ignored.
                let mut kept = kept_paths(&now);
                let replaced = now
                    .iter()
                    .filter(|(path, entry)| undone.get(*path) != Some(*entry));
                kept.extend(replaced.map(|(path, _)| path.clone()));
                let redo = KnownState {
                    snapshot: outcome.before.clone(),
                    kept,
                    entries: now,
                };
                let outcome = restore(&mut history, &redo.snapshot);
                counts.restorations += 1;
                check(&redo, &undone, &project.entries(), &outcome);
            }
        }
    }
}

/// Checks that the project is as it was in `state`, except for what no snapshot keeps.
fn check(
    state: &KnownState,
    now: &BTreeMap<PathBuf, Entry>,
    after: &BTreeMap<PathBuf, Entry>,
    outcome: &Restored,
) {
    let skipped: BTreeSet<&Path> = outcome
        .skipped
        .iter()
        .map(|skipped| skipped.path.as_path())
        .collect();
    let related = |path: &Path, other: &Path| path.starts_with(other) || other.starts_with(path);
    let kept_now = kept_paths(now);
    // Paths that were not kept at one of the two times, because they were ignored, too large or special.
    let kept_by_then = kept_paths_with(now, &rules_of(&state.entries));
    let unkept: BTreeSet<&Path> = [
        (now, &kept_now),
        (&state.entries, &state.kept),
        // What is there now, and was not there then, but would have been ignored.
        (now, &kept_by_then),
    ]
    .into_iter()
    .flat_map(|(entries, kept)| entries.keys().filter(|path| !kept.contains(*path)))
    .map(PathBuf::as_path)
    .collect();
    for path in &skipped {
        let is_justified = unkept.iter().any(|unkept| related(path, unkept));
        assert!(
            is_justified,
            "rules now {:?}, then {:?}, after {:?}; {path:?} skipped: {:?}; now: {:?}, then: {:?}, after: {:?}",
            String::from_utf8_lossy(&rules_of(now)),
            String::from_utf8_lossy(&rules_of(&state.entries)),
            String::from_utf8_lossy(&rules_of(after)),
            outcome.skipped,
            near(now, path),
            near(&state.entries, path),
            near(after, path),
        );
    }
    let is_excused = |path: &Path| skipped.iter().any(|skipped| related(path, skipped));
    for path in &state.kept {
        if !is_excused(path) {
            assert_eq!(
                after.get(path),
                state.entries.get(path),
                "{path:?} of the snapshot"
            );
        }
    }
    for (path, entry) in now {
        if state.kept.contains(path) || is_excused(path) {
            continue;
        }
        let holds_unkept = unkept.iter().any(|unkept| unkept.starts_with(path));
        if kept_now.contains(path) && !holds_unkept {
            assert_eq!(
                after.get(path),
                None,
                "{path:?} was not in the snapshot; now: {:?}, then: {:?}, skipped: {skipped:?}",
                near(now, path),
                near(after, path),
            );
        } else if !matches!(entry, Entry::Directory(_)) {
            assert_eq!(
                after.get(path),
                Some(entry),
                "{path:?} is not kept by snapshots"
            );
        }
    }
    for path in after.keys() {
        assert!(
            now.contains_key(path) || state.entries.contains_key(path),
            "{path:?} is new"
        );
    }
}

/// The entries at a path, for messages.
fn near<'a>(entries: &'a BTreeMap<PathBuf, Entry>, path: &Path) -> Vec<(&'a PathBuf, &'a Entry)> {
    let entries = entries.iter().filter(|(other, _)| other.starts_with(path));
    entries.take(6).collect()
}

/// The paths that a snapshot of these entries contains.
fn kept_paths(entries: &BTreeMap<PathBuf, Entry>) -> BTreeSet<PathBuf> {
    kept_paths_with(entries, &rules_of(entries))
}

/// The contents of `.gitignore`.
fn rules_of(entries: &BTreeMap<PathBuf, Entry>) -> Vec<u8> {
    match entries.get(Path::new(".gitignore")) {
        Some(Entry::File(_, rules)) => rules.clone(),
        _ => Vec::new(),
    }
}

fn kept_paths_with(entries: &BTreeMap<PathBuf, Entry>, rules: &[u8]) -> BTreeSet<PathBuf> {
    // The user's git writes it with other line ends if `.gitattributes` says so.
    let rules: Vec<&[u8]> = rules.split(|byte| matches!(byte, b'\r' | b'\n')).collect();
    let is_ignored = |name: &OsStr| {
        let name = name.as_bytes();
        rules.contains(&name) || name.ends_with(b".log") && rules.contains(&b"*.log".as_slice())
    };
    let kept = entries.iter().filter(|(path, entry)| {
        let is_too_large = matches!(entry, Entry::File(_, contents) if contents.len() > LIMIT);
        let is_special = matches!(entry, Entry::Special);
        !is_too_large && !is_special && !path.iter().any(is_ignored)
    });
    kept.map(|(path, _)| path.clone()).collect()
}

fn random_path(random: &mut Rng) -> PathBuf {
    let depth = random.usize(1..4);
    (0..depth)
        .map(|_| OsStr::from_bytes(NAMES[random.usize(..NAMES.len())]))
        .collect()
}

/// Makes one change, as an agent that writes files by itself or the user would. It may fail.
fn edit(project: &TestProject, random: &mut Rng) {
    let path = random_path(random);
    let full = project.path(&path);
    // Writing to a pipe would wait for a reader.
    if fs::metadata(&full).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        let _ = fs::remove_file(&full);
        return;
    }
    if let Some(parent) = full.parent() {
        // A file may be in the way.
        let _ = fs::create_dir_all(parent);
    }
    match random.u8(..16) {
        0..=5 => {
            if path.ends_with(".gitattributes") {
                let _ = fs::write(&full, "* text eol=crlf\n*.txt filter=lfs -diff\n");
                return;
            }
            let length = random.usize(..200);
            let contents: Vec<u8> = (0..length)
                .map(|_| match random.u8(..4) {
                    0 => b'\n',
                    1 => random.u8(..),
                    _ => b'x',
                })
                .collect();
            let _ = fs::write(&full, contents);
        }
        6 => {
            let _ = fs::remove_file(&full);
        }
        7 => {
            let _ = fs::remove_dir_all(&full);
        }
        8 => {
            // What is in the way is replaced.
            let _ = fs::remove_dir_all(&full).or_else(|_| fs::remove_file(&full));
            let _ = fs::create_dir_all(full.join("nested"));
        }
        9 => {
            // Edits go through links, so no link may lead out of the test's directory.
            let target = match random.u8(..4) {
                0 => project.outside.clone(),
                1 => PathBuf::from("nowhere"),
                2 => PathBuf::from("."),
                _ => random_path(random),
            };
            let _ = fs::remove_dir_all(&full).or_else(|_| fs::remove_file(&full));
            let _ = symlink(target, &full);
        }
        10 | 11 => {
            let metadata = fs::symlink_metadata(&full);
            if metadata.is_ok_and(|metadata| !metadata.is_symlink()) {
                let mode = MODES[random.usize(..MODES.len())];
                // A directory stays one that its user can list.
                let mode = if full.is_dir() {
                    mode & 0o777 | 0o700
                } else {
                    mode | 0o400
                };
                crate::set_mode(full, mode);
            }
        }
        12 => {
            let _ = fs::rename(project.path(random_path(random)), &full);
        }
        13 => {
            let _ = fs::write(&full, vec![b'L'; LIMIT + 1]);
        }
        14 => match random.u8(..3) {
            0 => {
                let _ = rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &full,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::from_raw_mode(0o644),
                    0,
                );
            }
            _ => {
                // A repository in the project.
                if fs::create_dir_all(&full).is_ok() {
                    user_git(&full, &["init", "--quiet"]);
                }
            }
        },
        _ => {
            let rules = ["*.log\n", "ignored\n", "a\n", "c.txt\n", "b\n"];
            let rules: String = rules.into_iter().filter(|_| random.bool()).collect();
            let _ = fs::write(project.path(".gitignore"), rules);
        }
    }
}

/// Uses git as the user does. Returns the number of commands that succeeded.
fn use_git(project: &TestProject, random: &mut Rng) -> usize {
    let root = &project.root;
    // The user's own git would wait for attributes from a pipe.
    for (path, entry) in project.entries() {
        if entry == Entry::Special && path.ends_with(".gitattributes") {
            fs::remove_file(project.path(path)).unwrap();
        }
    }
    let commands: &[&[&str]] = match random.u8(..6) {
        0 => &[&["add", "--all"], &["commit", "--quiet", "--message=all"]],
        1 => &[&["add", "--all"]],
        2 => &[&["stash", "push", "--quiet", "--include-untracked"]],
        3 => &[&["stash", "pop", "--quiet"]],
        4 => &[&["reset", "--quiet", "--hard"]],
        _ => &[&["checkout", "--quiet", "-B", "other"], &["gc", "--quiet"]],
    };
    commands
        .iter()
        .filter(|command| user_git(root, command))
        .count()
}
