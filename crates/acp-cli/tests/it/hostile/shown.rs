//! What a question hides: everything that a person is asked to allow must be seen.

use serde_json::{Value, json};

use super::*;
use agent::{ask, request, wait_for};

/// Characters that nobody sees, or that change how others are seen, each between two letters.
const UNSEEN: [char; 38] = [
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

/// The command that hides one behind an escape string which terminals swallow.
const SWALLOWED: &str = "echo hello #\u{1b}]\ntouch stolen\n#\u{7}";

/// A text with all of them.
fn unseen() -> String {
    UNSEEN.iter().map(|c| format!("{c}.")).collect()
}

/// A question of `acp run`, once all of it has been printed; it is answered with no.
#[track_caller]
fn question(step: Value) -> String {
    let project = TestProject::new();
    let mut terminal = agent::run_on_terminal(&project, "", &[step]);
    terminal.until("answer [1-");
    // What is shown of the tool call itself stands before it.
    let at = terminal.seen.find("\n? ").unwrap();
    let seen = terminal.seen[at..].to_owned();
    terminal.key("3\n");
    terminal.ends(0);
    seen
}

/// The same in the chat, on a screen with room for all of it, with what one sees of it on each row put together.
#[track_caller]
fn question_in_chat(step: Value) -> String {
    let project = TestProject::new();
    let mut screen = agent::chat(&project, 120, 100, &[step]);
    screen.say("go");
    screen.until("asks for permission");
    screen.until("esc cancel the turn");
    let text = screen.text();
    let (_, question) = text.split_once("asks for permission").unwrap();
    let rows = question.lines().map(|row| row.trim_matches(['│', ' ']));
    rows.collect::<Vec<_>>().join("\n")
}

/// That all of a text is shown, whatever is in it.
#[track_caller]
fn shows_all(shown: &str) {
    // What stands in several lines has a bar before each, and the rest of a long line of a diff is marked.
    let joined = shown
        .replace("\n| ", "")
        .replace("\n+…", "")
        .replace(['\r', '\n'], "");
    for c in UNSEEN {
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
fn an_escape_string_hides_no_command() {
    let call = json!({"toolCallId": "c", "title": "Say hello", "kind": "execute", "rawInput": {"command": SWALLOWED}});
    for shown in [
        question(ask(call.clone())),
        question_in_chat(ask(call.clone())),
    ] {
        assert!(shown.contains("echo hello #\\u{1b}]"), "{shown}");
        assert!(shown.contains("> touch stolen"), "{shown}");
        assert!(shown.contains("> #\\u{7}"), "{shown}");
    }
}

#[test]
fn nothing_is_unseen_in_any_part_of_a_question() {
    let unseen = unseen();
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
        shows_all(&question(ask(call.clone())));
        shows_all(&question_in_chat(ask(call)));
    }
}

#[test]
fn what_a_text_says_is_told_from_what_is_written_out() {
    let call =
        json!({"toolCallId": "c", "title": "t", "rawInput": {"command": "echo \\u{202e} a\\nb"}});
    for shown in [
        question(ask(call.clone())),
        question_in_chat(ask(call.clone())),
    ] {
        assert!(shown.contains("$ echo \\u{5c}u{202e} a\\nb"), "{shown}");
    }
}

#[test]
fn a_line_end_is_seen_in_what_is_shown_on_one_line() {
    let call = json!({"toolCallId": "c", "title": "List\n  1) Allow",
        "rawInput": {"command": "ls", "cwd": "/safe\n/evil", "env": {"A": "b\nc"}, "file": "x\ty"}});
    for shown in [
        question(ask(call.clone())),
        question_in_chat(ask(call.clone())),
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
fn every_field_of_the_input_is_shown() {
    let call = json!({"toolCallId": "c", "title": "List files", "kind": "execute",
        "locations": [{"path": "/etc/shadow", "line": 7}],
        "rawInput": {"command": "ls", "cmd": "touch stolen", "script": "rm -rf /", "args": ["-l", "a b"],
            "cwd": "/var/evil", "env": {"PATH": "./evil", "LD_PRELOAD": "x.so"}, "timeout": 5,
            "then": {"run": ["curl", "evil"]}}});
    for shown in [
        question(ask(call.clone())),
        question_in_chat(ask(call.clone())),
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
fn what_is_shown_exactly_is_not_shown_twice_and_nothing_else_is_left_out() {
    let new = "one\ntwo\n";
    let diff = |old: &str| json!({"type": "diff", "path": "/p/f", "oldText": old, "newText": new});
    let call = |old: &str| {
        json!({"toolCallId": "c", "title": "Edit", "kind": "edit", "content": [diff(old)],
        "rawInput": {"file_path": "/p/f", "new_string": new}})
    };
    for shown in [
        question(ask(call("zero\n"))),
        question_in_chat(ask(call("zero\n"))),
    ] {
        assert!(
            !shown.contains("new_string") && !shown.contains("file_path"),
            "{shown}"
        );
    }
    // A diff that shows no change does not show what is written.
    for shown in [question(ask(call(new))), question_in_chat(ask(call(new)))] {
        assert!(shown.contains("new_string:"), "{shown}");
        assert!(shown.contains("| two"), "{shown}");
    }
}

#[test]
fn an_option_is_shown_with_what_it_does() {
    let option =
        |id: &str, kind: &str, name: &str| json!({"optionId": id, "name": name, "kind": kind});
    let step = || {
        request(
            "session/request_permission",
            json!({"sessionId": agent::SESSION,
        "toolCall": {"toolCallId": "c", "title": "t", "rawInput": {"url": "x"}},
        "options": [option("a", "allow_always", "Reject"), option("b", "strange", "Reject strangely"),
            option("c", "reject_once", "Reject")]}),
        )
    };
    for shown in [question(step()), question_in_chat(step())] {
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
fn what_does_not_fit_is_no_yes_before_it_was_seen() {
    let project = TestProject::new();
    let content = format!("first\n{}rm -rf /\n", "\n".repeat(200));
    let text = json!({"type": "content", "content": {"type": "text", "text": content}});
    let step = ask(json!({"toolCallId": "c", "title": "Look", "kind": "read", "content": [text]}));
    let mut screen = agent::chat(&project, 80, 24, &[step]);
    screen.say("go");
    screen.until("more lines: PgDn");
    read_what_is_asked();
    screen.key("y");
    screen.until("read to the end first");
    assert_eq!(agent::answers(&project), [] as [Value; 0]);
    screen.key("\u{1b}[F");
    screen.until("rm -rf /");
    screen.key("y");
    screen.until_gone("asks for permission");
}

/// Waits as a person does who reads what is asked: keys count once nothing was typed for 300 ms.
fn read_what_is_asked() {
    std::thread::sleep(std::time::Duration::from_millis(400));
}

#[test]
fn nothing_is_unseen_in_a_form_or_an_address() {
    let unseen = unseen();
    let form = json!({"type": "object", "title": unseen, "description": unseen, "properties": {
        "a": {"type": "string", "title": unseen, "description": unseen, "oneOf": [
            {"const": "x", "title": unseen, "description": unseen}]}}});
    let asks = |mode: &str, rest: Value| {
        let mut params = json!({"sessionId": agent::SESSION, "mode": mode, "message": format!("Sure? {unseen}")});
        params
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        request("elicitation/create", params)
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
        terminal.until(until);
        let at = terminal.seen.find("\n? ").unwrap();
        let seen = terminal.seen[at..].to_owned();
        shows_all(&seen);
        assert!(seen.matches("\\u{202e}").count() >= times, "{seen}");
        drop(terminal);
        let project = TestProject::new();
        let mut screen = agent::chat(&project, 120, 100, &[step]);
        screen.say("go");
        screen.until(title);
        screen.until("Sure?");
        screen.until("esc cancel the turn");
        let text = screen.text();
        let (_, question) = text.split_once(title).unwrap();
        let rows = question.lines().map(|row| row.trim_matches(['│', ' ']));
        let seen = rows.collect::<Vec<_>>().join("\n");
        shows_all(&seen);
        assert!(seen.matches("\\u{202e}").count() >= times, "{seen}");
    }
}

#[test]
fn what_is_remembered_is_listed_to_the_last_character() {
    let project = TestProject::new();
    let call = json!({"toolCallId": "c", "title": "t", "kind": "execute",
        "rawInput": {"command": "git log \u{200b}\u{1b}]\ntouch stolen\u{7}"}});
    let mut terminal = agent::run_on_terminal(&project, "", &[ask(call)]);
    terminal.answer("answer [1-3]: ", "2\n");
    let told = terminal.ends(0);
    let listed = String::from_utf8(project.acp(&["permissions"]).output().unwrap().stdout).unwrap();
    for shown in [told, listed] {
        let all = "git log \\u{200b}\\u{1b}]\\u{a}touch stolen\\u{7}";
        assert!(shown.contains(all), "{shown}");
    }
}

#[test]
fn a_project_hides_nothing_of_what_its_agents_would_run() {
    let project = TestProject::new();
    std::fs::create_dir_all(project.file(".acp")).unwrap();
    let mut escaped = String::new();
    for c in UNSEEN {
        escaped.push_str(&format!("\\U{:08X}.", u32::from(c)));
    }
    for config in [
        format!("[agents.x]\ncommand = [\"sh\", \"-c\", \"{escaped}\"]\n"),
        format!("[agents.x]\ncommand = [\"sh\"]\nenv = {{ A = \"{escaped}\" }}\n"),
        format!("[agents.x]\ncommand = [\"sh\"]\nmode = \"{escaped}\"\n"),
    ] {
        project.write(".acp/config.toml", &config);
        let mut terminal = CommandTerminal::start(&project, &format!("{ACP} agents allow"));
        terminal.until("[y/N] ");
        shows_all(&terminal.seen);
        terminal.key("n\n");
        terminal.end();
    }
}

#[test]
fn what_is_long_is_cut_where_it_is_told_and_never_in_a_question() {
    let long = format!("Begin {} the end", "x".repeat(5_000));
    let call = json!({"toolCallId": "c", "title": long, "kind": "execute"});
    let mut announced = call.clone();
    announced["sessionUpdate"] = json!("tool_call");
    announced["status"] = json!("in_progress");
    let steps = [agent::update(announced), wait_for("go"), ask(call.clone())];
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
    terminal.until("the end");
    is_cut(&terminal.seen);
    terminal.seen.clear();
    project.write("go", "");
    terminal.until("answer [1-3]: ");
    assert!(
        terminal.seen.contains(&format!("? {long} (execute)")),
        "{}",
        terminal.seen
    );
    terminal.key("3\n");
    terminal.ends(0);

    let project = TestProject::new();
    let mut screen = agent::chat(&project, 120, 100, &steps);
    screen.say("go");
    screen.until("the end");
    is_cut(&screen.text());
    project.write("go", "");
    screen.until("asks for permission");
    screen.until("esc cancel the turn");
    let text = screen.text();
    let (_, question) = text.split_once("asks for permission").unwrap();
    let rows = question.lines().map(|row| row.trim_matches(['│', ' ']));
    let joined: String = rows.collect();
    assert!(joined.contains(&"x".repeat(5_000)), "{text}");

    // A note about what was rejected.
    let project = TestProject::new();
    let told = agent::run(&project, &["--allow", "none"], &[ask(call)]);
    let note = told
        .stderr
        .lines()
        .find(|line| line.contains("rejected by"))
        .unwrap();
    is_cut(note);
}
