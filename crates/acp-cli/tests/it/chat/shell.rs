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
    while !project.file("inner").exists() {
        std::thread::yield_now();
    }
    let inner: i32 = project
        .read_file("inner")
        .trim()
        .parse()
        .unwrap_or_default();
    screen.send_line("!!echo another");
    screen.wait_for("a command is still running; Esc stops it");
    // The refused command is still in the prompt.
    screen.send_keys("\u{3}");
    screen.wait_until_gone("running your command");
    screen.wait_for("!!echo another");
    if let Some(inner) = rustix::process::Pid::from_raw(inner) {
        wait_until_exited(inner);
    }
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
