//! Tests of Vim keys in the prompt.

use super::*;

fn start_with_vim(project: &TestProject) -> ChatScreen {
    project.write_config("config.toml", "[chat]\nediting = \"vim\"\n");
    write_hello_file(project);
    let mut screen = start_chat(project, 80, 24);
    screen.wait_for("INSERT");
    screen
}

#[test]
fn prompt_is_edited_with_vim_keys() {
    let project = TestProject::new();
    let mut screen = start_with_vim(&project);
    screen.send_keys("say one two three");
    screen.wait_for("│say one two three");
    screen.send_keys(ESCAPE);
    screen.wait_for("NORMAL");
    // The keys of a command are shown until it is complete.
    screen.send_keys("0w2d");
    screen.wait_for("2d  NORMAL");
    screen.send_keys("w");
    screen.wait_for("│say three");
    screen.send_keys("u");
    screen.wait_for("│say one two three");
    screen.send_keys("\u{12}");
    screen.wait_for("│say three");
    screen.send_keys("$pciwfour");
    screen.wait_for("INSERT");
    screen.wait_for("four");
    // Enter sends in both modes, and the next prompt starts in insert mode.
    screen.send_keys(ESCAPE);
    screen.wait_for("NORMAL");
    screen.send_keys("ccsay done");
    screen.wait_for("│say done");
    screen.send_keys(ESCAPE);
    screen.wait_for("NORMAL");
    screen.send_keys(ENTER);
    screen.wait_for("INSERT");
    screen.wait_for("Type a prompt");
    screen.wait_until_gone("Esc: cancel");
    // `k` recalls the prompt.
    screen.send_keys(ESCAPE);
    screen.wait_for("NORMAL");
    screen.send_keys("k");
    screen.wait_for("│say done");
}

#[test]
fn escape_leaves_insert_mode_before_it_cancels_the_turn() {
    let project = TestProject::new();
    let mut screen = start_with_vim(&project);
    screen.send_line("/run while ! test -e go; do sleep 0.01; done");
    screen.wait_for("1 y  Allow");
    wait_until_question_accepts_keys();
    screen.send_keys("y");
    screen.wait_for("running: Run");
    screen.send_keys("next");
    screen.wait_for("│next");
    screen.send_keys(ESCAPE);
    screen.wait_for("NORMAL");
    assert!(screen.text().contains("running: Run"), "{}", screen.text());
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("running: Run");
    screen.wait_for("cancelled");
}

#[test]
fn label_of_pasted_text_is_one_character() {
    let project = TestProject::new();
    let mut screen = start_with_vim(&project);
    let pasted = "line\r".repeat(30);
    screen.send_keys(&format!("a \u{1b}[200~{pasted}\u{1b}[201~ b"));
    screen.wait_for("lines]");
    screen.send_keys(ESCAPE);
    screen.wait_for("NORMAL");
    screen.send_keys("hhx");
    screen.wait_until_gone("lines]");
    screen.wait_for("│a  b");
    screen.send_keys("P");
    screen.wait_for("lines] b");
}
