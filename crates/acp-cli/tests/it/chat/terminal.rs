//! Tests of the terminal: its size, keys, mouse, and how it is restored on exit.

use serde_json::json;

use super::*;

#[test]
fn resized_terminal_shows_the_same_content() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/help");
    screen.wait_for("Type a prompt");
    screen.resize(120, 40);
    screen.wait_for_matching_text("a frame of 120 columns", |text| {
        text.lines()
            .any(|line| line.chars().count() == 120 && line.starts_with('╭'))
    });
    screen.resize(40, 12);
    screen.wait_for_matching_text("a frame of 40 columns", |text| {
        text.lines()
            .any(|line| line.chars().count() == 40 && line.starts_with('╭'))
    });
}

#[test]
fn help_lists_the_keys() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = start_chat(&project, columns, rows);
        screen.send_keys("?");
        screen.wait_for("╭ Help");
        assert_golden(&mut screen, &project, &format!("help-{columns}x{rows}"));
        screen.send_keys(ESCAPE);
        screen.wait_until_gone("╭ Help");
    }
}

#[test]
fn terminal_is_restored_after_every_exit() {
    for how in ["quit", "ctrl-c twice", "TERM", "HUP"] {
        let project = TestProject::new();
        let line = format!(
            "stty -a > before; {ACP} chat & echo $! > chat; fg > /dev/null; stty -a > after; echo given back"
        );
        let line = format!("bash -c 'set -m; {line}'");
        let mut screen = ChatScreen::start(&project, 80, 24, &line);
        screen.wait_for("Type a prompt");
        screen.wait_for("Ask");
        let agent = agent_pid(&project);
        let chat: i32 = project.read_file("chat").trim().parse().unwrap();
        let chat = rustix::process::Pid::from_raw(chat).unwrap();
        match how {
            "quit" => screen.send_keys("\u{11}"),
            "ctrl-c twice" => {
                screen.send_keys("\u{3}");
                screen.wait_for("Press Ctrl-C again to quit");
                screen.send_keys("\u{3}");
            }
            "TERM" => rustix::process::kill_process(chat, rustix::process::Signal::TERM).unwrap(),
            _ => rustix::process::kill_process(chat, rustix::process::Signal::HUP).unwrap(),
        }
        screen.wait_for("given back");
        assert!(!screen.screen().alternate_screen(), "{how}");
        assert!(!screen.screen().hide_cursor(), "{how}");
        assert!(!screen.screen().bracketed_paste(), "{how}");
        assert!(!is_mouse_used(&screen), "{how}");
        assert_eq!(
            project.read_file("before"),
            project.read_file("after"),
            "{how}"
        );
        assert!(
            rustix::process::test_kill_process(agent).is_err(),
            "{how}: the agent is left"
        );
    }
}

#[test]
fn closed_terminal_ends_the_chat_and_its_agent() {
    for how in ["", "setsid --wait "] {
        let project = TestProject::new();
        let line = format!("{how}{ACP} chat");
        let mut screen = ChatScreen::start(&project, 80, 24, &line);
        screen.wait_for("Ask");
        let (agent, chat) = (agent_pid(&project), parent_pid(agent_pid(&project)));
        // What reads what is typed is at work.
        screen.send_keys("something");
        screen.wait_for("something");
        drop(screen);
        wait_until_exited(chat);
        wait_until_exited(agent);
    }
}

#[test]
fn wheel_scrolls_and_click_selects_or_expands() {
    let project = TestProject::new();
    write_hello_file(&project);
    write_agents_config(&project, &[("player", "--player --options")]);
    let mut screen = start_chat_with_args(&project, 80, 24, "--agent player");
    screen.wait_for("· Player");
    let lines: String = (1..=100).map(|n| format!("line {n}\n\n")).collect();
    let output =
        json!({"type": "content", "content": {"type": "text", "text": "what it has read"}});
    let steps = json!([
        message_step(&lines),
        tool_call_step(
            json!({"toolCallId": "1", "title": "Read it", "kind": "read",
            "status": "completed", "content": [output]})
        ),
    ]);
    play_steps(&project, &mut screen, &steps);
    screen.wait_for("✓ ▤ Read it");
    screen.wait_until_gone("Esc: cancel");
    // The wheel, up and down.
    for _ in 0..3 {
        screen.send_keys("\u{1b}[<64;10;10M");
    }
    screen.wait_until_gone("Read it");
    screen.wait_for("more below");
    for _ in 0..3 {
        screen.send_keys("\u{1b}[<65;10;10M");
    }
    screen.wait_for("✓ ▤ Read it");
    // A click expands an item, and collapses it again.
    click(&mut screen, "Read it");
    screen.wait_for("what it has read");
    click(&mut screen, "Read it");
    screen.wait_until_gone("what it has read");
    // A click in a list selects an entry, and does not choose it.
    screen.send_keys("\u{1b}m");
    screen.wait_for("╭ Mode");
    click(&mut screen, "Guide");
    screen.wait_for("› Guide");
    screen.send_keys(ENTER);
    screen.wait_until_gone("╭ Mode");
    screen.wait_for_matching_text("the mode", |text| {
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with(" Guide"))
    });
}

#[test]
fn click_does_not_answer_a_question() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/run touch made");
    screen.wait_for("1 y  Allow");
    for choice in ["1 y  Allow", "2 a  Always", "touch made"] {
        click(&mut screen, choice);
        click(&mut screen, choice);
    }
    wait_until_question_accepts_keys();
    // The clicks were handled before this key.
    screen.send_keys("n");
    screen.wait_until_gone("1 y  Allow");
    screen.wait_until_gone("Esc: cancel");
    assert!(!project.file("made").exists());
}

/// Presses and releases the left button on this text.
fn click(screen: &mut ChatScreen, text: &str) {
    let (row, column) = find_position(screen, text);
    let (row, column) = (row + 1, column + 1);
    screen.send_keys(&format!(
        "\u{1b}[<0;{column};{row}M\u{1b}[<0;{column};{row}m"
    ));
}

fn is_mouse_used(screen: &ChatScreen) -> bool {
    screen.screen().mouse_protocol_mode() != vt100::MouseProtocolMode::None
}

#[test]
fn mouse_is_left_to_the_terminal_if_it_is_turned_off() {
    for (config, args, expected) in [
        ("", "", true),
        ("", "--no-mouse", false),
        ("[chat]\nmouse = false\n", "", false),
        ("[chat]\nmouse = false\n", "--mouse", true),
    ] {
        let project = TestProject::new();
        project.write_config("config.toml", config);
        let screen = start_chat_with_args(&project, 80, 24, args);
        assert_eq!(is_mouse_used(&screen), expected, "{config:?} {args:?}");
    }
}

#[test]
fn redraw_repairs_foreign_output() {
    let project = TestProject::new();
    let mut screen = start_chat(&project, 80, 24);
    let tty = project.read_file(".tty");
    std::fs::write(tty.trim(), "\u{1b}[10;10Hfrom somewhere else").unwrap();
    screen.wait_for("from somewhere else");
    screen.send_keys("\u{c}");
    screen.wait_until_gone("from somewhere else");
    screen.wait_for("Type a prompt");
}

#[test]
fn prompt_is_edited_in_an_external_editor() {
    let project = TestProject::new();
    project.write_file(
        "editor.sh",
        "echo an editor; cat \"$1\"; read line; echo \"$line, please\" > \"$1\"",
    );
    let editor = project.file("editor.sh").display().to_string();
    let line = format!("VISUAL= EDITOR='sh {editor}' {ACP} chat");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.wait_for("Ask");
    screen.send_keys("begun here");
    screen.wait_for("begun here");
    screen.send_keys("\u{7}");
    screen.wait_for("an editor");
    screen.wait_for("begun here");
    assert!(!is_mouse_used(&screen));
    // It has the terminal for itself.
    screen.send_keys("written there\n");
    screen.wait_for("│written there, please");
    screen.wait_for(" Ask");
    assert!(is_mouse_used(&screen));
}

#[test]
fn commands_are_found_by_searching_for_words() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = start_chat(&project, columns, rows);
        screen.send_keys("\u{10}");
        screen.wait_for("╭ Commands");
        assert_golden(&mut screen, &project, &format!("palette-{columns}x{rows}"));
        screen.send_keys("new session");
        screen.wait_for("› New session in a new tab");
        screen.send_keys(ENTER);
        screen.wait_for(" 2 ");
    }
}

#[test]
fn chat_is_suspended_to_the_shell_and_resumed() {
    let project = TestProject::new();
    let line =
        format!("bash -c 'set -m; {ACP} chat; echo in the shell; read line; fg > /dev/null'");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.wait_for(" Ask");
    screen.send_keys("half a thought");
    screen.wait_for("half a thought");
    screen.send_keys("\u{1a}");
    screen.wait_for("in the shell");
    assert!(!screen.screen().alternate_screen());
    assert!(!is_mouse_used(&screen));
    screen.send_keys("\n");
    screen.wait_for("│half a thought");
    assert!(screen.screen().alternate_screen());
    screen.send_keys("\u{11}");
    assert_eq!(screen.wait_for_exit().0, Some(0));
}

#[test]
fn key_bindings_come_from_the_configuration() {
    let project = TestProject::new();
    project.write_config(
        "config.toml",
        "[chat]\nkeys = { new-tab = [\"f5\"], quit = [\"ctrl-x\"] }\n",
    );
    let mut screen = start_chat(&project, 80, 24);
    screen.send_keys("\u{1b}[15~");
    screen.wait_for(" 2 · ACP Agent");
    screen.send_keys("?");
    screen.wait_for("╭ Help");
    screen.send_keys("\u{1b}[F");
    screen.wait_for("Ctrl-X");
    assert!(!screen.text().contains("Ctrl-Q"), "{}", screen.text());
    screen.send_keys(ESCAPE);
    screen.wait_until_gone("╭ Help");
    screen.send_keys("\u{18}");
    assert_eq!(screen.wait_for_exit().0, Some(0));
}

#[test]
fn chat_survives_a_tiny_terminal() {
    let project = TestProject::new();
    write_hello_file(&project);
    let mut screen = start_chat(&project, 80, 24);
    screen.send_line("/run echo one");
    screen.wait_for("ACP Agent wants to: Run");
    for (columns, rows) in [(9, 3), (1, 1), (200, 2), (3, 60)] {
        screen.resize(columns, rows);
        // It takes keys meanwhile: those of a list that opens and closes.
        screen.send_keys("\u{10}");
        screen.send_keys("\u{3}");
    }
    screen.resize(80, 24);
    screen.wait_for("ACP Agent wants to: Run");
    screen.wait_for("2 a  Always allow exactly");
}

#[test]
fn wheel_does_not_scroll_through_the_prompt_history() {
    let project = TestProject::new();
    let line = format!("script --quiet --flush --command '{ACP} chat' typescript; echo given back");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.wait_for("Type a prompt");
    screen.wait_for("Ask");
    screen.send_keys("\u{11}");
    screen.wait_for("given back");
    let sent = project.read_file("typescript");
    // Alternate scroll is turned off in the alternate screen, and as it was behind it.
    let (before, rest) = sent.split_once("\u{1b}[?1049h").unwrap();
    let (within, after) = rest.split_once("\u{1b}[?1007h").unwrap();
    assert!(!before.contains("1007"), "{before:?}");
    assert!(within.contains("\u{1b}[?1007s\u{1b}[?1007l"), "{within:?}");
    assert!(after.starts_with("\u{1b}[?1007r"), "{after:?}");
}
