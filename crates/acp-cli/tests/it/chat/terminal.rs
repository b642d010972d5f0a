//! The terminal: its size, its keys and mouse, and how it is given back.

use super::*;

#[test]
fn a_terminal_of_another_size_shows_the_same() {
    let project = TestProject::new();
    let mut screen = chat(&project, 80, 24);
    screen.say("/help");
    screen.until("Type a prompt");
    screen.resize(120, 40);
    screen.until_it("a frame of 120 columns", |text| {
        text.lines()
            .any(|line| line.chars().count() == 120 && line.starts_with('╭'))
    });
    screen.resize(40, 12);
    screen.until_it("a frame of 40 columns", |text| {
        text.lines()
            .any(|line| line.chars().count() == 40 && line.starts_with('╭'))
    });
}

#[test]
fn help_lists_the_keys() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = chat(&project, columns, rows);
        screen.key("?");
        screen.until("╭ Help");
        is_golden(&mut screen, &project, &format!("help-{columns}x{rows}"));
        screen.key(ESCAPE);
        screen.until_gone("╭ Help");
    }
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    for how in ["quit", "ctrl-c twice", "TERM", "HUP"] {
        let project = TestProject::new();
        let line = format!(
            "stty -a > before; {ACP} chat & echo $! > chat; fg > /dev/null; stty -a > after; echo given back"
        );
        let line = format!("bash -c 'set -m; {line}'");
        let mut screen = ChatScreen::start(&project, 80, 24, &line);
        screen.until("Type a prompt");
        screen.until("Ask");
        let agent = agent_of(&project);
        let chat: i32 = project.read("chat").trim().parse().unwrap();
        let chat = rustix::process::Pid::from_raw(chat).unwrap();
        match how {
            "quit" => screen.key("\u{11}"),
            "ctrl-c twice" => {
                screen.key("\u{3}");
                screen.until("Press Ctrl-C again to quit");
                screen.key("\u{3}");
            }
            "TERM" => rustix::process::kill_process(chat, rustix::process::Signal::TERM).unwrap(),
            _ => rustix::process::kill_process(chat, rustix::process::Signal::HUP).unwrap(),
        }
        screen.until("given back");
        assert!(!screen.picture().alternate_screen(), "{how}");
        assert!(!screen.picture().hide_cursor(), "{how}");
        assert!(!screen.picture().bracketed_paste(), "{how}");
        assert_eq!(project.read("before"), project.read("after"), "{how}");
        assert!(
            rustix::process::test_kill_process(agent).is_err(),
            "{how}: the agent is left"
        );
    }
}

#[test]
fn a_terminal_that_is_gone_ends_the_chat_and_its_agent() {
    for how in ["", "setsid --wait "] {
        let project = TestProject::new();
        let line = format!("{how}{ACP} chat");
        let mut screen = ChatScreen::start(&project, 80, 24, &line);
        screen.until("Ask");
        let (agent, chat) = (agent_of(&project), parent_of(agent_of(&project)));
        // What reads what is typed is at work.
        screen.key("something");
        screen.until("something");
        drop(screen);
        until_gone(chat);
        until_gone(agent);
    }
}

#[test]
fn the_mouse_scrolls_and_chooses_where_it_is_wanted() {
    let project = TestProject::new();
    hello(&project);
    configure(&project, &[("player", "--player --options")]);
    let mut screen = begin(&project, 80, 24, "--agent player --mouse");
    screen.until("· Player");
    assert_ne!(
        screen.picture().mouse_protocol_mode(),
        vt100::MouseProtocolMode::None
    );
    let lines: String = (1..=100).map(|n| format!("line {n}\n\n")).collect();
    play(&project, &mut screen, &serde_json::json!([says(&lines)]));
    screen.until("line 100");
    screen.until_gone("Esc: cancel");
    // The wheel, up.
    for _ in 0..3 {
        screen.key("\u{1b}[<64;10;10M");
    }
    screen.until_gone("line 100");
    screen.until("more below");
    for _ in 0..3 {
        screen.key("\u{1b}[<65;10;10M");
    }
    screen.until("line 100");
    // What is clicked on is chosen.
    screen.key("\u{1b}m");
    screen.until("╭ Mode");
    let (row, column) = find(&screen, "Guide");
    screen.key(&format!("\u{1b}[<0;{};{}M", column + 1, row + 1));
    screen.until_gone("╭ Mode");
    screen.until_it("the mode", |text| {
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with(" Guide"))
    });
}

#[test]
fn the_mouse_is_left_to_the_terminal_otherwise() {
    let project = TestProject::new();
    let screen = chat(&project, 80, 24);
    assert_eq!(
        screen.picture().mouse_protocol_mode(),
        vt100::MouseProtocolMode::None
    );
}

#[test]
fn everything_is_drawn_again_where_something_else_has_written() {
    let project = TestProject::new();
    let mut screen = chat(&project, 80, 24);
    let tty = project.read(".tty");
    std::fs::write(tty.trim(), "\u{1b}[10;10Hfrom somewhere else").unwrap();
    screen.until("from somewhere else");
    screen.key("\u{c}");
    screen.until_gone("from somewhere else");
    screen.until("Type a prompt");
}

#[test]
fn a_prompt_is_written_in_the_editor_one_likes() {
    let project = TestProject::new();
    project.write(
        "editor.sh",
        "echo an editor; cat \"$1\"; read line; echo \"$line, please\" > \"$1\"",
    );
    let editor = project.file("editor.sh").display().to_string();
    let line = format!("VISUAL= EDITOR='sh {editor}' {ACP} chat");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.until("Ask");
    screen.key("begun here");
    screen.until("begun here");
    screen.key("\u{7}");
    screen.until("an editor");
    screen.until("begun here");
    // It has the terminal for itself.
    screen.key("written there\n");
    screen.until("│written there, please");
    screen.until(" Ask");
}

#[test]
fn all_that_can_be_done_is_found_by_its_words() {
    for (columns, rows) in SIZES {
        let project = TestProject::new();
        let mut screen = chat(&project, columns, rows);
        screen.key("\u{10}");
        screen.until("╭ Commands");
        is_golden(&mut screen, &project, &format!("palette-{columns}x{rows}"));
        screen.key("new session");
        screen.until("› New session in a new tab");
        screen.key(ENTER);
        screen.until(" 2 ");
    }
}

#[test]
fn it_stops_for_the_shell_and_goes_on() {
    let project = TestProject::new();
    let line =
        format!("bash -c 'set -m; {ACP} chat; echo in the shell; read line; fg > /dev/null'");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.until(" Ask");
    screen.key("half a thought");
    screen.until("half a thought");
    screen.key("\u{1a}");
    screen.until("in the shell");
    assert!(!screen.picture().alternate_screen());
    screen.key("\n");
    screen.until("│half a thought");
    assert!(screen.picture().alternate_screen());
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));
}

#[test]
fn keys_are_those_of_the_configuration() {
    let project = TestProject::new();
    project.configure(
        "config.toml",
        "[chat]\nkeys = { new-tab = [\"f5\"], quit = [\"ctrl-x\"] }\n",
    );
    let mut screen = chat(&project, 80, 24);
    screen.key("\u{1b}[15~");
    screen.until(" 2 · ACP Agent");
    screen.key("?");
    screen.until("╭ Help");
    screen.key("\u{1b}[F");
    screen.until("Ctrl-X");
    assert!(!screen.text().contains("Ctrl-Q"), "{}", screen.text());
    screen.key(ESCAPE);
    screen.until_gone("╭ Help");
    screen.key("\u{18}");
    assert_eq!(screen.end().0, Some(0));
}

#[test]
fn a_terminal_without_room_is_survived() {
    let project = TestProject::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    screen.say("/run echo one");
    screen.until("ACP Agent wants to: Run");
    for (columns, rows) in [(9, 3), (1, 1), (200, 2), (3, 60)] {
        screen.resize(columns, rows);
        // It takes keys meanwhile: those of a list that opens and closes.
        screen.key("\u{10}");
        screen.key("\u{3}");
    }
    screen.resize(80, 24);
    screen.until("ACP Agent wants to: Run");
    screen.until("2 a  Always allow exactly");
}

#[test]
fn the_wheel_does_not_walk_through_what_was_written_before() {
    let project = TestProject::new();
    let line = format!("script --quiet --flush --command '{ACP} chat' typescript; echo given back");
    let mut screen = ChatScreen::start(&project, 80, 24, &line);
    screen.until("Type a prompt");
    screen.until("Ask");
    screen.key("\u{11}");
    screen.until("given back");
    let sent = project.read("typescript");
    // Alternate scroll is turned off in the alternate screen, and as it was behind it.
    let (before, rest) = sent.split_once("\u{1b}[?1049h").unwrap();
    let (within, after) = rest.split_once("\u{1b}[?1007h").unwrap();
    assert!(!before.contains("1007"), "{before:?}");
    assert!(within.contains("\u{1b}[?1007s\u{1b}[?1007l"), "{within:?}");
    assert!(after.starts_with("\u{1b}[?1007r"), "{after:?}");
}
