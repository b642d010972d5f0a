//! Tests of finding, loading, forking, deleting and exporting past sessions.

use super::*;

#[test]
fn old_session_is_loaded_from_the_list() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    run_read_turn(&mut screen);
    quit(&mut screen);
    assert_eq!(screen.wait_for_exit().0, Some(0));

    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("\u{f}");
    screen.wait_for("╭ Sessions");
    screen.wait_for("› /read src/main.rs");
    screen.send_keys(ENTER);
    screen.wait_for("✓ ▤ Read src/main.rs");
}

#[test]
fn sandboxed_chat_stores_its_sessions() {
    if let Err(error) = acp_host::Sandbox::new([]) {
        eprintln!("skipped: {error}");
        return;
    }
    let project = TestProject::new();
    write_hello_file(&project);
    let confined = format!("{ACP} chat --sandbox");
    let mut screen = ChatScreen::start(&project, 80, 24, &confined);
    screen.wait_for("Ask");
    run_read_turn(&mut screen);
    quit(&mut screen);
    assert_eq!(screen.wait_for_exit().0, Some(0));

    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("\u{f}");
    screen.wait_for("› /read src/main.rs");
}

/// Creates a session whose prompt, `said`, becomes its title.
fn create_old_session(project: &TestProject, said: &str, until: &str) {
    let mut screen = start_chat(project, 80, 24);
    screen.send_line(said);
    screen.wait_for(until);
    screen.wait_until_gone("Esc: cancel");
    quit(&mut screen);
    assert_eq!(screen.wait_for_exit().0, Some(0));
}

/// Returns a project with two existing sessions.
fn project_with_two_sessions() -> TestProject {
    let project = TestProject::new();
    write_hello_file(&project);
    create_old_session(&project, "/read src/main.rs", "✓ ▤ Read src/main.rs");
    create_old_session(&project, "/read notes.txt", "✓ ▤ Read notes.txt");
    project
}

#[test]
fn session_list_is_filtered_by_typing() {
    for (columns, rows) in SIZES {
        let project = project_with_two_sessions();
        let mut screen = start_chat(&project, columns, rows);
        screen.send_keys("\u{f}");
        screen.wait_for("/read notes.txt");
        screen.wait_for("/read src/main.rs");
        screen.wait_until_gone("loading");
        assert_golden(&mut screen, &project, &format!("sessions-{columns}x{rows}"));
        screen.send_keys("main");
        screen.wait_until_gone("/read notes.txt");
        screen.wait_for("› /read src/main.rs");
        screen.send_keys(ENTER);
        screen.wait_for("println!(\"hi\");");
    }
}

#[test]
fn session_is_deleted_after_confirmation() {
    let project = project_with_two_sessions();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("\u{f}");
    screen.wait_for("/read notes.txt");
    screen.send_keys("notes");
    screen.wait_for("› /read notes.txt");
    screen.send_keys("\u{4}");
    screen.wait_for("Press Ctrl-D again to delete permanently");
    screen.send_keys("\u{4}");
    screen.wait_for("session deleted");
    screen.send_keys(ESCAPE);
    screen.wait_for("/read src/main.rs");
    assert!(!screen.text().contains("/read notes.txt"));
    drop(screen);
    let listed = project.run_shell("acp sessions").expect_code(0).stdout;
    assert!(
        listed.contains("main.rs") && !listed.contains("notes.txt"),
        "{listed}"
    );
}

#[test]
fn forked_session_is_independent() {
    let project = project_with_two_sessions();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("\u{f}");
    screen.send_keys("main");
    screen.wait_for("› /read src/main.rs");
    screen.send_keys("\u{6}");
    screen.wait_until_gone("╭ Sessions");
    screen.wait_for(" 2 ");
    screen.wait_for("Type a prompt");
    screen.send_line("/read notes.txt");
    screen.wait_for("✓ ▤ Read notes.txt");
    screen.wait_until_gone("Esc: cancel");
    drop(screen);
    let listed = project.run_shell("acp sessions").expect_code(0).stdout;
    assert_eq!(listed.lines().count(), 3, "{listed}");
}

/// `acp chat --fork` shows the conversation that it continues, in a session of its own.
#[test]
fn chat_continues_in_a_copy() {
    let project = project_with_two_sessions();
    let mut screen = start_chat_with_args(&project, 80, 24, "--continue --fork");
    screen.wait_for("✓ ▤ Read notes.txt");
    screen.wait_for("Type a prompt");
    screen.send_line("/read src/main.rs");
    screen.wait_for("✓ ▤ Read src/main.rs");
    screen.wait_until_gone("Esc: cancel");
    drop(screen);
    let listed = project.run_shell("acp sessions").expect_code(0).stdout;
    assert_eq!(listed.lines().count(), 3, "{listed}");
}

#[test]
fn added_directory_belongs_to_the_sessions_of_a_chat() {
    let project = TestProject::new();
    let library = project.path_outside("library");
    std::fs::write(library.join("x.txt"), "from the library\n").unwrap();
    let library = library.canonicalize().unwrap();
    let args = format!("--add-dir {}", library.display());
    let mut screen = start_chat_with_args(&project, 100, 24, &args);
    screen.wait_for("Type a prompt");
    screen.send_line(&format!("/read {}/x.txt", library.display()));
    screen.wait_for("from the library");
    screen.wait_until_gone("Esc: cancel");
    quit(&mut screen);
    // The continuation that is printed at the end has it, too.
    screen.wait_for("--add-dir");
}

/// Offers two models in the option `llm`, and records which one is set.
const AGENT_WITH_MODELS: &str = r#"
tell() { printf '%s\n' "$1"; }
offer() { printf '"configOptions":[{"id":"llm","name":"LLM","category":"model","type":"select","currentValue":"%s","options":[{"value":"small","name":"Small"},{"value":"large","name":"Large"}]}]' "$1"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
    case $line in
    *'"initialize"'*) tell '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1}}' ;;
    *'"session/new"'*) tell '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s",'"$(offer large)"'}}' ;;
    *'"session/set_config_option"'*'"llm"'*'"small"'*)
        echo small > set
        tell '{"jsonrpc":"2.0","id":'$id',"result":{'"$(offer small)"'}}'
        ;;
    esac
done
"#;

#[test]
fn model_is_set_when_the_chat_opens_its_session() {
    let project = TestProject::new();
    project.write_file("agent.sh", AGENT_WITH_MODELS);
    let mut screen = start_chat_with_args(&project, 100, 24, "-m small -- sh agent.sh");
    screen.wait_for("Small");
    assert_eq!(project.read_file("set"), "small\n");
    let agent = project.test_agent_command("");
    let args = format!("--model small -- {agent}");
    let mut screen = start_chat_with_args(&project, 100, 24, &args);
    screen.wait_for("the agent does not offer a choice of models");
}

#[test]
fn session_can_be_renamed() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("\u{1b}OQ");
    screen.wait_for("╭ Session name");
    screen.send_keys("The parser");
    screen.send_keys(ENTER);
    screen.wait_for(" 1 · The parser");
    screen.send_keys("\u{1b}OQ");
    screen.wait_for("╭ Session name");
    screen.send_keys("\u{15}Lines");
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("╭ Session name");
    screen.wait_for(" 1 · The parser");
}

#[test]
fn new_sessions_start_with_the_options_of_the_command_line() {
    let project = TestProject::new();
    let mut screen = ChatScreen::start(&project, 80, 24, &format!("{ACP} chat --mode architect"));
    let has_mode = |text: &str| {
        let last = text.lines().last().unwrap_or_default();
        last.starts_with(" Architect")
    };
    screen.wait_for_matching_text("the mode", has_mode);
    screen.send_line("/read notes.txt");
    screen.wait_for("✓ ▤ Read notes.txt");
    screen.wait_until_gone("Esc: cancel");
    screen.send_line("/clear");
    screen.wait_until_gone("Read notes.txt");
    screen.wait_until_gone("opening the session");
    screen.wait_for_matching_text("the mode in the new session", has_mode);
    // Another tab.
    screen.send_keys("\u{14}");
    screen.wait_for(" 2 · ACP Agent");
    screen.wait_for_matching_text("the mode in the new tab", has_mode);
}

#[test]
fn commands_take_arguments() {
    let project = TestProject::new();
    let mut screen = start_with_player(&project, 100, 24, "--options");
    screen.send_line("/rename The parser");
    screen.wait_for(" 1 · The parser");
    let wait_for_options = |screen: &mut ChatScreen, options: &str| {
        screen.wait_for_matching_text(options, |text| {
            text.lines()
                .last()
                .is_some_and(|line| line.starts_with(options))
        });
    };
    screen.send_line("/mode look");
    wait_for_options(&mut screen, " Look · Swift 3");
    // Names do, too.
    screen.send_line("/model deep 9");
    wait_for_options(&mut screen, " Look · Deep 9");
    screen.send_line("/model large");
    screen.wait_for("no model `large`; use one of swift, brief, deep");
    // What was wrong can be corrected.
    screen.wait_for("│/model large");
    screen.send_keys(CLEAR_LINE);
    screen.send_line("/theme ember");
    screen.wait_for("To keep it, set theme = \"ember\"");
    screen.send_line("hello");
    screen.wait_for("heard 1 blocks");
    screen.wait_until_gone("Esc: cancel");
    screen.send_line("/export talk.md");
    screen.wait_for("saved as ");
    assert!(project.read_file("talk.md").contains("heard 1 blocks"));
    screen.send_line("/clear all of it");
    screen.wait_for("/clear takes no arguments");
    screen.wait_for("heard 1 blocks");
}

#[test]
fn session_is_resumed_by_its_id_or_name() {
    let project = TestProject::new();
    project
        .run_shell("acp run --session garden --no-server '/read notes.txt'")
        .expect_code(0);
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/resume garden");
    screen.wait_for("✓ ▤ Read notes.txt");
    screen.wait_for(" 2 · garden");
    // If there is no such session, the list shows what comes close.
    screen.send_line("/resume gard");
    screen.wait_for("╭ Sessions");
    screen.wait_for("esc clear filter");
    screen.wait_for("› garden");
}

#[test]
fn conversation_is_exported_as_markdown() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    run_read_turn(&mut screen);
    let save = |screen: &mut ChatScreen| {
        screen.send_keys("\u{10}");
        screen.wait_for("╭ Commands");
        screen.send_keys("markdown");
        screen.wait_for("› Save conversation as Markdown");
        screen.send_keys(ENTER);
        screen.wait_for("╭ Save as Markdown to");
        screen.wait_for("-read-src-main-rs.md");
        screen.send_keys("\u{15}talk.md");
        screen.send_keys(ENTER);
    };
    save(&mut screen);
    screen.wait_for("saved as ");
    let text = project.read_file("talk.md");
    assert!(text.contains("/read src/main.rs"), "{text}");
    assert!(text.contains("println!(\"hi\");"), "{text}");
    // What is there is not written over.
    save(&mut screen);
    screen.wait_for("cannot save ");
    assert_eq!(project.read_file("talk.md"), text);
}

#[test]
fn named_session_is_started_in_the_chat_and_continued_by_a_script() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat_with_args(&project, 80, 24, "--session build");
    screen.wait_for("named `build`; reopen it with `acp chat --session NAME`");
    run_read_turn(&mut screen);
    // Another name beside it.
    screen.send_keys("\u{1b}OQ");
    screen.wait_for("╭ Session name");
    screen.send_keys("\u{15}");
    screen.send_keys("the build");
    screen.send_keys(ENTER);
    screen.wait_for("· the build");
    screen.wait_for("named `the build`");
    quit(&mut screen);
    assert_eq!(screen.wait_for_exit().0, Some(0));

    for name in ["build", "the build"] {
        let done = project.run(&["--session", name, "/read src/main.rs"]);
        done.expect_code(0).expect_stdout(&["Read `src/main.rs`"]);
    }
    let mut screen = start_chat_with_args(&project, 80, 24, "--session build");
    screen.wait_for("✓ ▤ Read src/main.rs");
    screen.send_keys("\u{f}");
    screen.wait_for("╭ Sessions");
    screen.wait_for("build · the build · /read src/main.rs");
}

#[test]
fn open_session_is_not_deleted() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    run_read_turn(&mut screen);
    screen.send_keys("\u{f}");
    screen.wait_for("› /read src/main.rs");
    screen.send_keys("\u{4}");
    screen.wait_for("Press Ctrl-D again to delete permanently: /read src/main.rs");
    // Any other key takes it back.
    screen.send_keys(DOWN);
    screen.wait_until_gone("Press Ctrl-D again to delete");
    screen.send_keys("\u{4}");
    screen.wait_for("Press Ctrl-D again to delete");
    screen.send_keys("\u{4}");
    screen.wait_for("this session is open in a tab; close the tab first");
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("╭ Sessions");
    drop(screen);
    let listed = project.run_shell("acp sessions").expect_code(0).stdout;
    assert!(listed.contains("main.rs"), "{listed}");
}

#[test]
fn open_session_can_be_forked() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    run_read_turn(&mut screen);
    screen.send_keys("\u{10}");
    screen.wait_for("╭ Commands");
    screen.send_keys("fork this");
    screen.wait_for("› Fork this session");
    screen.send_keys(ENTER);
    screen.wait_for(" 2 ");
    screen.wait_for("Type a prompt");
    screen.send_line("/read notes.txt");
    screen.wait_for("✓ ▤ Read notes.txt");
    // The copy shows the turns before it, and the session has none of its own.
    assert!(screen.text().contains("println!(\"hi\");"));
    screen.send_keys("\u{1b}1");
    screen.wait_until_gone("✓ ▤ Read notes.txt");
    assert!(screen.text().contains("println!(\"hi\");"));
}

/// Starts a chat with an agent that can list sessions, and opens the list.
fn start_with_sessions(project: &TestProject, flags: &str) -> ChatScreen {
    write_agents_config(project, &[("archive", flags)]);
    let mut screen = start_chat_with_args(project, 80, 24, "--agent archive");
    screen.wait_for("· archive");
    screen.send_keys("\u{f}");
    // Without what would ring, and with when it was.
    screen.wait_for("The first  ");
    screen.wait_for(" ago");
    screen
}

#[test]
fn session_is_resumed_without_replay() {
    for (opens, told) in [("load", true), ("resume", false), ("load,resume", true)] {
        let project = TestProject::new();
        let flags = format!("--sessions 3 --opens {opens}");
        write_agents_config(&project, &[("archive", &flags)]);
        let mut screen = start_chat_with_args(&project, 80, 24, "--agent archive --resume sess_0");
        screen.wait_for("· archive");
        screen.send_line("hello");
        screen.wait_for("you said hello");
        assert_eq!(
            screen.text().contains("old answer"),
            told,
            "{}",
            screen.text()
        );
    }
}

#[test]
fn failure_to_open_a_session_is_reported_and_another_session_is_started() {
    let project = TestProject::new();
    let mut screen = start_with_sessions(&project, "--sessions 3 --opens load");
    screen.send_keys("sess_2");
    screen.wait_for("› sess_2");
    screen.send_keys(ENTER);
    screen.wait_for("cannot open the session: ");
    screen.wait_for("session not found: sess_2");
    screen.wait_for("2 ✗ archive");
    screen.wait_for("F7: new session");
    screen.send_keys(F7);
    screen.wait_for("2 · archive");
    screen.send_line("hello");
    screen.wait_for("you said hello");
}

#[test]
fn chat_continues_the_latest_session() {
    let project = project_with_two_sessions();
    let chat = format!("{ACP} chat --continue");
    let mut screen = ChatScreen::start(&project, 80, 24, &chat);
    screen.wait_for("✓ ▤ Read notes.txt");
    quit(&mut screen);
    assert_eq!(screen.wait_for_exit().0, Some(0));
    let empty = TestProject::new();
    let mut screen = ChatScreen::start(&empty, 80, 24, &chat);
    screen.wait_for("has no session in");
    assert_eq!(screen.wait_for_exit().0, Some(1));
}

#[test]
fn the_end_of_a_chat_says_how_to_continue_it() {
    let project = TestProject::new();
    project.allow_commands();
    let mut screen = start_chat(&project, 100, 24);
    screen.send_line("/run while ! test -e go; do sleep 0.01; done");
    screen.wait_for("running: Run");
    // An agent that is working is not stopped by one key.
    screen.send_keys("\u{11}");
    screen.wait_for("an agent is working; quit again to stop it");
    project.write_file("go", "");
    screen.wait_until_gone("Esc: cancel");
    quit(&mut screen);
    let (code, text) = screen.wait_for_exit();
    assert_eq!(code, Some(0));
    let hint = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("To continue: acp "));
    let hint = hint.unwrap_or_else(|| panic!("no hint: {text}"));
    assert!(hint.starts_with("chat --resume "), "{hint}");
    let mut screen = ChatScreen::start(&project, 100, 24, &format!("{ACP} {hint}"));
    screen.wait_for("▌ /run while ! test -e go");
}

#[test]
fn a_chat_without_a_conversation_gives_no_hint() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 100, 24);
    quit(&mut screen);
    let (code, text) = screen.wait_for_exit();
    assert_eq!(code, Some(0));
    assert!(!text.contains("To continue"), "{text}");
}
