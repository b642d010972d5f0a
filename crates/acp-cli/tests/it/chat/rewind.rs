//! Tests of undoing and redoing turns, and of the chat's own slash commands.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A command that changes files in all ways, as the commands of an agent do.
const CHANGES: &str =
    "/run echo new > new.txt; echo changed > notes.txt; rm old.txt; chmod 755 script.sh";

/// Starts a chat in a project with files to change, and waits until a turn has changed them.
fn start_with_changes(project: &TestProject) -> ChatScreen {
    project.allow_commands();
    project.write_file("old.txt", "old\n");
    project.write_file("script.sh", "#!/bin/sh\n");
    let mut screen = start_chat(project, 100, 40);
    screen.send_line(CHANGES);
    screen.wait_for("exited with code 0");
    screen.wait_until_gone("Esc: cancel");
    screen
}

/// Starts a chat with an agent that can copy neither sessions nor parts of them.
fn start_chat_without_copies(project: &TestProject) -> ChatScreen {
    let args = format!("-- {ACP} agent --sessions none");
    let mut screen = start_chat_with_args(project, 100, 40, &args);
    screen.wait_for("Ask");
    screen
}

fn mode(project: &TestProject, name: &str) -> u32 {
    let metadata = std::fs::metadata(project.file(name)).unwrap();
    metadata.permissions().mode() & 0o777
}

fn assert_unchanged(project: &TestProject) {
    assert_eq!(project.read_file("notes.txt"), "first\nsecond\nthird\n");
    assert_eq!(project.read_file("old.txt"), "old\n");
    assert!(!project.file("new.txt").exists());
    assert_eq!(mode(project, "script.sh"), 0o644);
}

fn assert_changed(project: &TestProject) {
    assert_eq!(project.read_file("notes.txt"), "changed\n");
    assert!(!project.file("old.txt").exists());
    assert_eq!(project.read_file("new.txt"), "new\n");
    assert_eq!(mode(project, "script.sh"), 0o755);
}

#[test]
fn files_of_a_turn_are_restored_and_changed_again() {
    let project = TestProject::new();
    let mut screen = start_with_changes(&project);
    assert_changed(&project);
    screen.send_line("/undo");
    screen.wait_for("Undo 1 turn");
    for change in [
        "Files that would change: 4",
        "delete new.txt  +0 -1",
        "change notes.txt  +3 -1",
        "create old.txt  +1 -0",
        "set permissions of script.sh",
        "`/redo` brings back what is replaced",
        "f: files  c: conversation  b: both  d: diff  Esc: close",
    ] {
        screen.wait_for(change);
    }
    // Nothing has happened yet, and the differences can be read before it does.
    assert_changed(&project);
    screen.send_keys("d");
    screen.wait_for("-changed");
    screen.wait_for("+second");
    screen.send_keys("q");
    screen.wait_for("Undo 1 turn");
    screen.send_keys("f");
    screen.wait_for("files restored");
    assert_unchanged(&project);
    screen.send_line("/undo");
    screen.wait_for("nothing to undo");
    screen.send_line("/redo");
    screen.wait_for("Redo 1 turn");
    screen.wait_for("`/undo` brings back what is replaced");
    screen.wait_for("r: redo  d: diff  Esc: close");
    screen.send_keys("r");
    screen.wait_for("redone");
    assert_changed(&project);
    screen.send_line("/redo");
    screen.wait_for("nothing to redo");
    screen.send_line("/undo");
    screen.wait_for("Undo 1 turn");
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("Undo 1 turn");
    assert_changed(&project);
}

#[test]
fn several_turns_are_chosen_from_a_list_with_the_files_of_the_user() {
    let project = TestProject::new();
    let mut screen = start_with_changes(&project);
    screen.send_line("/run echo second > second.txt");
    screen.wait_for("second.txt exited with code 0");
    screen.wait_until_gone("Esc: cancel");
    // The user has saved a file since.
    project.write_file("mine.txt", "mine\n");
    screen.send_keys(ESCAPE);
    screen.settle();
    screen.send_keys(ESCAPE);
    screen.wait_for("Go back to before a prompt");
    screen.wait_for("› /run echo second > second.txt");
    screen.send_keys(DOWN);
    screen.send_keys(ENTER);
    screen.wait_for("Undo 2 turns");
    screen.wait_for("delete mine.txt");
    screen.wait_for("delete second.txt");
    screen.send_keys("f");
    screen.wait_for("files restored");
    assert_unchanged(&project);
    assert!(!project.file("second.txt").exists());
    screen.send_line("/redo");
    screen.wait_for("Redo 2 turns");
    screen.send_keys("r");
    screen.wait_for("redone");
    assert_changed(&project);
    assert_eq!(project.read_file("second.txt"), "second\n");
    assert_eq!(project.read_file("mine.txt"), "mine\n");
}

#[test]
fn what_changed_after_it_was_shown_is_shown_before_it_is_undone() {
    let project = TestProject::new();
    let mut screen = start_with_changes(&project);
    screen.send_line("/undo");
    screen.wait_for("Files that would change: 4");
    project.write_file("late.txt", "late\n");
    screen.send_keys("f");
    screen.wait_for("delete late.txt");
    screen.wait_for("files have changed in the meantime; nothing was restored");
    assert_changed(&project);
    screen.send_keys("f");
    screen.wait_until_gone("Undo 1 turn");
    screen.wait_for("files restored");
    assert_unchanged(&project);
    assert!(!project.file("late.txt").exists());
}

#[test]
fn a_conversation_is_taken_back_and_the_next_prompt_gets_what_came_before() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat_without_copies(&project);
    screen.send_line("/run echo the first turn");
    screen.wait_for("the first turn exited with code 0");
    screen.wait_until_gone("Esc: cancel");
    screen.send_line("/run echo the second turn > notes.txt");
    screen.wait_for("notes.txt exited with code 0");
    screen.wait_until_gone("Esc: cancel");
    screen.send_line("/undo");
    screen.wait_for("c and b continue the conversation in a new session");
    screen.send_keys("b");
    screen.wait_for("files restored; conversation taken back;");
    screen.wait_for("the prompt can be edited and sent again");
    screen.wait_for("│/run echo the second turn > notes.txt");
    screen.wait_for("the conversation so far goes with it (1 KB)");
    screen.send_keys(CLEAR_LINE);
    screen.wait_until_gone("the second turn");
    assert_eq!(project.read_file("notes.txt"), "first\nsecond\nthird\n");
    // What goes with the next prompt is said before it is sent, and shown when it was.
    screen.wait_for("Type a prompt; the conversation so far goes with it (1 KB)");
    screen.send_line("/run echo the third turn");
    screen.wait_for("conversation.md");
    screen.wait_for("the third turn exited with code 0");
    screen.wait_until_gone("Esc: cancel");
    // The turn begins the conversation of its session, so taking it back leaves nothing to send.
    screen.send_line("/redo");
    screen.wait_for("nothing to redo");
}

#[test]
fn a_conversation_that_was_left_comes_back() {
    let project = TestProject::new();
    let mut screen = start_with_changes(&project);
    screen.send_line("/undo");
    screen.wait_for("Undo 1 turn");
    screen.send_keys("c");
    screen.wait_for("conversation taken back; the prompt can be edited and sent again");
    screen.wait_until_gone("▌ /run");
    screen.wait_for("│/run echo new > new.txt");
    screen.send_keys(CLEAR_LINE);
    screen.wait_for("Type a prompt");
    assert_changed(&project);
    screen.send_line("/redo");
    screen.wait_for("The conversation that was left is shown again");
    screen.send_keys("r");
    screen.wait_for("echo new > new.txt");
    // It goes on as if nothing had happened.
    screen.send_line("/run echo goes on");
    screen.wait_for("goes on exited with code 0");
}

#[test]
fn a_conversation_is_taken_back_step_by_step() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat_without_copies(&project);
    for turn in ["first", "second", "third"] {
        screen.send_line(&format!("/run echo the {turn} turn"));
        screen.wait_for(&format!("the {turn} turn exited with code 0"));
        screen.wait_until_gone("Esc: cancel");
    }
    let undo = |screen: &mut ChatScreen| {
        screen.send_line("/undo");
        screen.wait_for("Undo 1 turn");
        screen.send_keys("c");
        screen.wait_until_gone("Undo 1 turn");
        screen.send_keys(CLEAR_LINE);
    };
    undo(&mut screen);
    screen.wait_for("the conversation so far goes with it (1 KB)");
    // The session is new and empty by now. What came before the second turn is still known.
    undo(&mut screen);
    screen.wait_for("the conversation so far goes with it (1 KB)");
    screen.send_line("/run echo the next turn");
    screen.wait_for("conversation.md");
    screen.wait_for("the next turn exited with code 0");
    screen.wait_until_gone("Esc: cancel");
    // Taking back the first turn of that session does not lose what it began with.
    undo(&mut screen);
    screen.wait_for("the conversation so far goes with it (1 KB)");
    undo(&mut screen);
    screen.wait_until_gone("the conversation so far goes with it");
    screen.wait_for("Type a prompt");
}

#[test]
fn files_are_restored_only_when_all_changes_were_shown() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/run for i in $(seq 60); do echo > file-$i; done");
    screen.wait_for("done exited with code 0");
    screen.wait_until_gone("Esc: cancel");
    screen.send_line("/undo");
    screen.wait_for("Files that would change: 60");
    screen.send_keys("f");
    screen.wait_for("read to the end first: PgDn or End");
    assert!(project.file("file-1").exists());
    screen.send_keys("\u{1b}[F");
    screen.wait_for("delete file-9");
    screen.send_keys("f");
    screen.wait_for("files restored");
    assert!(!project.file("file-1").exists());
}

#[test]
fn nothing_is_undone_while_an_agent_works() {
    let project = TestProject::new();
    let mut screen = start_with_changes(&project);
    screen.send_line("/run while ! test -e go; do sleep 0.01; done");
    screen.wait_for("running: Run");
    screen.send_line("/undo");
    screen.wait_for("an agent is working; cancel its turn first");
    project.write_file("go", "");
    screen.wait_until_gone("running: Run");
}

#[test]
fn snapshots_can_be_turned_off() {
    let project = TestProject::new();
    project.write_config("config.toml", "[chat]\nrewind = false\n");
    let mut screen = start_with_changes(&project);
    screen.send_line("/undo");
    screen.wait_for(
        "Files cannot be restored: snapshots are turned off (`chat.rewind` in config.toml)",
    );
    screen.wait_for("c: conversation  Esc: close");
    screen.send_keys("f");
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("Undo 1 turn");
    assert_changed(&project);
    let store = project
        .installed_agents_directory()
        .with_file_name("rewind");
    assert!(!store.exists());
}

#[test]
fn commands_of_the_chat_are_not_sent_to_the_agent() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 100, 40);
    // The agent has a command of this name, which comes first.
    screen.send_line("/help");
    screen.wait_for("These commands are available");
    screen.send_line("/acp:help");
    screen.wait_for("Switch between conversation and prompt");
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("Switch between conversation and prompt");
    screen.send_keys("/und");
    screen.wait_for("/undo ");
    screen.wait_for("Undo the last turn");
    screen.send_keys("\u{15}");
    screen.send_line("/acp:log");
    screen.wait_for("the agent has no log output");
    screen.send_line("/quit");
    let (code, _) = screen.wait_for_exit();
    assert_eq!(code, Some(0));
}
