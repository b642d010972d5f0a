//! Tests of changing modes and config options, with keys and from lists.

use super::*;

#[test]
fn mode_is_changed_by_key_and_from_a_list() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys(SHIFT_TAB);
    screen.wait_for(" Architect");
    // From the list, found by typing.
    screen.send_keys("\u{1b}m");
    screen.wait_for("╭ Mode");
    screen.send_keys("code");
    screen.wait_for("› Code");
    screen.send_keys(ENTER);
    screen.wait_until_gone("╭ Mode");
    screen.wait_for_matching_text("Code in the last line", |text| {
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with(" Code"))
    });
}

/// Returns the text of the session line at the bottom of the screen.
fn session_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

#[test]
fn config_option_is_changed_by_key_and_from_the_option_list() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = start_with_player(&project, columns, rows, "--options");
        screen.wait_for_matching_text("the options", |text| {
            session_line(text).starts_with(" Write · Swift 3 · Some")
        });
        // The model has a key of its own.
        screen.send_keys("\u{1b}p");
        screen.wait_for("╭ Model");
        assert_golden(&mut screen, &project, &format!("models-{columns}x{rows}"));
        screen.send_keys(DOWN);
        screen.send_keys(DOWN);
        screen.wait_for("› Deep 9");
        screen.send_keys(ENTER);
        screen.wait_for_matching_text("the model", |text| {
            session_line(text).starts_with(" Write · Deep 9 · Some")
        });
        wait_for_record(
            &project,
            &serde_json::json!({"option": "model", "value": "deep"}),
        );
        // All of them, as they are set.
        screen.send_keys("\u{1b}o");
        screen.wait_for("╭ Options");
        assert_golden(&mut screen, &project, &format!("options-{columns}x{rows}"));
        screen.send_keys("web");
        screen.wait_for("› Search the web");
        screen.send_keys(ENTER);
        screen.wait_for("╭ Search the web");
        screen.send_keys(UP);
        screen.wait_for("› on");
        screen.send_keys(ENTER);
        screen.wait_until_gone("╭ Search the web");
        wait_for_record(
            &project,
            &serde_json::json!({"option": "web", "value": true}),
        );
        screen.send_keys("\u{1b}o");
        screen.wait_for("Search the web  on");
    }
}

#[test]
fn option_values_are_listed_in_the_agent_order_with_descriptions() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "--options");
    screen.send_keys("\u{1b}m");
    screen.wait_for("Guide  says how");
    let rows = [
        "Write  changes files",
        "Look   reads only",
        "Guide  says how",
    ]
    .map(|text| find_position(&screen, text).0);
    assert!(rows[0] < rows[1] && rows[1] < rows[2], "{}", screen.text());
    screen.wait_for("● Write");
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("╭ Mode");
    screen.send_keys("\u{1b}o");
    screen.wait_for("A color         Red");
    let names = ["Mode", "Model", "Effort", "Search the web", "A color"];
    let rows = names.map(|name| find_position(&screen, &format!(" {name}  ")).0);
    assert!(rows.is_sorted(), "{}", screen.text());
}

#[test]
fn unsupported_agent_feature_is_reported() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "");
    screen.send_keys("\u{1b}p");
    screen.wait_for("this agent has no model");
    screen.send_keys(SHIFT_TAB);
    screen.wait_for("this agent has no modes");
    screen.send_keys("\u{1b}o");
    screen.wait_for("this session has no options");
    screen.send_keys("\u{f}");
    screen.wait_for("this agent cannot list sessions");
}
