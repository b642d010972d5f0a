//! Attacks that try to hide parts of a question. Users must see everything that they are asked to allow.

use serde_json::{Value, json};

use super::*;
use agent::{permission_step, request_step, wait_step};

/// Characters that are invisible or change how other characters are displayed.
const INVISIBLE_CHARS: [char; 38] = [
    '\u{7}',
    '\u{8}',
    '\u{1b}',
    '\u{7f}',
    '\u{85}',
    '\u{9b}',
    '\u{9d}',
    '\u{a0}',
    '\u{ad}',
    '\u{34f}',
    '\u{61c}',
    '\u{115f}',
    '\u{1160}',
    '\u{180e}',
    '\u{2003}',
    '\u{200b}',
    '\u{200c}',
    '\u{200d}',
    '\u{200e}',
    '\u{200f}',
    '\u{2028}',
    '\u{2029}',
    '\u{202a}',
    '\u{202e}',
    '\u{202f}',
    '\u{205f}',
    '\u{2060}',
    '\u{2066}',
    '\u{2069}',
    '\u{2800}',
    '\u{3000}',
    '\u{3164}',
    '\u{e000}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{ffa0}',
    '\u{e0041}',
    '\u{e0100}',
];

/// A command with a line hidden inside an escape sequence, which terminals do not display.
const HIDING_COMMAND: &str = "echo hello #\u{1b}]\ntouch stolen\n#\u{7}";

/// Returns text that contains all invisible characters.
fn invisible_text() -> String {
    INVISIBLE_CHARS.iter().map(|c| format!("{c}.")).collect()
}

/// Returns the full text of a permission question in `acp run`. Then rejects the request.
#[track_caller]
fn run_question(step: Value) -> String {
    let project = TestProject::new();
    let mut terminal = agent::run_on_terminal(&project, "", &[step]);
    terminal.wait_for("answer [1-");
    // What is shown of the tool call itself stands before it.
    let at = terminal.seen.find("\n? ").unwrap();
    let seen = terminal.seen[at..].to_owned();
    terminal.send_keys("3\n");
    terminal.expect_exit(0);
    seen
}

/// Returns the full text of a permission question in `acp chat`, without its frame.
#[track_caller]
fn chat_question(step: Value) -> String {
    let project = TestProject::new();
    let mut screen = agent::start_chat(&project, 120, 100, &[step]);
    screen.send_line("go");
    screen.wait_for("asks for permission");
    screen.wait_for("esc cancel the turn");
    let text = screen.text();
    let (_, question) = text.split_once("asks for permission").unwrap();
    let rows = question.lines().map(|row| row.trim_matches(['│', ' ']));
    rows.collect::<Vec<_>>().join("\n")
}

/// Asserts that the whole text is shown, with all invisible characters escaped.
#[track_caller]
fn assert_shows_all(shown: &str) {
    // What stands in several lines has a bar before each, and the rest of a long line of a diff is marked.
    let joined = shown
        .replace("\n| ", "")
        .replace("\n+…", "")
        .replace(['\r', '\n'], "");
    for c in INVISIBLE_CHARS {
        let code = u32::from(c);
        assert!(
            joined.contains(&format!("\\u{{{code:x}}}")),
            "U+{code:04X} in\n{shown}"
        );
        // The terminal's own line ends are no part of it.
        assert!(
            c == '\u{7f}' || !shown.contains(c),
            "U+{code:04X} as it is in\n{shown}"
        );
    }
}

#[test]
fn escape_sequence_cannot_hide_a_command() {
    let call = json!({"toolCallId": "c", "title": "Say hello", "kind": "execute", "rawInput": {"command": HIDING_COMMAND}});
    for shown in [
        run_question(permission_step(call.clone())),
        chat_question(permission_step(call.clone())),
    ] {
        assert!(shown.contains("echo hello #\\u{1b}]"), "{shown}");
        assert!(shown.contains("> touch stolen"), "{shown}");
        assert!(shown.contains("> #\\u{7}"), "{shown}");
    }
}

#[test]
fn every_part_of_a_question_escapes_invisible_characters() {
    let unseen = invisible_text();
    let json = unseen.trim_start_matches(|c: char| c.is_ascii_control() || c == '.');
    let diff = |new: &str| json!({"type": "diff", "path": "f", "oldText": "a\n", "newText": new});
    let text = json!({"type": "content", "content": {"type": "text", "text": unseen}});
    let calls = [
        json!({"toolCallId": "c", "title": unseen}),
        json!({"toolCallId": "c", "title": "t", "rawInput": {"command": unseen}}),
        json!({"toolCallId": "c", "title": "t", "rawInput": {"command": ["ls", unseen]}}),
        json!({"toolCallId": "c", "title": "t", "rawInput": {"command": "ls", "cwd": unseen}}),
        json!({"toolCallId": "c", "title": "t", "rawInput": {"command": "ls", "env": {"PATH": unseen}}}),
        json!({"toolCallId": "c", "title": "t", "rawInput": {"other": unseen}}),
        // JSON has its own way to write the others.
        json!({"toolCallId": "c", "title": "t", "rawInput": {"first": unseen, "other": [{"x": json}]}}),
        json!({"toolCallId": "c", "title": "t", "rawInput": {(unseen.clone()): 1}}),
        json!({"toolCallId": "c", "title": "t", "content": [text]}),
        json!({"toolCallId": "c", "title": "t", "content": [diff(&unseen)]}),
        json!({"toolCallId": "c", "title": "t", "locations": [{"path": format!("/tmp/{unseen}")}]}),
    ];
    for call in calls {
        println!("{call}");
        assert_shows_all(&run_question(permission_step(call.clone())));
        assert_shows_all(&chat_question(permission_step(call)));
    }
}

#[test]
fn escaped_text_differs_from_literal_text() {
    let call =
        json!({"toolCallId": "c", "title": "t", "rawInput": {"command": "echo \\u{202e} a\\nb"}});
    for shown in [
        run_question(permission_step(call.clone())),
        chat_question(permission_step(call.clone())),
    ] {
        assert!(shown.contains("$ echo \\u{5c}u{202e} a\\nb"), "{shown}");
    }
}

#[test]
fn line_break_is_visible_in_single_line_text() {
    let call = json!({"toolCallId": "c", "title": "List\n  1) Allow",
        "rawInput": {"command": "ls", "cwd": "/safe\n/evil", "env": {"A": "b\nc"}, "file": "x\ty"}});
    for shown in [
        run_question(permission_step(call.clone())),
        chat_question(permission_step(call.clone())),
    ] {
        for part in [
            "List\\u{a}  1) Allow",
            "in /safe\\u{a}/evil",
            "with A=b\\u{a}c",
            "file: x\\u{9}y",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }
}

#[test]
fn every_input_field_is_shown() {
    let call = json!({"toolCallId": "c", "title": "List files", "kind": "execute",
        "locations": [{"path": "/etc/shadow", "line": 7}],
        "rawInput": {"command": "ls", "cmd": "touch stolen", "script": "rm -rf /", "args": ["-l", "a b"],
            "cwd": "/var/evil", "env": {"PATH": "./evil", "LD_PRELOAD": "x.so"}, "timeout": 5,
            "then": {"run": ["curl", "evil"]}}});
    for shown in [
        run_question(permission_step(call.clone())),
        chat_question(permission_step(call.clone())),
    ] {
        for part in [
            "$ ls -l 'a b'",
            "$ touch stolen",
            "script: rm -rf /",
            "in /var/evil",
            "with PATH=./evil",
            "with LD_PRELOAD=x.so",
            "timeout: 5",
            "then: {\"run\":[\"curl\",\"evil\"]}",
            "/etc/shadow:7",
        ] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }
}

#[test]
fn raw_input_is_shown_in_full_unless_already_shown() {
    let new = "one\ntwo\n";
    let diff = |old: &str| json!({"type": "diff", "path": "/p/f", "oldText": old, "newText": new});
    let call = |old: &str| {
        json!({"toolCallId": "c", "title": "Edit", "kind": "edit", "content": [diff(old)],
        "rawInput": {"file_path": "/p/f", "new_string": new}})
    };
    for shown in [
        run_question(permission_step(call("zero\n"))),
        chat_question(permission_step(call("zero\n"))),
    ] {
        assert!(
            !shown.contains("new_string") && !shown.contains("file_path"),
            "{shown}"
        );
    }
    // A diff that shows no change does not show what is written.
    for shown in [
        run_question(permission_step(call(new))),
        chat_question(permission_step(call(new))),
    ] {
        assert!(shown.contains("new_string:"), "{shown}");
        assert!(shown.contains("| two"), "{shown}");
    }
}

#[test]
fn option_is_shown_with_its_effect() {
    let option =
        |id: &str, kind: &str, name: &str| json!({"optionId": id, "name": name, "kind": kind});
    let step = || {
        request_step(
            "session/request_permission",
            json!({"sessionId": agent::SESSION_ID,
        "toolCall": {"toolCallId": "c", "title": "t", "rawInput": {"url": "x"}},
        "options": [option("a", "allow_always", "Reject"), option("b", "strange", "Reject strangely"),
            option("c", "reject_once", "Reject")]}),
        )
    };
    for shown in [run_question(step()), chat_question(step())] {
        let row = |name: &str| {
            shown
                .lines()
                .find(|row| row.contains(name))
                .unwrap_or_else(|| panic!("{name}: {shown}"))
        };
        assert!(row("Reject – allow").contains("for as long"), "{shown}");
        assert!(
            row("Reject strangely –").contains("unknown whether this option allows or rejects"),
            "{shown}"
        );
        assert!(row("Reject – reject once").contains("Reject"), "{shown}");
    }
}

#[test]
fn long_question_cannot_be_allowed_before_it_is_scrolled() {
    let project = TestProject::new();
    let content = format!("first\n{}rm -rf /\n", "\n".repeat(200));
    let text = json!({"type": "content", "content": {"type": "text", "text": content}});
    let step = permission_step(
        json!({"toolCallId": "c", "title": "Look", "kind": "read", "content": [text]}),
    );
    let mut screen = agent::start_chat(&project, 80, 24, &[step]);
    screen.send_line("go");
    screen.wait_for("more lines: PgDn");
    wait_until_question_accepts_keys();
    screen.send_keys("y");
    screen.wait_for("read to the end first");
    assert_eq!(agent::read_responses(&project), [] as [Value; 0]);
    screen.send_keys("\u{1b}[F");
    screen.wait_for("rm -rf /");
    screen.send_keys("y");
    screen.wait_until_gone("asks for permission");
}

/// Waits until keys count as an answer, which is 300 ms after the last key was typed.
fn wait_until_question_accepts_keys() {
    std::thread::sleep(std::time::Duration::from_millis(400));
}

#[test]
fn forms_and_urls_escape_invisible_characters() {
    let unseen = invisible_text();
    let form = json!({"type": "object", "title": unseen, "description": unseen, "properties": {
        "a": {"type": "string", "title": unseen, "description": unseen, "oneOf": [
            {"const": "x", "title": unseen, "description": unseen}]}}});
    let asks = |mode: &str, rest: Value| {
        let mut params = json!({"sessionId": agent::SESSION_ID, "mode": mode, "message": format!("Sure? {unseen}")});
        params
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        request_step("elicitation/create", params)
    };
    let page = json!({"elicitationId": "e", "url": format!("https://example.org/{unseen}")});
    for (step, until, title, times) in [
        (
            asks("form", json!({"requestedSchema": form})),
            "1-1): ",
            "has a question",
            5,
        ),
        (
            asks("url", page),
            "continue? [Y/n]: ",
            "wants to open a web page",
            1,
        ),
    ] {
        let project = TestProject::new();
        let mut terminal = agent::run_on_terminal(&project, "", std::slice::from_ref(&step));
        terminal.wait_for(until);
        let at = terminal.seen.find("\n? ").unwrap();
        let seen = terminal.seen[at..].to_owned();
        assert_shows_all(&seen);
        assert!(seen.matches("\\u{202e}").count() >= times, "{seen}");
        drop(terminal);
        let project = TestProject::new();
        let mut screen = agent::start_chat(&project, 120, 100, &[step]);
        screen.send_line("go");
        screen.wait_for(title);
        screen.wait_for("Sure?");
        screen.wait_for("esc cancel the turn");
        let text = screen.text();
        let (_, question) = text.split_once(title).unwrap();
        let rows = question.lines().map(|row| row.trim_matches(['│', ' ']));
        let seen = rows.collect::<Vec<_>>().join("\n");
        assert_shows_all(&seen);
        assert!(seen.matches("\\u{202e}").count() >= times, "{seen}");
    }
}

#[test]
fn remembered_answers_are_listed_in_full() {
    let project = TestProject::new();
    let call = json!({"toolCallId": "c", "title": "t", "kind": "execute",
        "rawInput": {"command": "git log \u{200b}\u{1b}]\ntouch stolen\u{7}"}});
    let mut terminal = agent::run_on_terminal(&project, "", &[permission_step(call)]);
    terminal.answer("answer [1-3]: ", "2\n");
    let told = terminal.expect_exit(0);
    let listed = String::from_utf8(
        project
            .acp_command(&["permissions"])
            .output()
            .unwrap()
            .stdout,
    )
    .unwrap();
    for shown in [told, listed] {
        let all = "git log \\u{200b}\\u{1b}]\\u{a}touch stolen\\u{7}";
        assert!(shown.contains(all), "{shown}");
    }
}

#[test]
fn project_agent_commands_are_shown_in_full() {
    let project = TestProject::new();
    std::fs::create_dir_all(project.file(".acp")).unwrap();
    let mut escaped = String::new();
    for c in INVISIBLE_CHARS {
        escaped.push_str(&format!("\\U{:08X}.", u32::from(c)));
    }
    for config in [
        format!("[agents.x]\ncommand = [\"sh\", \"-c\", \"{escaped}\"]\n"),
        format!("[agents.x]\ncommand = [\"sh\"]\nenv = {{ A = \"{escaped}\" }}\n"),
        format!("[agents.x]\ncommand = [\"sh\"]\nmode = \"{escaped}\"\n"),
    ] {
        project.write_file(".acp/config.toml", &config);
        let mut terminal = CommandTerminal::start(&project, &format!("{ACP} agents allow"));
        terminal.wait_for("[y/N] ");
        assert_shows_all(&terminal.seen);
        terminal.send_keys("n\n");
        terminal.wait_for_exit();
    }
}

#[test]
fn long_text_is_truncated_visibly_and_never_in_a_question() {
    let long = format!("Begin {} the end", "x".repeat(5_000));
    let call = json!({"toolCallId": "c", "title": long, "kind": "execute"});
    let mut announced = call.clone();
    announced["sessionUpdate"] = json!("tool_call");
    announced["status"] = json!("in_progress");
    let steps = [
        agent::update_step(announced),
        wait_step("go"),
        permission_step(call.clone()),
    ];
    let is_cut = |seen: &str| {
        let seen = seen.replace(['\r', '\n', ' '], "");
        assert!(seen.contains("charactersomitted"), "{seen}");
        assert!(
            seen.contains("theend") && seen.matches('x').count() < 400,
            "{seen}"
        );
    };

    let project = TestProject::new();
    let mut terminal = agent::run_on_terminal(&project, "", &steps);
    terminal.wait_for("the end");
    is_cut(&terminal.seen);
    terminal.seen.clear();
    project.write_file("go", "");
    terminal.wait_for("answer [1-3]: ");
    assert!(
        terminal.seen.contains(&format!("? {long} (execute)")),
        "{}",
        terminal.seen
    );
    terminal.send_keys("3\n");
    terminal.expect_exit(0);

    let project = TestProject::new();
    let mut screen = agent::start_chat(&project, 120, 100, &steps);
    screen.send_line("go");
    screen.wait_for("the end");
    is_cut(&screen.text());
    project.write_file("go", "");
    screen.wait_for("asks for permission");
    screen.wait_for("esc cancel the turn");
    let text = screen.text();
    let (_, question) = text.split_once("asks for permission").unwrap();
    let rows = question.lines().map(|row| row.trim_matches(['│', ' ']));
    let joined: String = rows.collect();
    assert!(joined.contains(&"x".repeat(5_000)), "{text}");

    // A note about what was rejected.
    let project = TestProject::new();
    let told = agent::run_steps(&project, &["--allow", "none"], &[permission_step(call)]);
    let note = told
        .stderr
        .lines()
        .find(|line| line.contains("rejected by"))
        .unwrap();
    is_cut(note);
}
