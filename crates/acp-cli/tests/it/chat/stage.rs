//! Helper functions that start chats, play steps and inspect the screen.

use std::time::{Duration, Instant};

use acp_config::themes::{ThemeColor, builtin_theme};
use serde_json::{Value, json};

use super::*;

/// The maximum time to wait for an expected event.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Starts a chat with the bundled agent, which executes typed commands instead of using a model.
pub(crate) fn start_chat(project: &TestProject, columns: u16, rows: u16) -> ChatScreen {
    let mut screen = start_chat_with_args(project, columns, rows, "");
    screen.wait_for("Ask");
    screen
}

/// Starts a chat with these arguments.
pub(crate) fn start_chat_with_args(
    project: &TestProject,
    columns: u16,
    rows: u16,
    args: &str,
) -> ChatScreen {
    let mut screen = ChatScreen::start(project, columns, rows, &format!("{ACP} chat {args}"));
    screen.wait_for("Type a prompt");
    screen
}

/// Starts a chat with the [`player`], and waits until its session is open.
pub(crate) fn start_with_player(
    project: &TestProject,
    columns: u16,
    rows: u16,
    flags: &str,
) -> ChatScreen {
    write_agents_config(project, &[("player", &format!("--player {flags}"))]);
    let mut screen = start_chat_with_args(project, columns, rows, "--agent player");
    screen.wait_for("· Player");
    screen
}

/// Returns the color of text with this role in the theme for dark terminals, which tests get by default.
pub(crate) fn theme_color(role: ThemeRole) -> vt100::Color {
    let theme = builtin_theme(&"dark".parse().unwrap()).unwrap();
    match theme.style(role).color {
        Some(ThemeColor::Rgb(r, g, b)) => vt100::Color::Rgb(r, g, b),
        other => panic!("{role:?} has no color of its own: {other:?}"),
    }
}

/// Checks that a text on the screen begins in the color of this role.
#[track_caller]
pub(crate) fn assert_color(screen: &ChatScreen, text: &str, role: ThemeRole) {
    let color = find_cell(screen, text).fgcolor();
    assert_eq!(color, theme_color(role), "{text}\n{}", screen.text());
}

/// Configures agents under these names. Each agent is this program, run with the given flags.
pub(crate) fn write_agents_config(project: &TestProject, agents: &[(&str, &str)]) {
    let mut config = String::new();
    for (name, flags) in agents {
        let script = itself::agent_script("chat::run_as_agent", flags);
        let file = project.file(&format!(".{name}.sh"));
        std::fs::write(&file, script).unwrap();
        let file = file.display();
        config.push_str(&format!(
            "[agents.{name}]\ncommand = [\"sh\", \"{file}\"]\n\n"
        ));
    }
    project.write_config("config.toml", &config);
}

/// Runs the agent selected by the flags.
pub(crate) fn run_agent(flags: &[String]) {
    if flags.iter().any(|flag| flag == "--player") {
        player::run_player(flags);
    } else {
        common::agent::run_agent(flags);
    }
}

/// Makes the [`player`] play these steps, given as a JSON array.
pub(crate) fn play_steps(project: &TestProject, screen: &mut ChatScreen, steps: &Value) {
    project.write_file(".steps.json", &steps.to_string());
    screen.send_line("play .steps.json");
}

/// Returns a step that sends a chunk of the agent's message.
pub(crate) fn message_step(text: &str) -> Value {
    chunk_step("agent_message_chunk", text)
}

/// Returns a step that sends a chunk of the agent's thoughts.
pub(crate) fn thought_step(text: &str) -> Value {
    chunk_step("agent_thought_chunk", text)
}

fn chunk_step(kind: &str, text: &str) -> Value {
    json!({"update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}})
}

/// Returns a step that reports a new tool call, or updates an existing one if no title is given.
pub(crate) fn tool_call_step(fields: Value) -> Value {
    let mut update = fields;
    let known = update.get("title").is_none();
    let kind = if known {
        "tool_call_update"
    } else {
        "tool_call"
    };
    update["sessionUpdate"] = json!(kind);
    json!({ "update": update })
}

/// Returns a step that makes the agent wait until a file with this name exists in the project.
pub(crate) fn wait_step(file: &str) -> Value {
    json!({ "wait": file })
}

/// Returns the most recent value that the agent has recorded.
#[track_caller]
pub(crate) fn read_record(project: &TestProject) -> Value {
    serde_json::from_str(&project.read_file(player::RECORD_FILE)).unwrap()
}

/// Waits until the agent has recorded this value.
#[track_caller]
pub(crate) fn wait_for_record(project: &TestProject, what: &Value) {
    let begun = Instant::now();
    while !project.file(player::RECORD_FILE).exists() || read_record(project) != *what {
        assert!(begun.elapsed() < TIMEOUT, "not heard: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until keys count as an answer, which is 300 ms after the last key was typed.
pub(crate) fn wait_until_question_accepts_keys() {
    std::thread::sleep(Duration::from_millis(400));
}

/// Quits a chat when its turn has ended. One that is working would have to be asked twice.
pub(crate) fn quit(screen: &mut ChatScreen) {
    screen.wait_until_gone("Esc: cancel");
    screen.send_keys("\u{11}");
}

/// Waits until the screen matches the golden screen. With `UPDATE_GOLDEN=1`, saves it as the new golden screen instead.
#[track_caller]
pub(crate) fn assert_golden(screen: &mut ChatScreen, project: &TestProject, name: &str) {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/chat/golden");
    let file = directory.join(format!("{name}.txt"));
    let root = project.path().display().to_string();
    let shown = |text: &str| hide_times(&hide_path(&root, text)) + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        screen.settle();
        std::fs::write(&file, shown(&screen.text())).unwrap();
        let page = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
        std::fs::write(page, screen.to_html()).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
    screen.wait_for_matching_text(&format!("as in {name}.txt:\n{golden}"), |text| {
        shown(text) == golden
    });
}

/// Replaces the project's path, which is different in each run, even where a popup covers part of it.
fn hide_path(root: &str, text: &str) -> String {
    let lines = text.lines().map(|line| {
        if let Some((before, after)) = line.split_once(root) {
            // What follows stays in its column.
            let project = format!("{:<wide$}", "/project", wide = root.chars().count());
            return format!("{before}{project}{after}").trim_end().to_owned();
        }
        let rest = line.strip_prefix("  ").unwrap_or_default();
        let both = rest.chars().zip(root.chars());
        let seen = both.take_while(|(shown, known)| shown == known).count();
        let hidden = rest
            .chars()
            .nth(seen)
            .is_some_and(|next| "│╭╰".contains(next));
        match hidden {
            true => line.replacen(&root[..seen], &"…".repeat(seen), 1),
            false => line.to_owned(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces text that varies with time: spinners and turn durations.
fn hide_times(text: &str) -> String {
    let turning = |c: char| {
        if "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏".contains(c) {
            '⠿'
        } else {
            c
        }
    };
    let text: String = text.chars().map(turning).collect();
    let Some(end) = text.find(" s   Esc: cancel") else {
        return text;
    };
    let (before, after) = text.split_at(end);
    let before = before.trim_end_matches(|c: char| c.is_ascii_digit());
    format!("{before}0{after}")
}

/// Runs a turn to completion.
pub(crate) fn run_read_turn(screen: &mut ChatScreen) {
    screen.send_line("/read src/main.rs");
    screen.wait_for("✓ ▤ Read src/main.rs");
    screen.wait_until_gone("Esc: cancel");
}

pub(crate) fn write_hello_file(project: &TestProject) {
    std::fs::create_dir_all(project.file("src")).unwrap();
    project.write_file("src/main.rs", "fn main() {\n    println!(\"hi\");\n}\n");
}

/// Waits until this code has syntax colors. They can take a while, since the language definitions are unpacked in the
/// background.
#[track_caller]
pub(crate) fn assert_colored(screen: &mut ChatScreen, code: &str) {
    screen.wait_for_matching_screen(&format!("{code} in colors"), |screen| {
        find_cell(screen, code).fgcolor() != vt100::Color::Default
    });
}

/// Returns the cell where a text begins.
#[track_caller]
pub(crate) fn find_cell<'a>(screen: &'a ChatScreen, text: &str) -> &'a vt100::Cell {
    let (row, column) = find_position(screen, text);
    screen.screen().cell(row, column).unwrap()
}

/// Returns the row and column where a text begins.
#[track_caller]
pub(crate) fn find_position(screen: &ChatScreen, text: &str) -> (u16, u16) {
    let (rows, columns) = screen.screen().size();
    for row in 0..rows.get() {
        let cells = (0..columns.get()).filter_map(|column| {
            let cell = screen.screen().cell(row, column)?;
            (!cell.is_wide_continuation()).then_some((column, cell))
        });
        let mut line = String::new();
        let mut begins = Vec::new();
        for (column, cell) in cells {
            begins.push((line.len(), column));
            line.push_str(if cell.has_contents() {
                cell.contents()
            } else {
                " "
            });
        }
        if let Some(at) = line.find(text) {
            let column = begins.iter().find(|(begin, _)| *begin == at);
            return (row, column.expect("a text begins with a cell").1);
        }
    }
    panic!("no {text}:\n{}", screen.text());
}

/// Returns the process id of the agent that is running in the project.
pub(crate) fn agent_pid(project: &TestProject) -> rustix::process::Pid {
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

/// Returns the process id of a child's parent.
pub(crate) fn parent_pid(child: rustix::process::Pid) -> rustix::process::Pid {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.as_raw_pid())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent = parent.unwrap().trim().parse().unwrap();
    rustix::process::Pid::from_raw(parent).unwrap()
}

/// Waits until a process has exited, even if its parent has not yet waited for it.
#[track_caller]
pub(crate) fn wait_until_exited(process: rustix::process::Pid) {
    let begun = Instant::now();
    let file = format!("/proc/{}/status", process.as_raw_pid());
    let runs = || std::fs::read_to_string(&file).is_ok_and(|s| !s.contains("State:\tZ"));
    while runs() {
        assert!(begun.elapsed() < TIMEOUT, "{process:?} goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
}
