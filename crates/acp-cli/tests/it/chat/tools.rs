//! Tests of tool call cards, and of the information shown around the conversation.

use serde_json::json;
use vt100::Color;

use super::*;

fn tool_card_steps(project: &TestProject) -> serde_json::Value {
    let path = |name: &str| project.file(name).display().to_string();
    json!([
        message_step("I look for it first."),
        {"update": {"sessionUpdate": "plan", "entries": [
            {"content": "Find the slow loop", "priority": "high", "status": "completed"},
            {"content": "Read each line once", "priority": "high", "status": "in_progress"},
            {"content": "Measure again", "priority": "medium", "status": "pending"}]}},
        tool_call_step(json!({"toolCallId": "1", "title": "Search `read_line`", "kind": "search", "status": "completed",
            "rawInput": {"pattern": "read_line"}, "rawOutput": {"found": 3},
            "locations": [{"path": path("src/lines.rs"), "line": 12}]})),
        tool_call_step(json!({"toolCallId": "2", "title": "Fetch https://example.org/notes", "kind": "fetch", "status": "failed",
            "content": [{"type": "content", "content": {"type": "text", "text": "404: there is no such page"}}]})),
        tool_call_step(json!({"toolCallId": "3", "title": "Edit `src/lines.rs`", "kind": "edit", "status": "completed",
            "content": [{"type": "diff", "path": path("src/lines.rs"),
                "oldText": "fn lines(text: &str) -> usize {\n    let n = count(text);\n    split(text, n)\n}\n",
                "newText": "fn lines(text: &str) -> usize {\n    split(text)\n}\n"}]})),
        tool_call_step(json!({"toolCallId": "4", "title": "Run `cargo bench`", "kind": "execute", "status": "in_progress"})),
        tool_call_step(json!({"toolCallId": "5", "title": "Delete `old.txt`", "kind": "delete", "status": "pending"})),
        {"update": {"sessionUpdate": "usage_update", "used": 53_000, "size": 200_000,
            "cost": {"amount": 0.0453, "currency": "USD"}}},
        wait_step("go"),
        tool_call_step(json!({"toolCallId": "4", "status": "completed"})),
        tool_call_step(json!({"toolCallId": "5", "status": "failed"})),
        {"update": {"sessionUpdate": "usage_update", "used": 186_000, "size": 200_000}},
        message_step("It is done."),
    ])
}

#[test]
fn cards_and_plan_show_the_progress() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        write_hello_file(&project);
        let mut screen = start_with_player(&project, columns, rows, "");
        play_steps(&project, &mut screen, &tool_card_steps(&project));
        screen.wait_for("○ ⌫ Delete old.txt");
        screen.wait_for("running: ");
        screen.wait_for("53k of 200k (26 %)");
        assert_golden(&mut screen, &project, &format!("cards-{columns}x{rows}"));
        project.write_file("go", "");
        screen.wait_for("It is done.");
        screen.wait_for("✓ $ Run cargo bench");
        screen.wait_for("✗ ⌫ Delete old.txt");
    }
}

#[test]
fn tool_call_statuses_have_colors() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 100, 40, "");
    play_steps(&project, &mut screen, &tool_card_steps(&project));
    screen.wait_for("○ ⌫ Delete old.txt");
    assert_color(&screen, "✓ ⌕", ThemeRole::Good);
    assert_color(&screen, "✗ ↓", ThemeRole::Bad);
    assert_color(&screen, "404: there", ThemeRole::Bad);
    assert_color(&screen, "○ ⌫", ThemeRole::Dim);
    // What is between backquotes in a title is code, without them.
    assert_color(&screen, "cargo bench", ThemeRole::Code);
    let (row, column) = find_position(&screen, " $ Run");
    let running = screen.screen().cell(row, column - 1).unwrap();
    assert_eq!(running.fgcolor(), theme_color(ThemeRole::Accent));
    // A line that goes and one that comes differ in what is behind them.
    let gone = find_cell(&screen, "let n = count").bgcolor();
    let (row, column) = find_position(&screen, "split(text)");
    let came = screen.screen().cell(row, column).unwrap().bgcolor();
    assert!(
        matches!((gone, came), (Color::Rgb(r, ..), Color::Rgb(_, g, _)) if r > 50 && g > 40),
        "{gone:?} {came:?}"
    );
    // What is under way in the plan stands out.
    screen.wait_for("Measure again");
    assert_color(&screen, "▸ Read each line", ThemeRole::Accent);
    assert_color(&screen, "✓ Find the slow", ThemeRole::Good);
    assert_color(&screen, "Measure again", ThemeRole::Dim);
    project.write_file("go", "");
    screen.wait_for("It is done.");
    // A context that is nearly full is a warning.
    screen.wait_for("186k of 200k (93 %)");
    assert_color(&screen, "186k of", ThemeRole::Bad);
}

#[test]
fn card_details_are_shown_on_demand() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 100, 40, "");
    play_steps(&project, &mut screen, &tool_card_steps(&project));
    project.write_file("go", "");
    screen.wait_for("It is done.");
    screen.wait_until_gone("Esc: cancel");
    assert!(!screen.text().contains("src/lines.rs:12"));
    screen.send_keys(TAB);
    for _ in 0..5 {
        screen.send_keys(UP);
    }
    screen.send_keys(ENTER);
    screen.wait_for("src/lines.rs:12");
    screen.wait_for("\"pattern\": \"read_line\"");
    screen.wait_for("\"found\": 3");
    assert_color(&screen, "src/lines.rs:12", ThemeRole::Link);
    screen.send_keys(ENTER);
    screen.wait_until_gone("src/lines.rs:12");
}

#[test]
fn usage_and_cost_are_shown() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "");
    let steps = json!([{"update": {"sessionUpdate": "usage_update", "used": 900, "size": 1_000_000,
        "cost": {"amount": 1.25, "currency": "EUR"}}}]);
    play_steps(&project, &mut screen, &steps);
    screen.wait_for("900 of 1.0M (0 %) · 1.25 EUR");
}

#[test]
fn plan_is_toggled_by_a_key() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 80, 40, "");
    play_steps(&project, &mut screen, &tool_card_steps(&project));
    screen.wait_for("▸ Read each line once");
    screen.wait_for("Plan 1/3");
    screen.send_keys("\u{1b}l");
    screen.wait_until_gone("▸ Read each line once");
    screen.send_keys("\u{1b}l");
    screen.wait_for("▸ Read each line once");
}

#[test]
fn diffs_are_side_by_side_if_wide_enough_or_configured() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 120, 40, "");
    play_steps(&project, &mut screen, &tool_card_steps(&project));
    screen.wait_for("○ ⌫ Delete old.txt");
    let beside = |text: &str| {
        text.lines()
            .any(|line| line.contains("let n = count") && line.contains("split(text)"))
    };
    screen.wait_for_matching_text("the old beside the new", beside);
    screen.send_keys("\u{1b}d");
    screen.wait_for_matching_text("the old above the new", |text| {
        !beside(text) && text.contains("let n = count")
    });
    screen.send_keys("\u{1b}d");
    screen.wait_for_matching_text("the old beside the new", beside);
}

/// Returns a step that sends an update for the subagent's session.
fn subagent_step(update: serde_json::Value) -> serde_json::Value {
    json!({"in": {"sessionId": "scout", "update": update}})
}

#[test]
fn subagent_shows_its_last_activity_and_expands_to_all() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 80, 30, "");
    let mut steps = vec![
        message_step("I have it looked at."),
        json!({"update": {"sessionUpdate": "subagent_update", "sessionId": "scout", "title": "Look around",
            "state": {"state": "running"}}}),
    ];
    for n in 1..=9 {
        steps.push(subagent_step(
            json!({"sessionUpdate": "tool_call", "toolCallId": format!("t{n}"),
            "title": format!("Read page {n}"), "kind": "read", "status": "completed"}),
        ));
    }
    steps.push(subagent_step(
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": {"type": "text", "text": "All pages are read."}}),
    ));
    steps.push(wait_step("go"));
    steps.push(
        json!({"update": {"sessionUpdate": "subagent_update", "sessionId": "scout",
        "state": {"state": "idle", "stopReason": "end_turn"}}}),
    );
    steps.push(message_step("It was looked at."));
    play_steps(&project, &mut screen, &json!(steps));
    screen.wait_for("Subagent: Look around");
    screen.wait_for("│ All pages are read.");
    screen.wait_for("│ … 4 earlier lines");
    screen.wait_until_gone("Read page 1");
    project.write_file("go", "");
    screen.wait_for("It was looked at.");
    screen.wait_for("■ Subagent: Look around done");
    // All of it is opened.
    screen.send_keys("\u{1b}e");
    screen.wait_for("Read page 1");
    screen.wait_until_gone("earlier lines");
}

/// Returns a step with a tool call of a subagent that works in its parent's session, as Claude Agent reports it.
fn nested_call_step(id: &str, parent: &str, title: &str, status: &str) -> serde_json::Value {
    json!({"update": {"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "read", "status": status,
        "_meta": {"claudeCode": {"parentToolUseId": parent, "toolName": "Read"}}}})
}

/// Returns a step with a tool call that starts a subagent.
fn task_step(id: &str, title: &str) -> serde_json::Value {
    json!({"update": {"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "think",
        "status": "in_progress", "_meta": {"claudeCode": {"toolName": "Task"}}}})
}

fn end_step(id: &str) -> serde_json::Value {
    json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}})
}

#[test]
fn work_of_subagents_in_the_same_session_is_nested_under_their_tool_calls() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 80, 40, "");
    let mut steps = vec![
        message_step("I have it looked at."),
        task_step("a", "Look around"),
        task_step("b", "Count files"),
    ];
    // Both work at the same time.
    for n in 1..=9 {
        steps.push(nested_call_step(
            &format!("a{n}"),
            "a",
            &format!("Read page {n}"),
            "completed",
        ));
        if n < 3 {
            let title = format!("List folder {n}");
            steps.push(nested_call_step(
                &format!("b{n}"),
                "b",
                &title,
                "in_progress",
            ));
        }
    }
    steps.extend([
        wait_step("go"),
        end_step("b1"),
        end_step("b2"),
        end_step("b"),
        end_step("a"),
    ]);
    steps.push(message_step("It was looked at."));
    play_steps(&project, &mut screen, &json!(steps));
    screen.wait_for("│ … 3 earlier lines");
    screen.wait_for("List folder 2");
    let lines_of = |text: &str| -> Vec<String> {
        let lines = text.lines().map(|line| line.trim().to_owned());
        lines
            .skip_while(|line| !line.contains("Look around"))
            .take_while(|line| !line.contains("List folder 2"))
            .collect()
    };
    screen.wait_for_matching_text("each below its own", |text| {
        let lines = lines_of(text);
        let at = |what: &str| lines.iter().position(|line| line.contains(what));
        let order = ["Read page 4", "Read page 9", "Count files", "List folder 1"].map(at);
        order.iter().all(Option::is_some) && order.is_sorted()
    });
    project.write_file("go", "");
    screen.wait_for("It was looked at.");
    // The selection moves from one task to the other, and expands one of them.
    screen.send_keys(TAB);
    screen.send_keys("k");
    screen.send_keys("k");
    screen.send_keys("\r");
    screen.wait_for("Read page 1");
    // What is collapsed is found.
    screen.send_keys("\r");
    screen.wait_until_gone("Read page 1");
    screen.send_keys("/");
    screen.wait_for("Search conversation");
    screen.send_line("page 2");
    screen.wait_for("│ ✓ ▤ Read page 2");
}

#[test]
fn question_about_a_nested_call_names_the_subagent() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 80, 30, "");
    let asks = json!({"toolCall": {"toolCallId": "a1"},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "n", "name": "No", "kind": "reject_once"}]});
    let steps = json!([
        task_step("a", "Look around"),
        nested_call_step("a1", "a", "Sweep the floor", "pending"),
        {"ask": asks},
        message_step("It was allowed."),
    ]);
    play_steps(&project, &mut screen, &steps);
    screen.wait_for("subagent: Look around");
    screen.wait_for("Sweep the floor");
    wait_until_question_accepts_keys();
    screen.send_keys("y");
    screen.wait_for("It was allowed.");
    wait_for_record(&project, &json!({"outcome": "selected", "optionId": "y"}));
}

#[test]
fn question_of_a_subagent_is_shown_in_the_tab_of_its_session() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_with_player(&project, 80, 30, "");
    let asks = json!({"toolCall": {"toolCallId": "x", "title": "Sweep the floor", "kind": "other"},
        "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "n", "name": "No", "kind": "reject_once"}]});
    let steps = json!([
        {"update": {"sessionUpdate": "subagent_update", "sessionId": "scout", "title": "Look around"}},
        {"ask_in": ["scout", asks]},
        message_step("It was allowed."),
    ]);
    play_steps(&project, &mut screen, &steps);
    screen.wait_for("Sweep the floor");
    screen.wait_for("subagent: Look around");
    wait_until_question_accepts_keys();
    screen.send_keys("y");
    screen.wait_for("It was allowed.");
    wait_for_record(&project, &json!({"outcome": "selected", "optionId": "y"}));
}

#[test]
fn text_is_found_in_the_conversation_and_in_collapsed_output() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat(&project, 80, 30);
    for n in 1..4 {
        // The output is not in the prompt.
        screen.send_line(&format!(
            "/run for i in 1 2 3; do echo needle-$(({n} * 7))-$i; done; seq 9"
        ));
        screen.wait_for(&format!("({n} * 7))-$i; done; seq 9 exited with code 0"));
        screen.wait_until_gone("Esc: cancel");
    }
    screen.send_keys(TAB);
    screen.send_keys("g/");
    screen.wait_for("Search conversation");
    screen.send_line("NEEDLE-14");
    screen.wait_for("needle-14-3");
    // The box is empty, and recalls the last text.
    screen.send_keys("/");
    screen.wait_for("Search conversation");
    screen.send_keys(UP);
    screen.wait_for("│NEEDLE-14 ");
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("Search conversation");
    screen.send_keys("/");
    screen.wait_for("Search conversation");
    screen.send_line("needle-7-");
    screen.wait_for("search continued at the other end");
    screen.wait_for("needle-7-2");
    screen.send_keys("/");
    screen.wait_for("Search conversation");
    screen.send_line("haystack");
    screen.wait_for("not found: haystack");
}

#[test]
fn search_scrolls_to_the_line_in_a_long_answer() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "");
    let lines: Vec<String> = (1..200).map(|n| format!("- entry number {n}")).collect();
    let steps = json!([message_step(&lines.join("\n"))]);
    play_steps(&project, &mut screen, &steps);
    screen.wait_for("entry number 199");
    screen.wait_until_gone("Esc: cancel");
    screen.send_keys(TAB);
    screen.send_keys("/");
    screen.wait_for("Search conversation");
    screen.send_line("NUMBER 87");
    screen.wait_for("entry number 87");
    assert!(!screen.text().contains("number 199"), "{}", screen.text());
    assert!(!screen.text().contains("number 1\n"), "{}", screen.text());
}
