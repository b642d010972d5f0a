//! Tests of chats whose agent crashes or cannot start.

use super::*;

#[test]
fn crashed_agent_is_restarted_with_its_session() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        write_hello_file(&project);
        let mut screen = start_chat(&project, columns, rows);
        run_read_turn(&mut screen);
        let agent = agent_pid(&project);
        rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
        screen.wait_for("acp agent ended: signal SIGKILL");
        screen.wait_for("F5: restart and load the session");
        assert_golden(&mut screen, &project, &format!("crash-{columns}x{rows}"));
        // Whoever has not noticed it goes on typing.
        screen.send_keys("nr");
        screen.wait_for("│nr");
        screen.wait_for("acp agent ended");
        screen.send_keys(CLEAR_LINE);
        screen.send_keys(F5);
        screen.wait_until_gone("acp agent ended");
        screen.wait_for("/read src/main.rs");
        screen.wait_for("Read src/main.rs");
        // And it goes on.
        screen.send_line("/help");
        screen.wait_for("/edit");
    }
}

#[test]
fn chat_without_a_terminal_explains_what_to_do() {
    let project = TestProject::new();
    let output = project.acp_command(&["chat"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("acp chat requires a terminal"), "{said}");
    assert!(said.contains("acp run"), "{said}");
}
