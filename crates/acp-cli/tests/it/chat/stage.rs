//! What the tests begin with and look with.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

/// How long something that must happen may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A chat with the bundled agent, which answers typed commands.
pub(crate) fn chat(project: &TestProject, columns: u16, rows: u16) -> ChatScreen {
    let mut screen = begin(project, columns, rows, "");
    screen.until("Ask");
    screen
}

/// A chat with these arguments.
pub(crate) fn begin(project: &TestProject, columns: u16, rows: u16, args: &str) -> ChatScreen {
    let mut screen = ChatScreen::start(project, columns, rows, &format!("{ACP} chat {args}"));
    screen.until("Type a prompt");
    screen
}

/// A chat with the [`player`], whose session is open.
pub(crate) fn with_player(
    project: &TestProject,
    columns: u16,
    rows: u16,
    flags: &str,
) -> ChatScreen {
    configure(project, &[("player", &format!("--player {flags}"))]);
    let mut screen = begin(project, columns, rows, "--agent player");
    screen.until("· Player");
    screen
}

/// Agents by name, each this program with flags.
pub(crate) fn configure(project: &TestProject, agents: &[(&str, &str)]) {
    let mut config = String::new();
    for (name, flags) in agents {
        let script = itself::script("chat::the_agent", flags);
        let file = project.file(&format!(".{name}.sh"));
        std::fs::write(&file, script).unwrap();
        let file = file.display();
        config.push_str(&format!(
            "[agents.{name}]\ncommand = [\"sh\", \"{file}\"]\n\n"
        ));
    }
    project.configure("config.toml", &config);
}

/// Is the agent that these flags are of.
pub(crate) fn be_the_agent(flags: &[String]) {
    if flags.iter().any(|flag| flag == "--player") {
        player::be(flags);
    } else {
        common::agent::be(flags);
    }
}

/// Has the [`player`] play these steps, a JSON array.
pub(crate) fn play(project: &TestProject, screen: &mut ChatScreen, steps: &Value) {
    project.write(".steps.json", &steps.to_string());
    screen.say("play .steps.json");
}

/// A piece of the agent's answer.
pub(crate) fn says(text: &str) -> Value {
    chunk("agent_message_chunk", text)
}

/// A piece of its thoughts.
pub(crate) fn thinks(text: &str) -> Value {
    chunk("agent_thought_chunk", text)
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}})
}

/// A tool call, or what has become of it.
pub(crate) fn tool_call(fields: Value) -> Value {
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

/// The agent waits until the project has a file of this name.
pub(crate) fn waits(file: &str) -> Value {
    json!({ "wait": file })
}

/// What the agent was told, or answered, as it has written it down.
#[track_caller]
pub(crate) fn heard(project: &TestProject) -> Value {
    serde_json::from_str(&project.read(player::HEARD)).unwrap()
}

/// Waits until the agent has been told this.
#[track_caller]
pub(crate) fn until_heard(project: &TestProject, what: &Value) {
    let begun = Instant::now();
    while !project.file(player::HEARD).exists() || heard(project) != *what {
        assert!(begun.elapsed() < PATIENCE, "not heard: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits as a person does who reads what is asked: keys count once nothing was typed for 300 ms.
pub(crate) fn read_what_is_asked() {
    std::thread::sleep(Duration::from_millis(400));
}

/// Waits until the screen is as it was when someone looked at it; `UPDATE_GOLDEN=1` takes it as it is.
#[track_caller]
pub(crate) fn is_golden(screen: &mut ChatScreen, project: &TestProject, name: &str) {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/chat/golden");
    let file = directory.join(format!("{name}.txt"));
    let root = project.path().display().to_string();
    let shown = |text: &str| still(&without(&root, text)) + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        screen.settle();
        std::fs::write(&file, shown(&screen.text())).unwrap();
        let page = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.html"));
        std::fs::write(page, screen.page()).unwrap();
        return;
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
    screen.until_it(&format!("as in {name}.txt:\n{golden}"), |text| {
        shown(text) == golden
    });
}

/// The text without where the project is, which is another place each time; also where a window hides half of it.
fn without(root: &str, text: &str) -> String {
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

/// The text with what moves by itself standing still: signs that turn, and how long a turn has taken.
fn still(text: &str) -> String {
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

/// A turn, to its end.
pub(crate) fn read(screen: &mut ChatScreen) {
    screen.say("/read src/main.rs");
    screen.until("✓ ▤ Read src/main.rs");
    screen.until_gone("Esc: cancel");
}

pub(crate) fn hello(project: &TestProject) {
    std::fs::create_dir_all(project.file("src")).unwrap();
    project.write("src/main.rs", "fn main() {\n    println!(\"hi\");\n}\n");
}

/// Waits until this code has the colors of its language: at first it may have none, since they are unpacked while the
/// chat is at work.
#[track_caller]
pub(crate) fn colored(screen: &mut ChatScreen, code: &str) {
    screen.until_so(&format!("{code} in colors"), |screen| {
        cell(screen, code).fgcolor() != vt100::Color::Default
    });
}

/// The cell where a text begins.
#[track_caller]
pub(crate) fn cell<'a>(screen: &'a ChatScreen, text: &str) -> &'a vt100::Cell {
    let (row, column) = find(screen, text);
    screen.picture().cell(row, column).unwrap()
}

/// Where a text is on the screen: row and column.
#[track_caller]
pub(crate) fn find(screen: &ChatScreen, text: &str) -> (u16, u16) {
    let (rows, columns) = screen.picture().size();
    for row in 0..rows.get() {
        let cells = (0..columns.get()).filter_map(|column| {
            let cell = screen.picture().cell(row, column)?;
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

/// The process of the agent that works in the project.
pub(crate) fn agent_of(project: &TestProject) -> rustix::process::Pid {
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

/// The process that has started this one.
pub(crate) fn parent_of(child: rustix::process::Pid) -> rustix::process::Pid {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.as_raw_pid())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    let parent = parent.unwrap().trim().parse().unwrap();
    rustix::process::Pid::from_raw(parent).unwrap()
}

/// Waits until a process has ended, whether or not anybody has asked how.
#[track_caller]
pub(crate) fn until_gone(process: rustix::process::Pid) {
    let begun = Instant::now();
    let file = format!("/proc/{}/status", process.as_raw_pid());
    let runs = || std::fs::read_to_string(&file).is_ok_and(|s| !s.contains("State:\tZ"));
    while runs() {
        assert!(begun.elapsed() < PATIENCE, "{process:?} goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
}
