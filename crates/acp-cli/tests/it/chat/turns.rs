//! Tests of turns: prompts, permission requests, cancellation and queued prompts.

use super::*;

#[test]
fn edit_is_approved_with_its_diff_and_applied() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        write_hello_file(&project);
        let mut screen = start_chat(&project, columns, rows);
        assert_golden(&mut screen, &project, &format!("welcome-{columns}x{rows}"));
        for line in ["/edit src/main.rs", "hi", "==="] {
            screen.send_keys(line);
            screen.send_keys(NEW_LINE);
        }
        screen.send_line("hello");
        screen.wait_for("ACP Agent wants to: Edit");
        screen.wait_for("1 y  Allow");
        assert_golden(
            &mut screen,
            &project,
            &format!("permission-{columns}x{rows}"),
        );
        // Meant for what was being written: nothing is allowed by it.
        screen.send_keys(ENTER);
        assert!(project.read_file("src/main.rs").contains("\"hi\""));
        // Keys count once nothing has been typed for a moment; one that came too early was written.
        while !project.read_file("src/main.rs").contains("\"hello\"") {
            std::thread::sleep(std::time::Duration::from_millis(400));
            screen.send_keys("y");
        }
        screen.wait_for("Edited src/main.rs at line 2.");
        screen.wait_until_gone("Esc: cancel");
        screen.send_keys("\u{15}");
        screen.wait_for("Type a prompt");
        assert_golden(&mut screen, &project, &format!("edited-{columns}x{rows}"));
        screen.send_keys("\u{11}");
        let (code, _) = screen.wait_for_exit();
        assert_eq!(code, Some(0));
    }
}

#[test]
fn command_output_is_shown_live_with_colors() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat(&project, 80, 24);
    let command =
        r"printf '\033[31mred\033[0m line\n'; while ! test -e go; do sleep 0.01; done; echo over";
    screen.send_line(&format!("/run {command}"));
    screen.wait_for("red line");
    screen.wait_for("running: Run");
    let (row, column) = find_position(&screen, "red line");
    let cell = screen.screen().cell(row, column).unwrap();
    assert_eq!(cell.fgcolor(), vt100::Color::Idx(1), "{}", screen.text());
    project.write_file("go", "");
    screen.wait_for("over");
    screen.wait_for("exited with code 0");
    screen.wait_until_gone("running: Run");
}

/// Types a prompt and queues it. Enter would send it to the running turn, because the bundled agent can be steered.
fn queue_line(screen: &mut ChatScreen, line: &str) {
    screen.send_keys(line);
    screen.send_keys(ALT_Q);
}

#[test]
fn escape_cancels_and_holds_queued_prompts() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/run echo begun; sleep 1000");
    screen.wait_for("begun");
    queue_line(&mut screen, "/run echo the second");
    screen.wait_for("↳ /run echo the second");
    // It is taken back, changed, and queued again.
    screen.send_keys(UP);
    screen.wait_until_gone("↳ /run echo the second");
    queue_line(&mut screen, " one");
    screen.wait_for("↳ /run echo the second one");
    screen.send_keys(ESCAPE);
    screen.wait_for(" cancelled");
    // Whoever cancels may want to say something else first.
    screen.wait_for("↳ /run echo the second one");
    screen.wait_for("1 prompt queued: Enter: send  ↑: edit");
    screen.send_keys(UP);
    screen.wait_until_gone("↳");
    screen.wait_until_gone("1 prompt queued");
    screen.send_keys(ENTER);
    screen.wait_for("exited with code 0");
}

#[test]
fn enter_sends_prompts_held_after_a_cancel() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/run echo begun; sleep 1000");
    screen.wait_for("begun");
    queue_line(&mut screen, "/run echo the second");
    queue_line(&mut screen, "/run echo the third");
    screen.wait_for("↳ /run echo the third");
    screen.send_keys(ESCAPE);
    screen.wait_for("cancelled 2 prompts queued: Enter: send");
    screen.send_keys(ENTER);
    screen.wait_until_gone("↳");
    screen.wait_for("echo the second exited with code 0");
    screen.wait_for("echo the third exited with code 0");
}

#[test]
fn queued_prompt_is_sent_when_its_turn_comes() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/run while ! test -e go; do sleep 0.01; done");
    screen.wait_for("running: Run");
    queue_line(&mut screen, "/run echo a queued word");
    screen.wait_for("↳");
    project.write_file("go", "");
    screen.wait_until_gone("↳");
    screen.wait_for("echo a queued word exited with code 0");
}

#[test]
fn always_option_states_its_effect_and_is_remembered() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    let edit = |screen: &mut ChatScreen, old: &str, new: &str| {
        for line in ["/edit src/main.rs", old, "==="] {
            screen.send_keys(line);
            screen.send_keys(NEW_LINE);
        }
        screen.send_line(new);
    };
    edit(&mut screen, "hi", "hello");
    screen.wait_for("2 a  Always allow edits to project files – allow in this project, until you");
    screen.wait_for("revoke it: any edit of src/main.rs");
    wait_until_question_accepts_keys();
    screen.send_keys("a");
    // It lasts, so it is confirmed.
    screen.wait_for("›2 a  Always allow edits");
    screen.wait_for("enter confirm");
    assert!(!project.read_file("src/main.rs").contains("hello"));
    screen.send_keys(ENTER);
    screen.wait_for("Edited src/main.rs at line 2.");
    screen.wait_until_gone("Esc: cancel");
    edit(&mut screen, "hello", "goodbye");
    screen.wait_for("println!(\"goodbye\")");
    screen.wait_until_gone("Esc: cancel");
    assert!(project.read_file("src/main.rs").contains("goodbye"));
    assert!(!screen.text().contains("wants to"));
    drop(screen);
    // It is there for whoever comes later, and to be taken back.
    let listed = project.run_shell("acp permissions").expect_code(0);
    assert!(listed.stdout.contains("src/main.rs"), "{}", listed.stdout);
}

/// The options of a request to send a letter.
fn letter_options() -> serde_json::Value {
    serde_json::json!([
        {"optionId": "yes", "name": "Send", "kind": "allow_once"},
        {"optionId": "ever", "name": "Send all letters", "kind": "allow_always"},
        {"optionId": "no", "name": "Keep", "kind": "reject_once"},
    ])
}

#[test]
fn option_is_chosen_by_arrow_keys_and_tool_input_shown() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "");
    let asks = serde_json::json!([{"ask": {
        "toolCall": {"toolCallId": "1", "title": "Send the letter", "kind": "other", "rawInput": {"to": "all@example.org"}},
        "options": letter_options()}}, message_step("So be it.")]);
    play_steps(&project, &mut screen, &asks);
    screen.wait_for("Player wants to: Send the letter");
    // What the tool is given is shown unasked.
    screen.wait_for("to: all@example.org");
    screen.wait_for("2 a  Send all letters – ");
    wait_until_question_accepts_keys();
    screen.send_keys("i");
    screen.wait_for("\"to\": \"all@example.org\"");
    screen.send_keys(UP);
    screen.send_keys(ENTER);
    screen.wait_for("So be it.");
    assert_eq!(
        read_record(&project),
        serde_json::json!({"outcome": "selected", "optionId": "no"})
    );
}

#[test]
fn word_typed_into_a_question_goes_to_the_prompt() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 80, 24, "--options");
    let asks = serde_json::json!([{"ask": {
        "toolCall": {"toolCallId": "1", "title": "Send the letter", "kind": "other"},
        "options": letter_options()}}, message_step("So be it.")]);
    play_steps(&project, &mut screen, &asks);
    screen.wait_for("Player wants to: Send the letter");
    wait_until_question_accepts_keys();
    screen.send_keys("maybe any");
    screen.wait_for("key ignored because it came too soon");
    screen.wait_for("Player wants to: Send the letter");
    // This key is not for the question: it changes the mode, as everywhere.
    wait_until_question_accepts_keys();
    screen.send_keys(SHIFT_TAB);
    screen.wait_for_matching_text("the next mode", |text| {
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with(" Look"))
    });
    wait_until_question_accepts_keys();
    screen.send_keys("n");
    screen.wait_for("So be it.");
    screen.wait_for("│maybe any");
}

#[test]
fn running_command_keeps_the_viewed_scroll_position() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        project.allow_commands();
        project.write_file(
            "build.sh",
            "printf '\\033[1;32m   Compiling\\033[0m parser v0.3.1\\n\\033[1;32m   Compiling\\033[0m tool v1.0.0\\n'\n\
             printf '\\033[1;33mwarning\\033[0m: unused variable: `n`\\n  \\033[1;34m--> \\033[0msrc/lines.rs:2:9\\n'\n\
             while ! test -e go; do sleep 0.01; done\n",
        );
        let mut screen = start_chat(&project, columns, rows);
        screen.send_line("/run sh build.sh");
        screen.wait_for("src/lines.rs:2:9");
        screen.wait_for("running: Run");
        assert_golden(&mut screen, &project, &format!("running-{columns}x{rows}"));
        project.write_file("go", "");
        screen.wait_for("exited with code 0");
    }
}

#[test]
fn initial_prompt_is_taken_from_the_command_line() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat_with_args(&project, 80, 24, "/read src/main.rs");
    screen.wait_for("▌ /read src/main.rs");
    screen.wait_for("println!(\"hi\");");
    screen.wait_until_gone("Esc: cancel");
}

#[test]
fn default_of_the_user_rules_applies_without_a_policy() {
    let project = TestProject::new();
    project.write_config("permissions.toml", "default = \"allow\"\n");
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/run touch made");
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
    let mut screen = start_chat_with_args(&project, 80, 24, "--allow ask");
    screen.wait_for("Ask");
    screen.send_line("/run touch more");
    screen.wait_for("ACP Agent wants to: Run");
    assert!(!project.file("more").exists());
}

#[test]
fn commands_that_begin_the_same_are_allowed_with_p() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/run git status");
    screen.wait_for("p  Always allow `git status *` – allow in this project");
    screen.wait_for("with any arguments");
    wait_until_question_accepts_keys();
    screen.send_keys("p");
    screen.wait_for("enter confirm");
    screen.send_keys(ENTER);
    screen.wait_until_gone("Esc: cancel");
    screen.send_line("/run git status --short");
    screen.wait_for("$ Run git status --short");
    screen.wait_until_gone("Esc: cancel");
    assert!(!screen.text().contains("wants to"), "{}", screen.text());
}
