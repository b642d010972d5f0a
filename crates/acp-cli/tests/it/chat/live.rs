//! Tests of chats that share a live session.

use super::*;

#[test]
fn two_chats_and_a_run_share_a_session_and_see_who_answered() {
    let project = TestProject::new();
    let chat = format!("{ACP} chat --session build");
    let mut first = ChatScreen::start(&project, 100, 30, &chat);
    first.wait_for("Ask");
    first.send_line("/read notes.txt");
    first.wait_for("✓ ▤ Read notes.txt");
    // The second chat finds what the first has done.
    let mut second = ChatScreen::start(&project, 100, 30, &chat);
    second.wait_for("✓ ▤ Read notes.txt");
    // A run in the background asks, and both are shown the question.
    project
        .run_shell("acp run --session build --no-wait '/run echo made > made'")
        .expect_code(0);
    for screen in [&mut first, &mut second] {
        screen.wait_for("$ echo made > made");
        screen.wait_for("1 y  Allow");
    }
    assert!(!project.file("made").exists());
    wait_until_question_accepts_keys();
    first.send_keys("y");
    second.wait_for("the question was answered by acp chat");
    for screen in [&mut first, &mut second] {
        screen.wait_for("✓ $ Run echo made > made");
    }
    assert_eq!(project.read_file("made"), "made\n");
    // The session goes on when a chat is closed, even in the middle of a turn.
    first.send_line("/run while ! test -e go; do sleep 0.01; done");
    first.wait_for("$ while ! test -e go");
    first.wait_for("1 y  Allow");
    wait_until_question_accepts_keys();
    first.send_keys("y");
    first.wait_for("running: Run");
    first.send_keys("\u{11}");
    first.wait_for("the agent is working and goes on without you; quit again to leave");
    first.send_keys("\u{11}");
    assert_eq!(first.wait_for_exit().0, Some(0));
    project.write_file("go", "");
    second.wait_for("✓ $ Run while ! test -e go");
    second.wait_until_gone("Esc: cancel");
    second.send_line("/read notes.txt:2");
    second.wait_for("exited with code 0");
    second.wait_for("second");
}
