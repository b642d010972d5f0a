//! `acp run` on a terminal: questions, colors, Ctrl-C as it is typed.

use crate::common::terminal::CommandTerminal;
use crate::common::{ACP, TestProject};

fn run(project: &TestProject, args: &str) -> CommandTerminal {
    CommandTerminal::start(project, &format!("{ACP} run {args}"))
}

#[test]
fn a_question_shows_what_it_is_about_and_takes_an_answer() {
    let project = TestProject::new();
    project.write("prompt", "/edit notes.txt\nsecond\n===\n2nd");
    let mut terminal = run(&project, "--file prompt");
    terminal.until("answer [1-4]: ");
    for part in ["-second", "+2nd", "1) ", "4) "] {
        assert!(terminal.seen.contains(part), "{part}: {}", terminal.seen);
    }
    assert_eq!(
        project.read("notes.txt"),
        "first\nsecond\nthird\n",
        "nothing happens before the answer"
    );
    terminal.key("what?\n");
    terminal.key("1\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(
        screen.contains("\u{1b}[32m+2nd"),
        "the diff is colored: {screen:?}"
    );
    assert_eq!(project.read("notes.txt"), "first\n2nd\nthird\n");
}

#[test]
fn a_no_leaves_everything_as_it_is() {
    let project = TestProject::new();
    let mut terminal = run(&project, "'/run touch made'");
    terminal.until("answer [1-4]: ");
    terminal.key("3\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!project.file("made").exists());
}

#[test]
fn ctrl_c_at_a_question_cancels_the_turn() {
    let project = TestProject::new();
    let mut terminal = run(&project, "'/run touch made'");
    terminal.until("answer [1-4]: ");
    terminal.key("\u{3}");
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("acp: cancelled"), "{screen}");
    assert!(!project.file("made").exists());
}
