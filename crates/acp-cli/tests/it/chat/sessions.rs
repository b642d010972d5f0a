//! Sessions of before: found, loaded, copied, deleted, saved.

use super::*;

#[test]
fn an_old_session_is_loaded_from_the_list() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    read(&mut screen);
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));

    let mut screen = chat(&project, 80, 24);
    screen.key("\u{f}");
    screen.until("╭ Sessions");
    screen.until("› /read src/main.rs");
    screen.key(ENTER);
    screen.until("✓ ▤ Read src/main.rs");
}

#[test]
fn a_chat_in_a_sandbox_keeps_its_sessions() {
    if let Err(error) = acp_host::Sandbox::new([]) {
        eprintln!("skipped: {error}");
        return;
    }
    let project = TestProject::new();
    hello(&project);
    let confined = format!("{ACP} chat --sandbox");
    let mut screen = ChatScreen::start(&project, 80, 24, &confined);
    screen.until("Ask");
    read(&mut screen);
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));

    let mut screen = chat(&project, 80, 24);
    screen.key("\u{f}");
    screen.until("› /read src/main.rs");
}

/// A session of before, which is called as what was said in it.
fn of_before(project: &TestProject, said: &str, until: &str) {
    let mut screen = chat(project, 80, 24);
    screen.say(said);
    screen.until(until);
    screen.until_gone("Esc: cancel");
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));
}

/// A project with two sessions of before.
fn with_two() -> TestProject {
    let project = TestProject::new();
    hello(&project);
    of_before(&project, "/read src/main.rs", "✓ ▤ Read src/main.rs");
    of_before(&project, "/read notes.txt", "✓ ▤ Read notes.txt");
    project
}

#[test]
fn sessions_are_found_by_typing() {
    for (columns, rows) in SIZES {
        let project = with_two();
        let mut screen = chat(&project, columns, rows);
        screen.key("\u{f}");
        screen.until("/read notes.txt");
        screen.until("/read src/main.rs");
        screen.until_gone("loading");
        is_golden(&mut screen, &project, &format!("sessions-{columns}x{rows}"));
        screen.key("main");
        screen.until_gone("/read notes.txt");
        screen.until("› /read src/main.rs");
        screen.key(ENTER);
        screen.until("println!(\"hi\");");
    }
}

#[test]
fn a_session_is_deleted_when_that_is_said_twice() {
    let project = with_two();
    let mut screen = chat(&project, 80, 24);
    screen.key("\u{f}");
    screen.until("/read notes.txt");
    screen.key("notes");
    screen.until("› /read notes.txt");
    screen.key("\u{4}");
    screen.until("Press Ctrl-D again to delete permanently");
    screen.key("\u{4}");
    screen.until("session deleted");
    screen.key(ESCAPE);
    screen.until("/read src/main.rs");
    assert!(!screen.text().contains("/read notes.txt"));
    drop(screen);
    let listed = project.shell("acp sessions").code(0).stdout;
    assert!(
        listed.contains("main.rs") && !listed.contains("notes.txt"),
        "{listed}"
    );
}

#[test]
fn a_session_is_forked_and_the_copy_goes_its_own_way() {
    let project = with_two();
    let mut screen = chat(&project, 80, 24);
    screen.key("\u{f}");
    screen.key("main");
    screen.until("› /read src/main.rs");
    screen.key("\u{6}");
    screen.until_gone("╭ Sessions");
    screen.until(" 2 ");
    screen.until("Type a prompt");
    screen.say("/read notes.txt");
    screen.until("✓ ▤ Read notes.txt");
    screen.until_gone("Esc: cancel");
    drop(screen);
    let listed = project.shell("acp sessions").code(0).stdout;
    assert_eq!(listed.lines().count(), 3, "{listed}");
}

#[test]
fn a_session_has_the_name_it_is_given() {
    let project = TestProject::new();
    let mut screen = chat(&project, 80, 24);
    screen.key("\u{1b}OQ");
    screen.until("╭ Session name");
    screen.key("The parser");
    screen.key(ENTER);
    screen.until(" 1 · The parser");
    screen.key("\u{1b}OQ");
    screen.until("╭ Session name");
    screen.key("\u{15}Lines");
    screen.key(ESCAPE);
    screen.until_gone("╭ Session name");
    screen.until(" 1 · The parser");
}

#[test]
fn a_conversation_is_saved_as_markdown() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    read(&mut screen);
    let save = |screen: &mut ChatScreen| {
        screen.key("\u{10}");
        screen.until("╭ Commands");
        screen.key("markdown");
        screen.until("› Save conversation as Markdown");
        screen.key(ENTER);
        screen.until("╭ Save as Markdown to");
        screen.until("-read-src-main-rs.md");
        screen.key("\u{15}talk.md");
        screen.key(ENTER);
    };
    save(&mut screen);
    screen.until("saved as ");
    let text = project.read("talk.md");
    assert!(text.contains("/read src/main.rs"), "{text}");
    assert!(text.contains("println!(\"hi\");"), "{text}");
    // What is there is not written over.
    save(&mut screen);
    screen.until("cannot save ");
    assert_eq!(project.read("talk.md"), text);
}

#[test]
fn a_session_by_name_is_begun_here_and_gone_on_with_by_a_script() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = begin(&project, 80, 24, "--session build");
    screen.until("named `build`; reopen it with `acp chat --session NAME`");
    read(&mut screen);
    // Another name beside it.
    screen.key("\u{1b}OQ");
    screen.until("╭ Session name");
    screen.key("\u{15}");
    screen.key("the build");
    screen.key(ENTER);
    screen.until("· the build");
    screen.until("named `the build`");
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));

    for name in ["build", "the build"] {
        let done = project.run(&["--session", name, "/read src/main.rs"]);
        done.code(0).shows(&["Read `src/main.rs`"]);
    }
    let mut screen = begin(&project, 80, 24, "--session build");
    screen.until("✓ ▤ Read src/main.rs");
    screen.key("\u{f}");
    screen.until("╭ Sessions");
    screen.until("build · the build · /read src/main.rs");
}

#[test]
fn a_session_that_is_open_is_not_deleted() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    read(&mut screen);
    screen.key("\u{f}");
    screen.until("› /read src/main.rs");
    screen.key("\u{4}");
    screen.until("Press Ctrl-D again to delete permanently: /read src/main.rs");
    // Any other key takes it back.
    screen.key(DOWN);
    screen.until_gone("Press Ctrl-D again to delete");
    screen.key("\u{4}");
    screen.until("Press Ctrl-D again to delete");
    screen.key("\u{4}");
    screen.until("this session is open in a tab; close the tab first");
    screen.key(ESCAPE);
    screen.until_gone("╭ Sessions");
    drop(screen);
    let listed = project.shell("acp sessions").code(0).stdout;
    assert!(listed.contains("main.rs"), "{listed}");
}

#[test]
fn one_goes_on_in_a_copy_of_the_session_that_is_open() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    read(&mut screen);
    screen.key("\u{10}");
    screen.until("╭ Commands");
    screen.key("fork session");
    screen.until("› Fork session");
    screen.key(ENTER);
    screen.until(" 2 ");
    screen.until("Type a prompt");
    screen.say("/read notes.txt");
    screen.until("✓ ▤ Read notes.txt");
    screen.key("\u{1b}1");
    screen.until("println!(\"hi\");");
    assert!(
        !screen.text().contains("✓ ▤ Read notes.txt"),
        "{}",
        screen.text()
    );
}

/// A chat with an agent that has sessions of before, and the first of them chosen.
fn with_sessions_of(project: &TestProject, flags: &str) -> ChatScreen {
    configure(project, &[("archive", flags)]);
    let mut screen = begin(project, 80, 24, "--agent archive");
    screen.until("· archive");
    screen.key("\u{f}");
    // Without what would ring, and with when it was.
    screen.until("The first  ");
    screen.until(" ago");
    screen
}

#[test]
fn a_session_that_is_not_told_again_is_gone_on_with() {
    for (opens, told) in [("load", true), ("resume", false), ("load,resume", true)] {
        let project = TestProject::new();
        let flags = format!("--sessions 3 --opens {opens}");
        configure(&project, &[("archive", &flags)]);
        let mut screen = begin(&project, 80, 24, "--agent archive --resume sess_0");
        screen.until("· archive");
        screen.say("hello");
        screen.until("you said hello");
        assert_eq!(
            screen.text().contains("old answer"),
            told,
            "{}",
            screen.text()
        );
    }
}

#[test]
fn a_session_that_cannot_be_opened_is_told_of_and_another_begun() {
    let project = TestProject::new();
    let mut screen = with_sessions_of(&project, "--sessions 3 --opens load");
    screen.key("sess_2");
    screen.until("› sess_2");
    screen.key(ENTER);
    screen.until("cannot open the session: ");
    screen.until("session not found: sess_2");
    screen.until("2 ✗ archive");
    screen.until("n: new session");
    screen.key("n");
    screen.until("2 · archive");
    screen.say("hello");
    screen.until("you said hello");
}
