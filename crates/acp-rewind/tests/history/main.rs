//! Tests of snapshots on real directories, with a git repository of the user's in the project.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs
)]

mod project;
mod random;
mod turns;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use acp_rewind::{
    ChangeKind, HistoryOptions, LeftOutReason, ProjectHistory, RewindError, SkippedPath, Snapshot,
};

use project::{TestProject, user_git};

#[test]
fn an_agents_changes_are_taken_back_and_redone() {
    let project = TestProject::new();
    project.write("kept.txt", "kept\n");
    project.write("changed.txt", "one\ntwo\n");
    project.write("deleted/deep/file.bin", [0, 159, 146, 150, 255]);
    project.write("script.sh", "#!/bin/sh\n");
    fs::create_dir(project.path("empty")).unwrap();
    let mut history = project.open();
    let before = history.take_snapshot().unwrap();
    let original = project.entries();

    project.write("changed.txt", "one\n2\nthree\n");
    fs::remove_dir_all(project.path("deleted")).unwrap();
    project.write("new/file.txt", "new\n");
    project.set_mode("script.sh", 0o755);
    project.set_mode("kept.txt", 0o600);
    fs::remove_dir(project.path("empty")).unwrap();
    symlink("kept.txt", project.path("link")).unwrap();
    let changed = project.entries();

    let after = history.take_snapshot().unwrap();
    let changes = history.changes(&before, &after).unwrap();
    let changes: Vec<_> = changes
        .iter()
        .map(|change| (change.path.to_str().unwrap(), change.kind, change.lines))
        .collect();
    assert_eq!(
        changes,
        [
            ("changed.txt", ChangeKind::Modified, Some((2, 1))),
            ("deleted/deep/file.bin", ChangeKind::Deleted, None),
            ("empty", ChangeKind::DirectoryDeleted, None),
            ("kept.txt", ChangeKind::Permissions, None),
            ("link", ChangeKind::Created, Some((1, 0))),
            ("new/file.txt", ChangeKind::Created, Some((1, 0))),
            ("script.sh", ChangeKind::Permissions, None),
        ]
    );
    let diff = history.diff(&before, &after, 1 << 20).unwrap();
    let diff = String::from_utf8(diff).unwrap();
    assert!(diff.contains("-two\n+2\n+three\n"), "{diff}");

    let undone = restore(&mut history, &before);
    assert_eq!(undone.skipped, []);
    assert_eq!(undone.before, after);
    assert_eq!(project.entries(), original);

    let redone = restore(&mut history, &undone.before);
    assert_eq!(redone.skipped, []);
    assert_eq!(project.entries(), changed);
}

#[test]
fn contents_are_kept_whatever_attributes_and_settings_say() {
    let project = TestProject::new();
    project.write(
        ".gitattributes",
        "* text eol=crlf filter=broken ident working-tree-encoding=UTF-16\n",
    );
    user_git(&project.root, &["config", "filter.broken.clean", "false"]);
    user_git(&project.root, &["config", "core.autocrlf", "true"]);
    project.write("mixed.txt", "a\r\nb\nc\r $Id$\n");
    let mut history = project.open();
    let before = history.take_snapshot().unwrap();
    let original = project.entries();
    fs::remove_file(project.path("mixed.txt")).unwrap();
    fs::remove_file(project.path(".gitattributes")).unwrap();
    restore(&mut history, &before);
    assert_eq!(project.entries(), original);
}

#[test]
fn a_snapshot_of_an_unchanged_project_is_the_same() {
    let project = TestProject::new();
    project.write("file", "text");
    let mut history = project.open();
    let first = history.take_snapshot().unwrap();
    assert_eq!(history.take_snapshot().unwrap(), first);
    // The same size, and the same time of the last write.
    let written = fs::metadata(project.path("file"))
        .unwrap()
        .modified()
        .unwrap();
    project.write("file", "TEXT");
    let file = fs::File::options()
        .write(true)
        .open(project.path("file"))
        .unwrap();
    file.set_modified(written).unwrap();
    let second = history.take_snapshot().unwrap();
    assert_ne!(second, first);
    restore(&mut history, &first);
    assert_eq!(fs::read_to_string(project.path("file")).unwrap(), "text");
}

#[test]
fn only_what_was_planned_is_restored() {
    let project = TestProject::new();
    project.write("file", "first");
    let mut history = project.open();
    let before = history.take_snapshot().unwrap();
    project.write("file", "second");
    let plan = history.plan_restore(&before).unwrap();
    project.write("new", "written in the meantime");
    let restored = history.restore(&plan);
    assert!(
        matches!(restored, Err(RewindError::FilesChanged)),
        "{restored:?}"
    );
    assert_eq!(fs::read_to_string(project.path("file")).unwrap(), "second");
    let plan = history.plan_restore(&before).unwrap();
    assert_eq!(plan.changes.len(), 2);
    assert_eq!(history.restore(&plan).unwrap(), []);
    assert!(!project.path("new").exists());
}

#[test]
fn a_project_without_files_is_a_project() {
    let project = TestProject::new();
    fs::remove_file(project.path(".gitignore")).ok();
    let mut history = project.open();
    let empty = history.take_snapshot().unwrap();
    project.write("a/file", "text");
    let undone = restore(&mut history, &empty);
    assert!(!project.path("a").exists());
    restore(&mut history, &undone.before);
    assert_eq!(fs::read_to_string(project.path("a/file")).unwrap(), "text");
}

#[test]
fn ignored_files_are_never_lost() {
    let project = TestProject::new();
    project.write(".gitignore", "*.log\n");
    project.write("build.log", "first");
    project.write("dir/keep.log", "first");
    project.write("dir/file", "text");
    project.write("notes", "mine");
    let mut history = project.open();
    let before = history.take_snapshot().unwrap();
    // An agent deletes a directory's files, writes logs, and changes what is ignored.
    fs::remove_file(project.path("dir/file")).unwrap();
    project.write("other/new", "text");
    project.write("other/new.log", "log");
    project.write("build.log", "second");
    project.write(".gitignore", "notes\n");
    project.write("notes", "changed");
    let undone = restore(&mut history, &before);
    // Restored, although it was ignored when it was overwritten.
    assert_eq!(fs::read_to_string(project.path("notes")).unwrap(), "mine");
    // In the snapshot of what was replaced, because it was not ignored then. Not in the one restored.
    assert_eq!(
        fs::read_to_string(project.path("build.log")).unwrap(),
        "second"
    );
    assert_eq!(
        fs::read_to_string(project.path("other/new.log")).unwrap(),
        "log"
    );
    assert!(!project.path("other/new").exists());
    let skipped: Vec<_> = undone
        .skipped
        .iter()
        .map(|skipped| skipped.path.to_str().unwrap())
        .collect();
    assert_eq!(skipped, ["build.log", "dir/keep.log", "other/new.log"]);
    assert_eq!(undone.skipped[0].reason, "ignored by git");
    let redone = restore(&mut history, &undone.before);
    assert_eq!(redone.skipped, []);
    assert_eq!(
        fs::read_to_string(project.path("notes")).unwrap(),
        "changed"
    );
    assert_eq!(
        fs::read_to_string(project.path("other/new")).unwrap(),
        "text"
    );
}

#[test]
fn what_cannot_be_kept_is_said_and_left_alone() {
    let project = TestProject::new();
    project.write("large", vec![b'x'; 70_000]);
    project.write("small", "small");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        project.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let mut history = project.open();
    let before = history.take_snapshot().unwrap();
    let left_out = history.left_out(&before).unwrap();
    let left_out: Vec<_> = left_out
        .iter()
        .map(|path| (path.path.to_str().unwrap(), path.reason))
        .collect();
    assert_eq!(
        left_out,
        [
            ("large", LeftOutReason::TooLarge),
            ("pipe", LeftOutReason::Special)
        ]
    );
    // The large file becomes one that could be deleted, the small one cannot be kept any more.
    project.write("large", "now small");
    project.write("small", vec![b'y'; 70_000]);
    let undone = restore(&mut history, &before);
    let skipped: Vec<_> = undone
        .skipped
        .iter()
        .map(|skipped| (skipped.path.to_str().unwrap(), skipped.reason.as_str()))
        .collect();
    assert_eq!(
        skipped,
        [
            ("large", "not in the snapshot: too large"),
            (
                "small",
                "something that snapshots leave out is in its place"
            ),
        ]
    );
    assert_eq!(
        fs::read_to_string(project.path("large")).unwrap(),
        "now small"
    );
    assert_eq!(fs::read(project.path("small")).unwrap().len(), 70_000);
}

#[test]
fn a_link_in_place_of_a_directory_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    let project = TestProject::new();
    project.write("dir/file", "inside");
    let mut history = project.open();
    let before = history.take_snapshot().unwrap();
    fs::remove_dir_all(project.path("dir")).unwrap();
    symlink(outside.path(), project.path("dir")).unwrap();
    restore(&mut history, &before);
    assert_eq!(
        fs::read_to_string(project.path("dir/file")).unwrap(),
        "inside"
    );
    assert_eq!(
        fs::read_to_string(outside.path().join("file")).unwrap(),
        "outside"
    );
}

#[test]
fn files_in_read_only_directories_are_restored() {
    let project = TestProject::new();
    project.write("closed/file", "first");
    project.set_mode("closed/file", 0o444);
    project.set_mode("closed", 0o555);
    let mut history = project.open();
    let before = history.take_snapshot().unwrap();
    let original = project.entries();
    project.set_mode("closed", 0o755);
    fs::remove_file(project.path("closed/file")).unwrap();
    project.write("closed/other", "second");
    project.set_mode("closed", 0o555);
    let undone = restore(&mut history, &before);
    assert_eq!(undone.skipped, []);
    assert_eq!(project.entries(), original);
}

#[test]
fn snapshots_in_the_project_are_not_part_of_it() {
    let project = TestProject::new();
    project.write("file", "text");
    let store = project.path("store");
    let mut history = ProjectHistory::open(&project.root, &store, project.options()).unwrap();
    let first = history.take_snapshot().unwrap();
    project.write("file", "other");
    let second = history.take_snapshot().unwrap();
    let changes = history.changes(&first, &second).unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
}

#[test]
fn snapshots_are_private() {
    let project = TestProject::new();
    project.write("secret", "text");
    project.open().take_snapshot().unwrap();
    for directory in fs::read_dir(&project.store).unwrap() {
        let path = directory.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", path.display());
    }
    let mode = fs::metadata(&project.store).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn the_home_directory_is_no_project() {
    let home = std::env::home_dir().unwrap();
    let store = tempfile::tempdir().unwrap();
    for directory in [home.as_path(), Path::new("/")] {
        let opened = ProjectHistory::open(directory, store.path(), HistoryOptions::default());
        assert!(
            matches!(opened, Err(RewindError::NotAProject { .. })),
            "{opened:?}"
        );
    }
}

#[test]
fn a_project_with_too_many_files_is_refused() {
    let project = TestProject::new();
    for n in 0..600 {
        project.write(format!("file-{n}"), "");
    }
    let mut options = project.options();
    options.max_files = 500;
    let mut history = ProjectHistory::open(&project.root, &project.store, options).unwrap();
    let taken = history.take_snapshot();
    assert!(matches!(taken, Err(RewindError::TooLarge(_))), "{taken:?}");
}

#[test]
fn two_processes_share_a_history() {
    let project = TestProject::new();
    project.write("file", "one");
    let mut first = project.open();
    let before = first.take_snapshot().unwrap();
    let mut second = project.open();
    project.write("file", "two");
    let between = second.take_snapshot().unwrap();
    project.write("file", "three");
    restore(&mut first, &between);
    assert_eq!(fs::read_to_string(project.path("file")).unwrap(), "two");
    restore(&mut second, &before);
    assert_eq!(fs::read_to_string(project.path("file")).unwrap(), "one");
}

#[test]
fn old_snapshots_are_pruned_and_newer_ones_stay() {
    let project = TestProject::new();
    let mut options = project.options();
    options.max_snapshots = 3;
    let mut history = ProjectHistory::open(&project.root, &project.store, options).unwrap();
    let mut other = project.open();
    other.take_snapshot().unwrap();
    let snapshots: Vec<Snapshot> = (0..6)
        .map(|n| {
            project.write("file", format!("{n}"));
            history.take_snapshot().unwrap()
        })
        .collect();
    assert_eq!(history.prune().unwrap(), 4);
    let restored = history.plan_restore(&snapshots[0]);
    assert!(
        matches!(restored, Err(RewindError::SnapshotNotFound(_))),
        "{restored:?}"
    );
    restore(&mut history, &snapshots[3]);
    assert_eq!(fs::read_to_string(project.path("file")).unwrap(), "3");
    // Its last snapshot is gone, so it starts anew.
    let mut short = project.options();
    short.max_age = Duration::ZERO;
    let mut pruner = ProjectHistory::open(&project.root, &project.store, short).unwrap();
    assert!(pruner.prune().unwrap() >= 3);
    let kept = other.take_snapshot().unwrap();
    project.write("file", "last");
    restore(&mut other, &kept);
    assert_eq!(fs::read_to_string(project.path("file")).unwrap(), "3");
}

#[test]
fn the_users_repository_is_not_touched_by_random_histories() {
    let sequences = std::env::var("ACP_REWIND_SEQUENCES");
    let sequences = sequences.map_or(25, |text| text.parse().unwrap());
    let first_seed = std::env::var("ACP_REWIND_FIRST_SEED");
    let first_seed = first_seed.map_or(0, |text| text.parse().unwrap());
    let counts = random::run(first_seed, sequences);
    println!("{counts:?}");
    assert!(counts.restorations >= sequences * 2, "{counts:?}");
    assert!(counts.user_operations > 0, "{counts:?}");
}

/// Prints what snapshots of 50,000 files cost. Run it with `--ignored --nocapture`, on a release build.
#[test]
#[ignore = "measures time"]
fn cost_of_a_large_project() {
    let project = TestProject::new();
    let mut random = fastrand::Rng::with_seed(1);
    for n in 0..50_000 {
        let words = (0..random.usize(50..800)).map(|_| format!("{:x} ", random.u16(..)));
        project.write(
            format!("dir-{}/sub-{}/file-{n}.txt", n / 1000, n / 100),
            words.collect::<String>(),
        );
    }
    let mut history = project.open();
    let time = |label: &str, history: &mut ProjectHistory| {
        let start = Instant::now();
        let snapshot = history.take_snapshot().unwrap();
        println!("{label}: {:.3?}", start.elapsed());
        snapshot
    };
    let first = time("first snapshot", &mut history);
    time("nothing changed", &mut history);
    project.write("dir-3/sub-35/file-3555.txt", "changed");
    time("one file changed", &mut history);
    for n in 0..100 {
        project.write(format!("dir-{n}/new"), format!("{n}"));
    }
    time("100 files created", &mut history);
    let start = Instant::now();
    let restored = restore(&mut history, &first);
    println!("101 files restored: {:.3?}", start.elapsed());
    assert_eq!(restored.skipped, []);
    let mut second = project.open();
    time("first snapshot of another process", &mut second);
}

/// A restoration, and what it skipped.
struct Restored {
    before: Snapshot,
    skipped: Vec<SkippedPath>,
}

fn restore(history: &mut ProjectHistory, snapshot: &Snapshot) -> Restored {
    let plan = history.plan_restore(snapshot).unwrap();
    let skipped = history.restore(&plan).unwrap();
    Restored {
        before: plan.before,
        skipped,
    }
}

fn set_mode(path: PathBuf, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
