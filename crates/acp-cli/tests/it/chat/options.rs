//! Modes and config options, by their keys and from lists.

use super::*;

#[test]
fn the_mode_is_changed_by_a_key_and_from_a_list() {
    let project = TestProject::new();
    let mut screen = chat(&project, 80, 24);
    screen.key(SHIFT_TAB);
    screen.until(" Architect");
    // From the list, found by typing.
    screen.key("\u{1b}m");
    screen.until("╭ Mode");
    screen.key("code");
    screen.until("› Code");
    screen.key(ENTER);
    screen.until_gone("╭ Mode");
    screen.until_it("Code in the last line", |text| {
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with(" Code"))
    });
}

/// What the line about the session says.
fn session_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

#[test]
fn a_config_option_is_changed_by_its_key_and_from_the_list_of_all() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = with_player(&project, columns, rows, "--options");
        screen.until_it("the options", |text| {
            session_line(text).starts_with(" Write · Swift 3 · Some")
        });
        // The model has a key of its own.
        screen.key("\u{1b}p");
        screen.until("╭ Model");
        is_golden(&mut screen, &project, &format!("models-{columns}x{rows}"));
        screen.key(DOWN);
        screen.key(DOWN);
        screen.until("› Deep 9");
        screen.key(ENTER);
        screen.until_it("the model", |text| {
            session_line(text).starts_with(" Write · Deep 9 · Some")
        });
        until_heard(
            &project,
            &serde_json::json!({"option": "model", "value": "deep"}),
        );
        // All of them, as they are set.
        screen.key("\u{1b}o");
        screen.until("╭ Options");
        is_golden(&mut screen, &project, &format!("options-{columns}x{rows}"));
        screen.key("web");
        screen.until("› Search the web");
        screen.key(ENTER);
        screen.until("╭ Search the web");
        screen.key(UP);
        screen.until("› on");
        screen.key(ENTER);
        screen.until_gone("╭ Search the web");
        until_heard(
            &project,
            &serde_json::json!({"option": "web", "value": true}),
        );
        screen.key("\u{1b}o");
        screen.until("Search the web  on");
    }
}

#[test]
fn values_stand_in_the_agents_order_with_what_they_mean() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 80, 24, "--options");
    screen.key("\u{1b}m");
    screen.until("Guide  says how");
    let rows = [
        "Write  changes files",
        "Look   reads only",
        "Guide  says how",
    ]
    .map(|text| find(&screen, text).0);
    assert!(rows[0] < rows[1] && rows[1] < rows[2], "{}", screen.text());
    screen.until("● Write");
    screen.key(ESCAPE);
    screen.until_gone("╭ Mode");
    screen.key("\u{1b}o");
    screen.until("A color         Red");
    let names = ["Mode", "Model", "Effort", "Search the web", "A color"];
    let rows = names.map(|name| find(&screen, &format!(" {name}  ")).0);
    assert!(rows.is_sorted(), "{}", screen.text());
}

#[test]
fn what_an_agent_does_not_have_is_said() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 80, 24, "");
    screen.key("\u{1b}p");
    screen.until("this agent has no model");
    screen.key(SHIFT_TAB);
    screen.until("this agent has no modes");
    screen.key("\u{1b}o");
    screen.until("this session has no options");
    screen.key("\u{f}");
    screen.until("this agent cannot list sessions");
}
