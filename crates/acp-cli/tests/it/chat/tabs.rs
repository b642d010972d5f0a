//! Tests of several open sessions, with one agent or with several.

use super::*;

#[test]
fn waiting_tab_does_not_block_another() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        write_hello_file(&project);
        let mut screen = start_chat(&project, columns, rows);
        screen.send_line("/run echo one");
        screen.wait_for("ACP Agent wants to: Run");
        screen.send_keys("\u{14}");
        screen.wait_for(" 2 ");
        screen.wait_for("Type a prompt");
        screen.send_line("/read src/main.rs");
        screen.wait_for("println!(\"hi\");");
        screen.wait_until_gone("Esc: cancel");
        assert_golden(&mut screen, &project, &format!("tabs-{columns}x{rows}"));
        screen.send_keys("\u{1b}1");
        screen.wait_for("ACP Agent wants to: Run");
        screen.send_keys(ESCAPE);
        screen.wait_for("cancelled");
    }
}

#[test]
fn two_agents_run_in_two_tabs() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 80, 24, "");
    screen.send_line("first");
    screen.wait_for("heard 1 blocks");
    // The bundled agent is always among them.
    screen.send_keys("\u{1b}a");
    screen.wait_for("╭ Select agent for new session");
    screen.send_keys("acp");
    screen.wait_for("› acp");
    screen.send_keys(ENTER);
    screen.wait_for("ACP Agent");
    screen.wait_for(" Ask");
    run_read_turn(&mut screen);
    screen.send_keys("\u{1b}1");
    screen.wait_for("heard 1 blocks");
    assert!(!screen.text().contains("✓ ▤ Read"));
    screen.send_keys("\u{1b}[1;3C");
    screen.wait_for("✓ ▤ Read src/main.rs");
    screen.send_keys("\u{1b}w");
    screen.wait_until_gone(" 2 ");
    screen.wait_for("heard 1 blocks");
}

#[test]
fn activity_in_another_tab_is_marked_in_the_tab_bar() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("\u{14}");
    screen.wait_for(" 2 · ACP Agent");
    screen.send_line("/run echo one");
    screen.wait_for("ACP Agent wants to: Run");
    screen.send_keys("\u{1b}1");
    screen.wait_for("Type a prompt");
    screen.wait_for("2 ? /run echo one");
    assert_color(&screen, "? /run", ThemeRole::Warn);
    // The window's title says so, too, to whom it is behind others.
    assert!(screen.title().starts_with("? "), "{}", screen.title());
    screen.send_keys("\u{1b}2");
    screen.wait_for("ACP Agent wants to: Run");
    wait_until_question_accepts_keys();
    screen.send_keys("n");
    screen.wait_until_gone("wants to");
    screen.wait_until_gone("Esc: cancel");
    screen.send_keys("\u{1b}1");
    screen.wait_for("2 · /run echo one");
}
