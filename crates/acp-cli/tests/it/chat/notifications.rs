//! Tests of how the chat calls a user who is not at the terminal.

use super::*;

const FOCUS_LOST: &str = "\u{1b}[O";
const FOCUS_GAINED: &str = "\u{1b}[I";

fn start_with_variables(project: &TestProject, variables: &str) -> ChatScreen {
    // None of the terminal in which the tests run.
    let cleared = "env -u TMUX -u STY -u TERM_PROGRAM -u KITTY_WINDOW_ID -u LC_TERMINAL";
    let line = format!("{cleared} {variables} {ACP} chat");
    let mut screen = ChatScreen::start(project, 80, 24, &line);
    screen.wait_for("Ask");
    screen
}

fn wait_for_commands(screen: &mut ChatScreen, expected: &[&str]) {
    screen.wait_for_matching_screen("notifications", |screen| {
        screen.commands().len() >= expected.len()
    });
    assert_eq!(screen.commands(), expected);
}

#[test]
fn user_who_left_is_called_for_a_question_the_end_of_a_turn_and_the_end_of_the_agent() {
    let project = TestProject::new();
    let mut screen = start_with_variables(&project, "TERM_PROGRAM=ghostty");
    screen.send_keys(FOCUS_GAINED);
    screen.send_line("/run echo one");
    screen.wait_for("ACP Agent wants to: Run");
    wait_until_question_accepts_keys();
    screen.send_keys("n");
    screen.wait_until_gone("wants to");
    screen.wait_until_gone("Esc: cancel");
    // The user has seen all of it.
    screen.send_keys(FOCUS_LOST);
    screen.send_line("/run echo two");
    let question = "777;notify;/run echo one;has a question";
    wait_for_commands(&mut screen, &[question]);
    wait_until_question_accepts_keys();
    screen.send_keys("n");
    let end = "777;notify;/run echo one;has finished";
    wait_for_commands(&mut screen, &[question, end]);
    let agent = agent_pid(&project);
    rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
    let exit = "777;notify;/run echo one;has exited";
    wait_for_commands(&mut screen, &[question, end, exit]);
    assert_eq!(screen.bells(), 0);
}

#[test]
fn user_is_not_called_for_a_turn_that_they_cancelled() {
    let project = TestProject::new();
    let mut screen = start_with_variables(&project, "TERM_PROGRAM=iTerm.app");
    screen.send_keys(FOCUS_LOST);
    screen.send_line("/run sleep 1000");
    let question = "9;/run sleep 1000: has a question";
    wait_for_commands(&mut screen, &[question]);
    screen.send_keys(ESCAPE);
    screen.wait_for("cancelled");
    screen.send_line("/help");
    let end = "9;/run sleep 1000: has finished";
    wait_for_commands(&mut screen, &[question, end]);
}

#[test]
fn user_is_called_once_when_all_queued_prompts_are_done() {
    let project = TestProject::new();
    let fifo = project.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let mut screen = start_with_variables(&project, "TERM=xterm-kitty");
    screen.send_keys(FOCUS_LOST);
    screen.send_line("/run cat fifo");
    screen.wait_for("ACP Agent wants to: Run");
    wait_until_question_accepts_keys();
    screen.send_keys("y");
    screen.wait_until_gone("wants to");
    screen.send_keys("/read notes.txt");
    screen.send_keys(ALT_Q);
    screen.wait_for("↳ /read notes.txt");
    std::fs::write(&fifo, "done").unwrap();
    screen.wait_for("Read notes.txt");
    screen.wait_until_gone("Esc: cancel");
    screen.settle();
    let title = "/run cat fifo";
    let bodies = ["has a question", "has finished"];
    let expected = bodies.map(|body| {
        [
            format!("99;i=acp:d=0;{title}"),
            format!("99;i=acp:d=1:p=body;{body}"),
        ]
    });
    assert_eq!(screen.commands(), expected.concat());
}

#[test]
fn terminal_without_notifications_gets_the_bell_unless_it_is_off() {
    for (setting, bells) in [("auto", 2), ("bell", 2), ("off", 0)] {
        let project = TestProject::new();
        project.write_config("config.toml", &format!("[chat]\nnotify = \"{setting}\"\n"));
        let mut screen = start_with_variables(&project, "");
        screen.send_keys(FOCUS_LOST);
        screen.send_line("/run echo one");
        screen.wait_for("ACP Agent wants to: Run");
        wait_until_question_accepts_keys();
        screen.send_keys("n");
        screen.wait_until_gone("Esc: cancel");
        screen.settle();
        assert_eq!(screen.bells(), bells, "{setting}");
        assert!(screen.commands().is_empty(), "{setting}");
    }
}
