//! Tests of messages to an agent during its turn.

use serde_json::json;

use super::*;

#[test]
fn a_message_reaches_the_running_turn() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat(&project, 100, 30);
    screen.send_line("/run while ! test -e go; do sleep 0.01; done");
    screen.wait_for("running: Run");
    screen.wait_for("Esc: cancel");
    // What Enter does is shown before it is pressed.
    screen.send_keys("/run echo steered");
    screen.wait_for("Enter: steer  Alt-q: queue   Esc: cancel");
    screen.send_keys(ENTER);
    screen.wait_for("⇢ sent to the turn: /run echo steered");
    // It is in the conversation where it was sent, once.
    screen.wait_for("▌ /run echo steered");
    assert_eq!(screen.text().matches("▌ /run echo steered").count(), 1);
    // It is not a prompt of its own.
    assert!(!screen.text().contains('↳'), "{}", screen.text());
    project.write_file("go", "");
    screen.wait_for("echo steered exited with code 0");
    screen.wait_until_gone("Esc: cancel");
    screen.send_line("/run echo next");
    screen.wait_for("echo next exited with code 0");
    screen.wait_until_gone("⇢");
}

#[test]
fn a_message_to_an_agent_that_cannot_be_steered_is_queued() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 100, 30, "");
    play_steps(&project, &mut screen, &json!([wait_step("go")]));
    screen.wait_for("Esc: cancel");
    screen.send_keys("and then this");
    screen.wait_for("Enter: queue   Esc: cancel");
    screen.send_keys(ENTER);
    screen.wait_for("↳ and then this");
    assert!(!project.file(player::RECORD_FILE).exists());
    project.write_file("go", "");
    wait_for_record(
        &project,
        &json!([{"type": "text", "text": "and then this"}]),
    );
}

#[test]
fn a_request_is_rejected_with_words() {
    let project = TestProject::new();
    project.write_file("main.rs", "fn main() {}\n");
    project.allow_commands();
    let mut screen = start_chat(&project, 100, 40);
    for line in ["/edit main.rs", "main", "==="] {
        screen.send_keys(line);
        screen.send_keys(NEW_LINE);
    }
    screen.send_line("other");
    screen.wait_for("ACP Agent wants to: Edit");
    screen.wait_for("w reject and explain");
    wait_until_question_accepts_keys();
    screen.send_keys("w");
    screen.wait_for("Reject, and tell the agent what to do instead");
    // The request stays open if nothing is written.
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("Reject, and tell the agent what to do instead");
    screen.wait_for("w reject and explain");
    screen.send_keys("w");
    screen.wait_for("Reject, and tell the agent what to do instead");
    screen.send_line("/run echo something else");
    screen.wait_for("echo something else exited with code 0");
    assert_eq!(project.read_file("main.rs"), "fn main() {}\n");
}
