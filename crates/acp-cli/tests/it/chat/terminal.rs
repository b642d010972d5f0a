//! Tests of the terminal: its size, keys, mouse, and how it is restored on exit.

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
fn mouse_scrolls_and_selects_if_enabled() {
    let project = TestProject::new();
    write_hello_file(&project);
    write_agents_config(&project, &[("player", "--player --options")]);
    let mut screen = start_chat_with_args(&project, 80, 24, "--agent player --mouse");
    screen.wait_for("· Player");
    assert_ne!(
        screen.screen().mouse_protocol_mode(),
        vt100::MouseProtocolMode::None
    );
    let lines: String = (1..=100).map(|n| format!("line {n}\n\n")).collect();
    play_steps(
        &project,
        &mut screen,
        &serde_json::json!([message_step(&lines)]),
    );
    screen.wait_for("line 100");
    screen.wait_until_gone("Esc: cancel");
    // The wheel, up.
    for _ in 0..3 {
        screen.send_keys("\u{1b}[<64;10;10M");
    }
    screen.wait_until_gone("line 100");
    screen.wait_for("more below");
    for _ in 0..3 {
        screen.send_keys("\u{1b}[<65;10;10M");
    }
    screen.wait_for("line 100");
    // What is clicked on is chosen.
    screen.send_keys("\u{1b}m");
    screen.wait_for("╭ Mode");
    let (row, column) = find_position(&screen, "Guide");
    screen.send_keys(&format!("\u{1b}[<0;{};{}M", column + 1, row + 1));
    screen.wait_until_gone("╭ Mode");
    screen.wait_for_matching_text("the mode", |text| {
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with(" Guide"))
    });
}

#[test]
fn mouse_is_not_captured_by_default() {
    let project = TestProject::new();
    let screen = start_chat(&project, 80, 24);
    assert_eq!(
        screen.screen().mouse_protocol_mode(),
        vt100::MouseProtocolMode::None
    );
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
    // It has the terminal for itself.
    screen.send_keys("written there\n");
    screen.wait_for("│written there, please");
    screen.wait_for(" Ask");
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
