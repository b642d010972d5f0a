//! A chat whose agent ends, or that cannot begin.

use super::*;

#[test]
fn an_agent_that_crashes_is_started_again_with_its_session() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        hello(&project);
        let mut screen = chat(&project, columns, rows);
        read(&mut screen);
        let agent = agent_of(&project);
        rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
        screen.until("acp agent ended: signal SIGKILL");
        screen.until("r: restart and load the session");
        is_golden(&mut screen, &project, &format!("crash-{columns}x{rows}"));
        screen.key("r");
        screen.until_gone("acp agent ended");
        screen.until("/read src/main.rs");
        screen.until("Read src/main.rs");
        // And it goes on.
        screen.say("/help");
        screen.until("/edit");
    }
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let project = TestProject::new();
    let output = project.acp(&["chat"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("acp chat requires a terminal"), "{said}");
    assert!(said.contains("acp run"), "{said}");
}
