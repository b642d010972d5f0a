//! Turns: what is asked, seen, cancelled and queued.

use super::*;

#[test]
fn a_change_is_asked_for_with_its_diff_and_made() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        hello(&project);
        let mut screen = chat(&project, columns, rows);
        is_golden(&mut screen, &project, &format!("welcome-{columns}x{rows}"));
        for line in ["/edit src/main.rs", "hi", "==="] {
            screen.key(line);
            screen.key(NEW_LINE);
        }
        screen.say("hello");
        screen.until("ACP Agent wants to: Edit");
        screen.until("1 y  Allow");
        is_golden(
            &mut screen,
            &project,
            &format!("permission-{columns}x{rows}"),
        );
        // Meant for what was being written: nothing is allowed by it.
        screen.key(ENTER);
        assert!(project.read("src/main.rs").contains("\"hi\""));
        // Keys count once nothing has been typed for a moment; one that came too early was written.
        while !project.read("src/main.rs").contains("\"hello\"") {
            std::thread::sleep(std::time::Duration::from_millis(400));
            screen.key("y");
        }
        screen.until("Edited src/main.rs at line 2.");
        screen.until_gone("Esc: cancel");
        screen.key("\u{15}");
        screen.until("Type a prompt");
        is_golden(&mut screen, &project, &format!("edited-{columns}x{rows}"));
        screen.key("\u{11}");
        let (code, _) = screen.end();
        assert_eq!(code, Some(0));
    }
}

#[test]
fn a_command_is_seen_while_it_runs_with_its_colors() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = chat(&project, 80, 24);
    let command =
        r"printf '\033[31mred\033[0m line\n'; while ! test -e go; do sleep 0.01; done; echo over";
    screen.say(&format!("/run {command}"));
    screen.until("red line");
    screen.until("running: Run");
    let (row, column) = find(&screen, "red line");
    let cell = screen.picture().cell(row, column).unwrap();
    assert_eq!(cell.fgcolor(), vt100::Color::Idx(1), "{}", screen.text());
    project.write("go", "");
    screen.until("over");
    screen.until("exited with code 0");
    screen.until_gone("running: Run");
}

#[test]
fn escape_cancels_and_what_was_queued_waits() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = chat(&project, 80, 24);
    screen.say("/run echo begun; sleep 1000");
    screen.until("begun");
    screen.say("/run echo the second");
    screen.until("↳ /run echo the second");
    // It is taken back, changed, and queued again.
    screen.key(UP);
    screen.until_gone("↳ /run echo the second");
    screen.key(" one");
    screen.key(ENTER);
    screen.until("↳ /run echo the second one");
    screen.key(ESCAPE);
    screen.until(" cancelled");
    // Whoever cancels may want to say something else first.
    screen.until("↳ /run echo the second one");
    screen.until("1 prompt queued: Enter: send  ↑: edit");
    screen.key(UP);
    screen.until_gone("↳");
    screen.until_gone("1 prompt queued");
    screen.key(ENTER);
    screen.until("exited with code 0");
}

#[test]
fn what_waits_after_a_cancel_is_sent_by_enter() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = chat(&project, 80, 24);
    screen.say("/run echo begun; sleep 1000");
    screen.until("begun");
    screen.say("/run echo the second");
    screen.say("/run echo the third");
    screen.until("↳ /run echo the third");
    screen.key(ESCAPE);
    screen.until("cancelled 2 prompts queued: Enter: send");
    screen.key(ENTER);
    screen.until_gone("↳");
    screen.until("echo the second exited with code 0");
    screen.until("echo the third exited with code 0");
}

#[test]
fn what_is_queued_is_said_when_its_turn_comes() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = chat(&project, 80, 24);
    screen.say("/run while ! test -e go; do sleep 0.01; done");
    screen.until("running: Run");
    screen.say("/run echo a queued word");
    screen.until("↳");
    project.write("go", "");
    screen.until_gone("↳");
    screen.until("echo a queued word exited with code 0");
}

#[test]
fn always_says_what_it_comes_to_and_is_kept_to() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    let edit = |screen: &mut ChatScreen, old: &str, new: &str| {
        for line in ["/edit src/main.rs", old, "==="] {
            screen.key(line);
            screen.key(NEW_LINE);
        }
        screen.say(new);
    };
    edit(&mut screen, "hi", "hello");
    screen.until("2 a  Always allow edits");
    screen.until("– allow in this");
    screen.until("project, until you revoke it: any edit of src/main.rs");
    read_what_is_asked();
    screen.key("a");
    screen.until("Edited src/main.rs at line 2.");
    screen.until_gone("Esc: cancel");
    edit(&mut screen, "hello", "goodbye");
    screen.until("println!(\"goodbye\")");
    screen.until_gone("Esc: cancel");
    assert!(project.read("src/main.rs").contains("goodbye"));
    assert!(!screen.text().contains("wants to"));
    drop(screen);
    // It is there for whoever comes later, and to be taken back.
    let listed = project.shell("acp permissions").code(0);
    assert!(listed.stdout.contains("src/main.rs"), "{}", listed.stdout);
}

#[test]
fn an_option_is_taken_by_the_arrow_keys_and_shows_what_a_tool_is_given() {
    let project = TestProject::new();
    let mut screen = with_player(&project, 80, 24, "");
    let asks = serde_json::json!([{"ask": {
        "toolCall": {"toolCallId": "1", "title": "Send the letter", "kind": "other", "rawInput": {"to": "all@example.org"}},
        "options": [
            {"optionId": "yes", "name": "Send", "kind": "allow_once"},
            {"optionId": "ever", "name": "Send all letters", "kind": "allow_always"},
            {"optionId": "no", "name": "Keep", "kind": "reject_once"}]}}, says("So be it.")]);
    play(&project, &mut screen, &asks);
    screen.until("Player wants to: Send the letter");
    // What the tool is given is shown unasked.
    screen.until("to: all@example.org");
    screen.until("2 a  Send all letters – ");
    read_what_is_asked();
    screen.key("i");
    screen.until("\"to\": \"all@example.org\"");
    screen.key(UP);
    screen.key(ENTER);
    screen.until("So be it.");
    assert_eq!(
        heard(&project),
        serde_json::json!({"outcome": "selected", "optionId": "no"})
    );
}

#[test]
fn a_command_that_runs_is_seen_as_it_was_when_someone_looked() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        project.allow_commands();
        project.write(
            "build.sh",
            "printf '\\033[1;32m   Compiling\\033[0m parser v0.3.1\\n\\033[1;32m   Compiling\\033[0m tool v1.0.0\\n'\n\
             printf '\\033[1;33mwarning\\033[0m: unused variable: `n`\\n  \\033[1;34m--> \\033[0msrc/lines.rs:2:9\\n'\n\
             while ! test -e go; do sleep 0.01; done\n",
        );
        let mut screen = chat(&project, columns, rows);
        screen.say("/run sh build.sh");
        screen.until("src/lines.rs:2:9");
        screen.until("running: Run");
        is_golden(&mut screen, &project, &format!("running-{columns}x{rows}"));
        project.write("go", "");
        screen.until("exited with code 0");
    }
}

#[test]
fn the_first_prompt_can_come_with_the_command() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = begin(&project, 80, 24, "/read src/main.rs");
    screen.until("▌ /read src/main.rs");
    screen.until("println!(\"hi\");");
    screen.until_gone("Esc: cancel");
}

#[test]
fn the_default_of_the_user_s_rules_applies_where_no_policy_is_given() {
    let project = TestProject::new();
    project.configure("permissions.toml", "default = \"allow\"\n");
    let mut screen = chat(&project, 80, 24);
    screen.say("/run touch made");
    let begun = std::time::Instant::now();
    while !project.file("made").exists() {
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(60),
            "{}",
            screen.text()
        );
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    drop(screen);
    // A policy that is given takes its place.
    let mut screen = begin(&project, 80, 24, "--allow ask");
    screen.until("Ask");
    screen.say("/run touch more");
    screen.until("ACP Agent wants to: Run");
    assert!(!project.file("more").exists());
}
