//! `acp chat` on a terminal: what a person types, and what they see.

#![cfg(target_os = "linux")]
// Clippy takes only what is in a test function for a test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::screen::Screen;
use common::{ACP, Project};

const ENTER: &str = "\r";
const NEW_LINE: &str = "\n";
const ESCAPE: &str = "\u{1b}";
const SHIFT_TAB: &str = "\u{1b}[Z";
const UP: &str = "\u{1b}[A";

/// A chat with the bundled agent, which answers typed commands.
fn chat(project: &Project, columns: u16, rows: u16) -> Screen {
    let mut screen = Screen::start(project, columns, rows, &format!("{ACP} chat"));
    screen.until("What is to be done?");
    screen.until("Ask");
    screen
}

/// Waits until the screen is as it was when someone looked at it; `UPDATE_GOLDEN=1` takes it as it is.
#[track_caller]
fn is_golden(screen: &mut Screen, project: &Project, name: &str) {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chat/golden");
    let file = directory.join(format!("{name}.txt"));
    let root = project.path().display().to_string();
    let shown = |text: &str| text.replace(&root, "/project") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        screen.settle();
        std::fs::write(&file, shown(&screen.text())).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
    screen.until_it(&format!("as in {name}.txt:\n{golden}"), |text| {
        shown(text) == golden
    });
}

/// A turn, to its end.
fn read(screen: &mut Screen) {
    screen.say("/read src/main.rs");
    screen.until("✓ ▤ Read src/main.rs");
    screen.until_gone("Esc cancels");
}

fn hello(project: &Project) {
    std::fs::create_dir_all(project.file("src")).unwrap();
    project.write("src/main.rs", "fn main() {\n    println!(\"hi\");\n}\n");
}

#[test]
fn a_change_is_asked_for_with_its_diff_and_made() {
    for (columns, rows) in [(80, 24), (120, 40)] {
        let project = Project::new();
        hello(&project);
        let mut screen = chat(&project, columns, rows);
        is_golden(&mut screen, &project, &format!("welcome-{columns}x{rows}"));
        for line in ["/edit src/main.rs", "hi", "==="] {
            screen.key(line);
            screen.key(NEW_LINE);
        }
        screen.say("hello");
        screen.until("ACP Agent wants to: Edit");
        screen.until("1 y  Allow");
        is_golden(
            &mut screen,
            &project,
            &format!("permission-{columns}x{rows}"),
        );
        // Meant for what was being written: nothing is allowed by it.
        screen.key(ENTER);
        assert!(project.read("src/main.rs").contains("\"hi\""));
        // Keys count once nothing has been typed for a moment; one that came too early was written.
        while !project.read("src/main.rs").contains("\"hello\"") {
            std::thread::sleep(std::time::Duration::from_millis(400));
            screen.key("y");
        }
        screen.until("Edited src/main.rs at line 2.");
        screen.until_gone("Esc cancels");
        screen.key("\u{15}");
        screen.until("What is to be done?");
        is_golden(&mut screen, &project, &format!("edited-{columns}x{rows}"));
        screen.key("\u{11}");
        let (code, _) = screen.end();
        assert_eq!(code, Some(0));
    }
}

#[test]
fn a_command_is_seen_while_it_runs_with_its_colours() {
    let project = Project::new();
    project.allow_commands();
    let mut screen = chat(&project, 80, 24);
    let command =
        r"printf '\033[31mred\033[0m line\n'; while ! test -e go; do sleep 0.01; done; echo over";
    screen.say(&format!("/run {command}"));
    screen.until("red line");
    screen.until("running: Run");
    let (row, column) = find(&screen, "red line");
    let cell = screen.picture().cell(row, column).unwrap();
    assert_eq!(cell.fgcolor(), vt100::Color::Idx(1), "{}", screen.text());
    project.write("go", "");
    screen.until("over");
    screen.until("ended with exit code 0");
    screen.until_gone("running: Run");
}

/// Where a text is on the screen.
#[track_caller]
fn find(screen: &Screen, text: &str) -> (u16, u16) {
    let shown = screen.text();
    let at = shown.lines().enumerate().find_map(|(row, line)| {
        let before = &line[..line.find(text)?];
        Some((row, before.chars().count()))
    });
    let (row, column) = at.unwrap_or_else(|| panic!("no {text}:\n{shown}"));
    (row.try_into().unwrap(), column.try_into().unwrap())
}

#[test]
fn escape_cancels_and_what_was_queued_waits() {
    let project = Project::new();
    project.allow_commands();
    let mut screen = chat(&project, 80, 24);
    screen.say("/run echo begun; sleep 1000");
    screen.until("begun");
    screen.say("/run echo the second");
    screen.until("↳ /run echo the second");
    // It is taken back, changed, and queued again.
    screen.key(UP);
    screen.until_gone("↳ /run echo the second");
    screen.key(" one");
    screen.key(ENTER);
    screen.until("↳ /run echo the second one");
    screen.key(ESCAPE);
    screen.until(" cancelled");
    // Whoever cancels may want to say something else first.
    screen.until("↳ /run echo the second one");
    screen.key(UP);
    screen.until_gone("↳");
    screen.key(ENTER);
    screen.until("ended with exit code 0");
}

#[test]
fn what_is_queued_is_said_when_its_turn_comes() {
    let project = Project::new();
    project.allow_commands();
    let mut screen = chat(&project, 80, 24);
    screen.say("/run while ! test -e go; do sleep 0.01; done");
    screen.until("running: Run");
    screen.say("/run echo a queued word");
    screen.until("↳");
    project.write("go", "");
    screen.until_gone("↳");
    screen.until("echo a queued word ended with exit code 0");
}

#[test]
fn the_mode_is_changed_by_a_key_and_from_a_list() {
    let project = Project::new();
    let mut screen = chat(&project, 80, 24);
    screen.key(SHIFT_TAB);
    screen.until(" Architect");
    // From the list, found by typing.
    screen.key("\u{1b}m");
    screen.until("╭ Mode");
    screen.key("code");
    screen.until("› Code");
    screen.key(ENTER);
    screen.until_gone("╭ Mode");
    screen.until_it("Code in the last line", |text| {
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with(" Code"))
    });
}

#[test]
fn commands_and_files_are_completed() {
    let project = Project::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    screen.key("/rea");
    screen.until("/read");
    screen.key("\t");
    screen.key("@mai");
    screen.until("src/main.rs");
    screen.key("\t");
    screen.until("/read @src/main.rs");
    screen.key(ENTER);
    // It is sent as the file it is, not as its name.
    screen.until("[file: file://");
    screen.until("src/main.rs, 3 lines]");
}

#[test]
fn a_tab_that_waits_for_an_answer_does_not_hold_up_another() {
    let project = Project::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    screen.say("/run echo one");
    screen.until("ACP Agent wants to: Run");
    screen.key("\u{14}");
    screen.until(" 2 ");
    screen.until("What is to be done?");
    screen.say("/read src/main.rs");
    screen.until("println!(\"hi\");");
    screen.until_gone("Esc cancels");
    is_golden(&mut screen, &project, "tabs-80x24");
    screen.key("\u{1b}1");
    screen.until("ACP Agent wants to: Run");
    screen.key(ESCAPE);
    screen.until("cancelled");
}

#[test]
fn an_agent_that_crashes_is_started_again_with_its_session() {
    let project = Project::new();
    hello(&project);
    let mut screen = chat(&project, 80, 24);
    read(&mut screen);
    let agent = agent_of(&project);
    rustix::process::kill_process(agent, rustix::process::Signal::KILL).unwrap();
    screen.until("acp agent is gone: it ended");
    screen.until("r: start again and load the session");
    is_golden(&mut screen, &project, "crash-80x24");
    screen.key("r");
    screen.until_gone("is gone");
    screen.until("/read src/main.rs");
    screen.until("Read src/main.rs");
    // And it goes on.
    screen.say("/help");
    screen.until("/edit");
}

/// The process of the agent that works in the project.
fn agent_of(project: &Project) -> rustix::process::Pid {
    let cwd = std::fs::canonicalize(project.path()).unwrap();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = process.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let here = std::fs::read_link(process.path().join("cwd")).is_ok_and(|at| at == cwd);
        if here && line.starts_with(ACP) && line.contains(" agent ") {
            return rustix::process::Pid::from_raw(id).unwrap();
        }
    }
    panic!("no agent runs in {}", cwd.display());
}

#[test]
fn an_old_session_is_loaded_from_the_list() {
    let project = Project::new();
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
    let project = Project::new();
    hello(&project);
    let confined = format!("{ACP} chat --sandbox");
    let mut screen = Screen::start(&project, 80, 24, &confined);
    screen.until("Ask");
    read(&mut screen);
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));

    let mut screen = chat(&project, 80, 24);
    screen.key("\u{f}");
    screen.until("› /read src/main.rs");
}

#[test]
fn a_terminal_of_another_size_shows_the_same() {
    let project = Project::new();
    let mut screen = chat(&project, 80, 24);
    screen.say("/help");
    screen.until("What is to be done?");
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
    let project = Project::new();
    let mut screen = chat(&project, 80, 24);
    screen.key("?");
    screen.until("╭ Help");
    is_golden(&mut screen, &project, "help-80x24");
    screen.key(ESCAPE);
    screen.until_gone("╭ Help");
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    for how in ["quit", "ctrl-c twice", "TERM", "HUP"] {
        let project = Project::new();
        let line = format!(
            "stty -a > before; {ACP} chat & echo $! > chat; fg > /dev/null; stty -a > after; echo given back"
        );
        let line = format!("bash -c 'set -m; {line}'");
        let mut screen = Screen::start(&project, 80, 24, &line);
        screen.until("What is to be done?");
        screen.until("Ask");
        let agent = agent_of(&project);
        let chat: i32 = project.read("chat").trim().parse().unwrap();
        let chat = rustix::process::Pid::from_raw(chat).unwrap();
        match how {
            "quit" => screen.key("\u{11}"),
            "ctrl-c twice" => {
                screen.key("\u{3}");
                screen.until("Ctrl-C again ends the chat");
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
fn many_lines_that_are_pasted_are_one_thing() {
    let project = Project::new();
    let mut screen = chat(&project, 80, 24);
    let lines: String = (0..200).map(|n| format!("line {n}\r")).collect();
    screen.key(&format!("\u{1b}[200~{lines}\u{1b}[201~"));
    screen.until("pasted 200 lines");
}

#[test]
fn an_agent_that_is_not_there_or_ends_at_once_is_told_of() {
    let project = Project::new();
    let nowhere = format!("{ACP} chat -- no-such-agent");
    let mut screen = Screen::start(&project, 80, 24, &nowhere);
    screen.until("no-such-agent is gone: it could not be started");
    screen.until("r: start again");
    drop(screen);

    let usage = format!("{ACP} chat -- sh -c 'echo usage: agent --acp >&2; exit 2'");
    let mut screen = Screen::start(&project, 80, 24, &usage);
    screen.until("sh is gone: it ended: exit code 2");
    screen.until("usage: agent --acp");
    drop(screen);

    let hangs = format!("{ACP} chat -- sh -c 'echo loading the model >&2; sleep 1000'");
    let mut screen = Screen::start(&project, 80, 24, &hangs);
    screen.until("starting sh");
    screen.until("loading the model");
    screen.until("sh has not answered yet; Ctrl-Q ends the chat");
    is_golden_but_for_time(&screen);
    screen.key("\u{11}");
    assert_eq!(screen.end().0, Some(0));
}

/// It says how long it has taken, on the line for what goes on.
#[track_caller]
fn is_golden_but_for_time(screen: &Screen) {
    let text = screen.text();
    let line = text
        .lines()
        .find(|line| line.contains("starting sh"))
        .unwrap();
    assert!(line.trim_end().ends_with(" s"), "{line}");
}

#[test]
fn without_a_terminal_it_says_what_to_do() {
    let project = Project::new();
    let output = project.acp(&["chat"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("acp chat needs a terminal"), "{said}");
    assert!(said.contains("acp run"), "{said}");
}
