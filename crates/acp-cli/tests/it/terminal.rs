//! Tests of `acp run` on a terminal: questions, colors and Ctrl-C.

use crate::common::terminal::CommandTerminal;
use crate::common::{ACP, TestProject};

fn start_run(project: &TestProject, args: &str) -> CommandTerminal {
    CommandTerminal::start(project, &format!("{ACP} run {args}"))
}

#[test]
fn question_shows_its_subject_and_accepts_an_answer() {
    let project = TestProject::new();
    project.write_file("prompt", "/edit notes.txt\nsecond\n===\n2nd");
    let mut terminal = start_run(&project, "--file prompt");
    terminal.wait_for("answer [1-4]: ");
    for part in ["-second", "+2nd", "1) ", "4) "] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    assert_eq!(
        project.read_file("notes.txt"),
        "first\nsecond\nthird\n",
        "nothing happens before the answer"
    );
    terminal.send_keys("what?\n");
    terminal.send_keys("1\n");
    let (code, screen) = terminal.wait_for_exit();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("\u{1b}[32m+2nd"),
        "the diff is colored: {screen:?}"
    );
    assert_eq!(project.read_file("notes.txt"), "first\n2nd\nthird\n");
}

#[test]
fn rejection_changes_nothing() {
    let project = TestProject::new();
    let mut terminal = start_run(&project, "'/run touch made'");
    terminal.wait_for("answer [1-4]: ");
    terminal.send_keys("3\n");
    let (code, screen) = terminal.wait_for_exit();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!project.file("made").exists());
}

#[test]
fn ctrl_c_at_a_question_cancels_the_turn() {
    let project = TestProject::new();
    let mut terminal = start_run(&project, "'/run touch made'");
    terminal.wait_for("answer [1-4]: ");
    terminal.send_keys("\u{3}");
    let (code, screen) = terminal.wait_for_exit();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("acp: cancelled"), "{screen}");
    assert!(!project.file("made").exists());
}
