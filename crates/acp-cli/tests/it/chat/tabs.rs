//! Several sessions at once, of one agent and of several.

use super::*;

#[test]
fn a_tab_that_waits_for_an_answer_does_not_hold_up_another() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        hello(&project);
        let mut screen = chat(&project, columns, rows);
        screen.say("/run echo one");
        screen.until("ACP Agent wants to: Run");
        screen.key("\u{14}");
        screen.until(" 2 ");
        screen.until("Type a prompt");
        screen.say("/read src/main.rs");
        screen.until("println!(\"hi\");");
        screen.until_gone("Esc: cancel");
        is_golden(&mut screen, &project, &format!("tabs-{columns}x{rows}"));
        screen.key("\u{1b}1");
        screen.until("ACP Agent wants to: Run");
        screen.key(ESCAPE);
        screen.until("cancelled");
    }
}

#[test]
fn two_agents_are_talked_to_in_two_tabs() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = with_player(&project, 80, 24, "");
    screen.say("first");
    screen.until("heard 1 blocks");
    // The bundled agent is always among them.
    screen.key("\u{1b}a");
    screen.until("╭ Select agent for new session");
    screen.key("acp");
    screen.until("› acp");
    screen.key(ENTER);
    screen.until("ACP Agent");
    screen.until(" Ask");
    read(&mut screen);
    screen.key("\u{1b}1");
    screen.until("heard 1 blocks");
    assert!(!screen.text().contains("✓ ▤ Read"));
    screen.key("\u{1b}[1;3C");
    screen.until("✓ ▤ Read src/main.rs");
    screen.key("\u{1b}w");
    screen.until_gone(" 2 ");
    screen.until("heard 1 blocks");
}

#[test]
fn what_happens_in_another_tab_is_marked_in_the_bar() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    screen.key("\u{14}");
    screen.until(" 2 · ACP Agent");
    screen.say("/run echo one");
    screen.until("ACP Agent wants to: Run");
    screen.key("\u{1b}1");
    screen.until("Type a prompt");
    screen.until("2 ? /run echo one");
    assert_eq!(cell(&screen, "? /run").fgcolor(), vt100::Color::Idx(3));
    // The window's title says so, too, to whom it is behind others.
    assert!(screen.title().starts_with("? "), "{}", screen.title());
    screen.key("\u{1b}2");
    screen.until("ACP Agent wants to: Run");
    read_what_is_asked();
    screen.key("n");
    screen.until_gone("wants to");
    screen.until_gone("Esc: cancel");
    screen.key("\u{1b}1");
    screen.until("2 · /run echo one");
}
