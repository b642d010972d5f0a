//! Tests of chats with an agent served by `acp serve`.

use super::*;
use crate::serve::Server;

/// Asks the agent for an edit, allows it, and checks that the file has changed.
fn edit_notes(project: &TestProject, screen: &mut ChatScreen) {
    for line in ["/edit notes.txt", "second", "==="] {
        screen.send_keys(line);
        screen.send_keys(NEW_LINE);
    }
    screen.send_line("changed");
    screen.wait_for("wants to: Edit");
    screen.wait_for("1 y  Allow");
    wait_until_question_accepts_keys();
    screen.send_keys("y");
    screen.wait_for("Edited notes.txt at line 2.");
    assert_eq!(project.read_file("notes.txt"), "first\nchanged\nthird\n");
}

#[test]
fn remote_agent_is_used_by_its_url() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    for url in [
        server.url().to_owned(),
        server.url().replacen("ws", "http", 1),
    ] {
        project.write_file("notes.txt", "first\nsecond\nthird\n");
        let args = format!("--url '{url}'");
        let mut screen = start_chat_with_args(&project, 80, 24, &args);
        screen.wait_for("Ask");
        edit_notes(&project, &mut screen);
        assert!(!screen.text().contains(server.token().expose()));
        quit(&mut screen);
        assert_eq!(screen.wait_for_exit().0, Some(0));
    }
}

#[test]
fn remote_agent_is_used_through_acp_connect() {
    let project = TestProject::new();
    let server = Server::start(&project, &[]);
    let args = format!("-- {ACP} connect '{}'", server.url());
    let mut screen = start_chat_with_args(&project, 80, 24, &args);
    screen.wait_for("Ask");
    edit_notes(&project, &mut screen);
    quit(&mut screen);
    assert_eq!(screen.wait_for_exit().0, Some(0));
}
