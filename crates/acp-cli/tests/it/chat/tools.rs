//! Tool calls as cards, and what stands beside the conversation.

use serde_json::json;
use vt100::Color;

use super::*;

fn cards(project: &TestProject) -> serde_json::Value {
    let path = |name: &str| project.file(name).display().to_string();
    json!([
        says("I look for it first."),
        {"update": {"sessionUpdate": "plan", "entries": [
            {"content": "Find the slow loop", "priority": "high", "status": "completed"},
            {"content": "Read each line once", "priority": "high", "status": "in_progress"},
            {"content": "Measure again", "priority": "medium", "status": "pending"}]}},
        tool_call(json!({"toolCallId": "1", "title": "Search `read_line`", "kind": "search", "status": "completed",
            "rawInput": {"pattern": "read_line"}, "rawOutput": {"found": 3},
            "locations": [{"path": path("src/lines.rs"), "line": 12}]})),
        tool_call(json!({"toolCallId": "2", "title": "Fetch https://example.org/notes", "kind": "fetch", "status": "failed",
            "content": [{"type": "content", "content": {"type": "text", "text": "404: there is no such page"}}]})),
        tool_call(json!({"toolCallId": "3", "title": "Edit `src/lines.rs`", "kind": "edit", "status": "completed",
            "content": [{"type": "diff", "path": path("src/lines.rs"),
                "oldText": "fn lines(text: &str) -> usize {\n    let n = count(text);\n    split(text, n)\n}\n",
                "newText": "fn lines(text: &str) -> usize {\n    split(text)\n}\n"}]})),
        tool_call(json!({"toolCallId": "4", "title": "Run `cargo bench`", "kind": "execute", "status": "in_progress"})),
        tool_call(json!({"toolCallId": "5", "title": "Delete `old.txt`", "kind": "delete", "status": "pending"})),
        {"update": {"sessionUpdate": "usage_update", "used": 53_000, "size": 200_000,
            "cost": {"amount": 0.0453, "currency": "USD"}}},
        waits("go"),
        tool_call(json!({"toolCallId": "4", "status": "completed"})),
        tool_call(json!({"toolCallId": "5", "status": "failed"})),
        {"update": {"sessionUpdate": "usage_update", "used": 186_000, "size": 200_000}},
        says("It is done."),
    ])
}

#[test]
fn cards_and_the_plan_say_how_far_the_agent_is() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        hello(&project);
        let mut screen = with_player(&project, columns, rows, "");
        play(&project, &mut screen, &cards(&project));
        screen.until("○ ⌫ Delete old.txt");
        screen.until("running: ");
        screen.until("53k of 200k (26 %)");
        is_golden(&mut screen, &project, &format!("cards-{columns}x{rows}"));
        project.write("go", "");
        screen.until("It is done.");
        screen.until("✓ $ Run cargo bench");
        screen.until("✗ ⌫ Delete old.txt");
    }
}

#[test]
fn states_of_a_tool_call_have_their_colors() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = with_player(&project, 100, 40, "");
    play(&project, &mut screen, &cards(&project));
    screen.until("○ ⌫ Delete old.txt");
    assert_eq!(cell(&screen, "✓ ⌕").fgcolor(), Color::Idx(2));
    assert_eq!(cell(&screen, "✗ ↓").fgcolor(), Color::Idx(1));
    assert_eq!(cell(&screen, "404: there").fgcolor(), Color::Idx(1));
    assert!(cell(&screen, "○ ⌫").dim());
    // What is between backquotes in a title is code, without them.
    assert_eq!(cell(&screen, "cargo bench").fgcolor(), Color::Idx(6));
    let (row, column) = find(&screen, " $ Run");
    let running = screen.picture().cell(row, column - 1).unwrap();
    assert_eq!(running.fgcolor(), Color::Idx(6));
    // A line that goes and one that comes differ in what is behind them.
    let gone = cell(&screen, "let n = count").bgcolor();
    let (row, column) = find(&screen, "split(text)");
    let came = screen.picture().cell(row, column).unwrap().bgcolor();
    assert!(
        matches!((gone, came), (Color::Rgb(r, ..), Color::Rgb(_, g, _)) if r > 50 && g > 40),
        "{gone:?} {came:?}"
    );
    // What is under way in the plan stands out.
    assert_eq!(cell(&screen, "▸ Read each line").fgcolor(), Color::Idx(6));
    assert_eq!(cell(&screen, "✓ Find the slow").fgcolor(), Color::Idx(2));
    assert!(cell(&screen, "Measure again").dim());
    project.write("go", "");
    screen.until("It is done.");
    // A context that is nearly full is a warning.
    screen.until("186k of 200k (93 %)");
    assert_eq!(cell(&screen, "186k of").fgcolor(), Color::Idx(1));
}

#[test]
fn a_card_shows_where_and_with_what_on_demand() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = with_player(&project, 100, 40, "");
    play(&project, &mut screen, &cards(&project));
    project.write("go", "");
    screen.until("It is done.");
    screen.until_gone("Esc: cancel");
    assert!(!screen.text().contains("src/lines.rs:12"));
    screen.key(TAB);
    for _ in 0..5 {
        screen.key(UP);
    }
    screen.key(ENTER);
    screen.until("src/lines.rs:12");
    screen.until("\"pattern\": \"read_line\"");
    screen.until("\"found\": 3");
    assert_eq!(cell(&screen, "src/lines.rs:12").fgcolor(), Color::Idx(4));
    screen.key(ENTER);
    screen.until_gone("src/lines.rs:12");
}

#[test]
fn what_the_agent_has_cost_is_said() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 80, 24, "");
    let steps = json!([{"update": {"sessionUpdate": "usage_update", "used": 900, "size": 1_000_000,
        "cost": {"amount": 1.25, "currency": "EUR"}}}]);
    play(&project, &mut screen, &steps);
    screen.until("900 of 1.0M (0 %) · 1.25 EUR");
}

#[test]
fn the_plan_is_hidden_and_shown_by_a_key() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = with_player(&project, 80, 40, "");
    play(&project, &mut screen, &cards(&project));
    screen.until("▸ Read each line once");
    screen.until("Plan 1/3");
    screen.key("\u{1b}l");
    screen.until_gone("▸ Read each line once");
    screen.key("\u{1b}l");
    screen.until("▸ Read each line once");
}

#[test]
fn diffs_stand_side_by_side_where_there_is_room_or_as_one_likes() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = with_player(&project, 120, 40, "");
    play(&project, &mut screen, &cards(&project));
    screen.until("○ ⌫ Delete old.txt");
    let beside = |text: &str| {
        text.lines()
            .any(|line| line.contains("let n = count") && line.contains("split(text)"))
    };
    screen.until_it("the old beside the new", beside);
    screen.key("\u{1b}d");
    screen.until_it("the old above the new", |text| {
        !beside(text) && text.contains("let n = count")
    });
    screen.key("\u{1b}d");
    screen.until_it("the old beside the new", beside);
}

/// A step in the subagent's session.
fn below(update: serde_json::Value) -> serde_json::Value {
    json!({"in": {"sessionId": "scout", "update": update}})
}

#[test]
fn a_subagent_is_shown_with_the_last_that_it_does_and_opened_with_all() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = with_player(&project, 80, 30, "");
    let mut steps = vec![
        says("I have it looked at."),
        json!({"update": {"sessionUpdate": "subagent_update", "sessionId": "scout", "title": "Look around",
            "state": {"state": "running"}}}),
    ];
    for n in 1..=9 {
        steps.push(below(
            json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{n}"),
            "title": format!("Read page {n}"), "kind": "read", "status": "completed"}),
        ));
    }
    steps.push(below(
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": {"type": "text", "text": "All pages are read."}}),
    ));
    steps.push(waits("go"));
    steps.push(
        json!({"update": {"sessionUpdate": "subagent_update", "sessionId": "scout",
        "state": {"state": "idle", "stopReason": "end_turn"}}}),
    );
    steps.push(says("It was looked at."));
    play(&project, &mut screen, &json!(steps));
    screen.until("Subagent: Look around");
    screen.until("│ All pages are read.");
    screen.until("│ … 4 earlier lines");
    screen.until_gone("Read page 1");
    project.write("go", "");
    screen.until("It was looked at.");
    screen.until("■ Subagent: Look around end turn");
    // All of it is opened.
    screen.key("\u{1b}e");
    screen.until("Read page 1");
    screen.until_gone("earlier lines");
}

#[test]
fn what_a_subagent_asks_is_asked_in_the_tab_of_its_session() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = with_player(&project, 80, 30, "");
    let asks = json!({"toolCall": {"toolCallId": "x", "title": "Sweep the floor", "kind": "other"},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "n", "name": "No", "kind": "reject_once"}]});
    let steps = json!([
        {"update": {"sessionUpdate": "subagent_update", "sessionId": "scout", "title": "Look around"}},
        {"ask_in": ["scout", asks]},
        says("It was allowed."),
    ]);
    play(&project, &mut screen, &steps);
    screen.until("Sweep the floor");
    screen.until("subagent: Look around");
    read_what_is_asked();
    screen.key("y");
    screen.until("It was allowed.");
    until_heard(&project, &json!({"outcome": "selected", "optionId": "y"}));
}
