//! Commands that the user runs with `!`.

use serde_json::json;

use super::stage::*;
use crate::common::TestProject;

#[test]
fn command_runs_in_the_conversation_and_its_output_goes_with_the_next_prompt() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 90, 30, "");
    screen.send_keys("!echo seen $((40 + 2)); exit 3");
    screen.wait_for("Enter: run the command");
    screen.send_keys("\r");
    screen.wait_for("seen 42");
    screen.wait_for("[output of echo seen $((40 + 2)); exit 3: 1 line]");
    screen.wait_for("the output goes with the next prompt");
    screen.send_line("Why?");
    let text = "I ran this command (exit code 3):\n\n```\n$ echo seen $((40 + 2)); exit 3\nseen 42\n```\n Why?";
    wait_for_record(&project, &json!([{"type": "text", "text": text}]));
    // The conversation shows the label, and what it stands for on demand.
    screen.wait_for("▌ [output of echo seen $((40 + 2)); exit 3: 1 line] Why?");
    screen.wait_until_gone("Esc: cancel");
    assert!(
        !screen.text().contains("I ran this command"),
        "{}",
        screen.text()
    );
    screen.send_keys("\tk\r");
    screen.wait_for("I ran this command (exit code 3):");
    screen.send_keys("\r");
    screen.wait_until_gone("I ran this command");
    screen.wait_for("┃ [output of echo seen $((40 + 2)); exit 3: 1 line] Why?");
}

#[test]
fn several_commands_run_one_after_the_other_and_their_outputs_are_in_order() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 90, 30, "");
    for n in [1, 2] {
        screen.send_line(&format!("!echo number $(({n} * 11))"));
        screen.wait_for(&format!("number {}", n * 11));
        screen.wait_for(&format!("(({n} * 11)): 1 line]"));
    }
    screen.send_line("Add them.");
    let output = |n: u8| {
        format!(
            "I ran this command (exit code 0):\n\n```\n$ echo number $(({n} * 11))\nnumber {}\n```\n ",
            n * 11
        )
    };
    let text = format!("{}{}Add them.", output(1), output(2));
    wait_for_record(&project, &json!([{"type": "text", "text": text}]));
}

#[test]
fn pasted_text_behind_a_label_never_runs() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 90, 30, "");
    let paste = |text: &str| format!("\u{1b}[200~{text}\u{1b}[201~");
    let lines = "touch harm\n".repeat(20);
    // At the beginning, it is a prompt.
    screen.send_keys(&paste(&format!("!{lines}")));
    screen.wait_for("[pasted 20 lines]");
    screen.send_keys("\r");
    let text = format!("!{}", lines.trim_end());
    wait_for_record(&project, &json!([{"type": "text", "text": text}]));
    // In a command, it must be expanded first.
    screen.wait_until_gone("Esc: cancel");
    screen.send_keys("!echo 1;");
    screen.send_keys(&paste(&lines));
    screen.wait_for("!echo 1;[pasted 20 lines]");
    screen.send_keys("\r");
    screen.wait_for("a label hides a part of the command");
    screen.wait_for("!echo 1;[pasted 20 lines]");
    screen.send_keys("\t");
    screen.wait_for("touch harm");
    assert!(!project.file("harm").exists());
}

#[test]
fn output_is_not_sent_if_the_user_does_not_want_it() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 90, 30, "");
    // The output of this one never gets into the prompt.
    screen.send_line("!!echo first $((1 + 1))");
    screen.wait_for("first 2");
    screen.wait_until_gone("running your command");
    screen.send_line("One");
    wait_for_record(&project, &json!([{"type": "text", "text": "One"}]));
    // The label of this one is deleted like a character. What was typed meanwhile stays.
    screen.send_line("!until [ -e go ]; do sleep 0.05; done; echo second $((2 + 2))");
    screen.wait_for("running your command");
    screen.send_keys("Two");
    project.write_file("go", "");
    screen.wait_for("1 line] Two");
    screen.send_keys("\u{1b}[H");
    screen.send_keys("\u{1b}[3~\u{1b}[3~");
    screen.wait_until_gone("[output of");
    screen.send_keys("\r");
    wait_for_record(&project, &json!([{"type": "text", "text": "Two"}]));
}

#[test]
fn escape_stops_a_command_with_everything_it_has_started() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 90, 30, "");
    screen.send_line("!!(sh -c 'echo $$ > inner; sleep 1000') & echo started; wait");
    screen.wait_for("started");
    let inner = loop {
        // The file is empty for a moment.
        let text = std::fs::read_to_string(project.file("inner")).unwrap_or_default();
        if let Some(inner) = text
            .trim()
            .parse()
            .ok()
            .and_then(rustix::process::Pid::from_raw)
        {
            break inner;
        }
        std::thread::yield_now();
    };
    screen.send_line("!!echo another");
    screen.wait_for("a command is still running; Esc stops it");
    // The refused command is still in the prompt.
    screen.send_keys("\u{3}");
    screen.wait_until_gone("running your command");
    screen.wait_for("!!echo another");
    wait_until_exited(inner);
    screen.send_keys("\u{15}");
    screen.send_line("!");
    screen.wait_for("no command; type one after `!`");
}

#[test]
fn a_prompt_can_begin_with_an_exclamation_mark_after_a_space() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 90, 30, "");
    screen.send_line(" !important");
    wait_for_record(&project, &json!([{"type": "text", "text": " !important"}]));
}
