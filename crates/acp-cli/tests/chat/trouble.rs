//! Agents that end or were never there.

use super::*;

#[test]
fn an_agent_that_crashes_is_started_again_with_its_session() {
    for (columns, rows) in SIZES {
        let project = Project::new();
        hello(&project);
        let mut screen = chat(&project, columns, rows);
        read(&mut screen);
        let agent = agent_of(&project);
        rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
        screen.until("acp agent is gone: it ended");
        screen.until("r: start again and load the session");
        is_golden(&mut screen, &project, &format!("crash-{columns}x{rows}"));
        screen.key("r");
        screen.until_gone("is gone");
        screen.until("/read src/main.rs");
        screen.until("Read src/main.rs");
        // And it goes on.
        screen.say("/help");
        screen.until("/edit");
    }
}

#[test]
fn an_agent_that_is_not_there_or_ends_at_once_is_told_of() {
    let project = Project::new();
    let nowhere = format!("{ACP} chat -- no-such-agent");
    let mut screen = Screen::start(&project, 80, 24, &nowhere);
    screen.until("no-such-agent is gone: it could not be started");
    screen.until("r: start again");
    drop(screen);

    let usage = format!("{ACP} chat -- sh -c 'echo usage: agent --acp >&2; exit 2'");
    let mut screen = Screen::start(&project, 80, 24, &usage);
    screen.until("sh is gone: it ended: exit code 2");
    screen.until("usage: agent --acp");
    drop(screen);

    let hangs = format!("{ACP} chat -- sh -c 'echo loading the model >&2; sleep 1000'");
    let mut screen = Screen::start(&project, 80, 24, &hangs);
    screen.until("starting sh");
    screen.until("loading the model");
    screen.until("sh has not answered yet; Ctrl-Q ends the chat");
    is_golden_but_for_time(&screen);
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));
}

/// It says how long it has taken, on the line for what goes on.
#[track_caller]
fn is_golden_but_for_time(screen: &Screen) {
    let text = screen.text();
    let line = text
        .lines()
        .find(|line| line.contains("starting sh"))
        .unwrap();
    assert!(line.trim_end().ends_with(" s"), "{line}");
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let project = Project::new();
    let output = project.acp(&["chat"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("acp chat needs a terminal"), "{said}");
    assert!(said.contains("acp run"), "{said}");
}
