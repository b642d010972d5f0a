//! Tests of the list of turns.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use acp_rewind::{KeptTurn, ProjectHistory, Snapshot};

use crate::project::TestProject;

fn turn(session: &str, prompt: &str, snapshot: &Snapshot) -> KeptTurn {
    KeptTurn {
        agent: "an agent".to_owned(),
        session: session.to_owned(),
        started_at: "2026-11-28T15:00:00.000000001Z".to_owned(),
        prompt: prompt.to_owned(),
        snapshot: snapshot.clone(),
    }
}

/// Returns the path of the list.
fn log_file(project: &TestProject) -> PathBuf {
    let mut directories = fs::read_dir(&project.store).unwrap();
    let directory = directories.next().unwrap().unwrap().path();
    directory.join("turns.jsonl")
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

fn prompts(project: &TestProject, agent: &str, session: &str) -> Vec<String> {
    let turns = KeptTurn::find(&project.root, &project.store, agent, session).unwrap();
    turns.into_iter().map(|turn| turn.prompt).collect()
}

#[test]
fn turns_of_a_session_are_kept_for_other_processes() {
    let project = TestProject::new();
    assert_eq!(prompts(&project, "an agent", "s1"), [""; 0]);
    let mut history = project.open();
    assert_eq!(prompts(&project, "an agent", "s1"), [""; 0]);
    let before = history.take_snapshot().unwrap();
    history
        .keep_turns(&[
            turn("s1", "one\ntwo", &before),
            turn("s2", "other", &before),
        ])
        .unwrap();
    // A process that was killed while it wrote does not spoil what others write.
    let file = log_file(&project);
    assert_eq!(mode(&file), 0o600);
    let mut broken = OpenOptions::new().append(true).open(&file).unwrap();
    broken.write_all(b"\n{\"agent\":\"an ag").unwrap();
    let again = project.open();
    again.keep_turns(&[turn("s1", "three", &before)]).unwrap();
    assert_eq!(prompts(&project, "an agent", "s1"), ["one\ntwo", "three"]);
    assert_eq!(prompts(&project, "an agent", "s2"), ["other"]);
    assert_eq!(prompts(&project, "another agent", "s1"), [""; 0]);
    let turns = KeptTurn::find(&project.root, &project.store, "an agent", "s1").unwrap();
    assert_eq!(turns[1], turn("s1", "three", &before));
}

#[test]
fn turns_are_forgotten_with_their_snapshots() {
    let project = TestProject::new();
    let mut options = project.options();
    options.max_snapshots = 1;
    let mut history = ProjectHistory::open(&project.root, &project.store, options).unwrap();
    let old = history.take_snapshot().unwrap();
    project.write("file", "new");
    let new = history.take_snapshot().unwrap();
    let turns = [turn("s", "old", &old), turn("s", "new", &new)];
    history.keep_turns(&turns).unwrap();
    assert_eq!(prompts(&project, "an agent", "s"), ["old", "new"]);
    assert_eq!(history.prune().unwrap(), 1);
    assert_eq!(mode(&log_file(&project)), 0o600);
    assert_eq!(prompts(&project, "an agent", "s"), ["new"]);
    history.keep_turns(&[turn("s", "newer", &new)]).unwrap();
    assert_eq!(prompts(&project, "an agent", "s"), ["new", "newer"]);
}
