//! Tests of `acp trace show`, on recorded traces and on traces written by the tests.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use crate::common::patient::TimedReader;
use crate::common::{ACP, CommandResult, TestProject};
use serde_json::{Value, json};

/// A trace written by the test itself.
struct ShowTrace(String);

impl ShowTrace {
    fn new() -> Self {
        let header = json!({"acp_trace": 1, "started": "2026-01-01T00:00:00Z", "command": ["my-agent"],
            "by": "acp 0", "secrets": "redacted"});
        Self(format!("{header}\n"))
    }

    fn with_message(mut self, at: u64, from: &str, message: &Value) -> Self {
        let record = json!({"t": at, "from": from, "len": 1, "msg": message});
        writeln!(self.0, "{record}").unwrap();
        self
    }

    fn with_chunk(self, at: u64, session: &str, text: &str) -> Self {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": session, "update": update});
        let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.with_message(at, "agent", &message)
    }

    fn with_record(mut self, record: &Value) -> Self {
        writeln!(self.0, "{record}").unwrap();
        self
    }

    /// Returns the output of `acp trace show` with these flags.
    fn show(&self, project: &TestProject, flags: &[&str], columns: Option<&str>) -> String {
        project.write_file("shown", &self.0);
        let mut command = project.acp_command(&["trace", "show", "shown"]);
        command.args(flags).env_remove("COLUMNS");
        if let Some(columns) = columns {
            command.env("COLUMNS", columns);
        }
        CommandResult::from_output(command.output().unwrap())
            .expect_code(0)
            .stdout
    }
}

/// Returns a trace with two sessions and some errors.
fn sample_trace() -> ShowTrace {
    let prompt = |id: i64, session: &str, text: &str| {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params})
    };
    let error = json!({"code": -32603, "message": "Internal error", "data": "out of tokens"});
    let read = json!({"jsonrpc": "2.0", "id": "r", "method": "fs/read_text_file",
        "params": {"sessionId": "one", "path": "/a.txt"}});
    ShowTrace::new()
        .with_message(1000, "client", &prompt(1, "one", "Say hello"))
        .with_message(1200, "client", &prompt(2, "two", "Fail"))
        .with_chunk(2000, "one", "Hel")
        .with_chunk(3000, "one", "lo\u{1b}[31m, ")
        .with_chunk(4000, "one", "you")
        .with_chunk(5000, "two", "Other")
        .with_message(6000, "agent", &read)
        .with_message(
            6500,
            "client",
            &json!({"jsonrpc": "2.0", "id": "r", "result": {"content": "abc"}}),
        )
        .with_message(
            251_000,
            "agent",
            &json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}),
        )
        .with_message(
            252_000,
            "agent",
            &json!({"jsonrpc": "2.0", "id": 2, "error": error}),
        )
        .with_record(&json!({"t": 252_500, "from": "agent", "len": 5, "noise": "debug"}))
        .with_record(&json!({"t": 253_000, "stderr": "went \u{1b}]0;wrong\u{7}"}))
        .with_record(&json!({"t": 254_000, "event": "exited", "code": 0}))
        .with_record(&json!({"t": 255_000, "event": "end"}))
}

/// Returns the line that contains this text.
#[track_caller]
fn find_line<'a>(shown: &'a str, part: &str) -> &'a str {
    let found = shown.lines().find(|line| line.contains(part));
    found.unwrap_or_else(|| panic!("no {part:?}: {shown}"))
}

#[test]
fn each_line_shows_time_sender_summary_and_duration() {
    let project = TestProject::new();
    let shown = sample_trace().show(&project, &[], None);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[0].contains("my-agent") && lines[0].contains("secrets redacted"),
        "{shown}"
    );
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let expected = [
        "0.001 +1.0 ms → session/prompt #1 one: Say hello",
        "0.001 +200 µs → session/prompt #2 two: Fail",
        // What would command the terminal is not in it.
        "0.002 +800 µs ← agent_message_chunk ×3 one: Hello, you",
        "0.005 +3.0 ms ← agent_message_chunk two: Other",
        "0.006 +1.0 ms ← fs/read_text_file #\"r\" one: /a.txt",
        "0.006 +500 µs → fs/read_text_file =\"r\" 500 µs one: 3 bytes",
        "0.251 +244 ms ← session/prompt =1 250 ms one: end_turn",
        "0.252 +1.0 ms ← session/prompt =2 251 ms two: -32603 Internal error: out of tokens",
        "0.253 +500 µs ← not a message debug",
        "0.253 +500 µs ! stderr went",
        "0.254 +1.0 ms · the agent exited with code 0",
        "0.255 +1.0 ms · end of recording",
    ];
    let shown: Vec<String> = lines[1..].iter().map(|line| words(line)).collect();
    assert_eq!(shown, expected);
    // The columns stand below each other.
    let column = |part: &str| summary_column(&lines, part);
    assert_eq!(column("one: Say hello"), column("one: end_turn"));
}

fn summary_column(lines: &[&str], part: &str) -> usize {
    let line = lines.iter().find(|line| line.contains(part)).unwrap();
    let before = line.split_once(part).unwrap().0;
    before.chars().count()
}

#[test]
fn filters_select_messages() {
    let project = TestProject::new();
    let trace = sample_trace();
    let names = |flags: &[&str]| -> Vec<String> {
        let shown = trace.show(&project, flags, None);
        let summary = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words[words.len() - 1].to_owned()
        };
        shown.lines().skip(1).map(summary).collect()
    };
    assert_eq!(names(&["--session", "two"]), ["Fail", "Other", "tokens"]);
    assert_eq!(names(&["--method", "fs/*"]), ["/a.txt", "bytes"]);
    assert_eq!(names(&["--method", "*_chunk"]), ["you", "Other"]);
    assert_eq!(names(&["--from", "client"]), ["hello", "Fail", "bytes"]);
    assert_eq!(names(&["--errors"]), ["tokens", "debug"]);
    assert_eq!(names(&["--errors", "--session", "two"]), ["tokens"]);
    let shown = trace.show(
        &project,
        &["--raw", "--method", "fs/read*", "--from", "agent"],
        None,
    );
    let json: String = shown.lines().skip(2).collect();
    let message: Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{json}: {e}"));
    assert_eq!(message["params"]["path"], "/a.txt");
    assert!(shown.lines().count() > 5, "{shown}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let project = TestProject::new();
    let long = "word ".repeat(300);
    let trace =
        ShowTrace::new()
            .with_chunk(1, "one", &long)
            .with_chunk(2, "two", &"漢字".repeat(100));
    for columns in [50, 80, 120] {
        let shown = trace.show(&project, &[], Some(&columns.to_string()));
        let lines: Vec<&str> = shown.lines().skip(1).collect();
        let width = |line: &&str| {
            line.chars()
                .map(|c| if c > '\u{2fff}' { 2 } else { 1 })
                .sum()
        };
        let widest: usize = lines.iter().map(width).max().unwrap();
        let note =
            "The trace ends here: recording is still in progress, or the file is truncated.".len();
        assert!(widest <= columns.max(note), "{widest}: {shown}");
        assert!(lines.len() <= 16 && shown.contains('…'), "{shown}");
    }
}

#[test]
fn truncated_trace_is_shown_up_to_the_end() {
    let project = TestProject::new();
    let mut trace = ShowTrace::new().with_chunk(1, "one", "Hello");
    trace.0.push_str(
        "{\"t\":\"later\"}\n{\"t\":3,\"picture\":1}\n{\"t\":4,\"stderr\":\"x\"}\n{\"t\":5,\"fr",
    );
    let shown = trace.show(&project, &[], None);
    find_line(&shown, "Hello");
    assert!(
        find_line(&shown, "line 3: invalid record").contains("invalid type"),
        "{shown}"
    );
    find_line(&shown, "! stderr");
    find_line(
        &shown,
        "The trace ends here in the middle of a record: recording is still in progress, or the file is truncated.",
    );

    project.write_file("notes", "{}\n");
    let show = |file: &str| {
        CommandResult::from_output(
            project
                .acp_command(&["trace", "show", file])
                .output()
                .unwrap(),
        )
    };
    show("notes")
        .expect_code(2)
        .expect_stderr("notes: not a trace file");
    show("nowhere")
        .expect_code(2)
        .expect_stderr("nowhere: read error: ");
    CommandResult::from_output(project.acp_command(&["trace", "show"]).output().unwrap())
        .expect_code(2);
}

#[test]
fn recorded_turn_is_shown() {
    let project = TestProject::new();
    let script = project.write_turn_script(
        r#"{"say": "Let me "}, {"say": "see."}, {"read": {"path": "notes.txt"}}"#,
    );
    let args = [
        "--allow", "all", "go on", "--", ACP, "trace", "trace", "--", ACP, "agent", "--script",
        &script,
    ];
    project.run(&args).expect_code(0);
    let shown = project.acp_command(&["trace", "show", "trace"]).output();
    let shown = CommandResult::from_output(shown.unwrap()).expect_code(0);
    let parts = [
        "the agent was started",
        "→ initialize #",
        "version 1, acp",
        "← initialize =",
        "acp-agent",
        "→ session/new #",
        "→ session/prompt #",
        "go on",
        "Let me see.",
        "← tool_call",
        "notes.txt",
        "← session/prompt =",
        "end_turn",
        "the agent exited with code 0",
    ];
    shown.expect_stdout(&parts);
}

#[test]
fn trace_is_followed_while_it_is_recorded() {
    let project = TestProject::new();
    let start = |args: &[&str]| {
        let mut command = project.acp_command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut traced = start(&["trace", "trace", "--", "cat"]);
    let mut answers = BufReader::new(TimedReader::new(traced.stdout.take().unwrap()));
    let mut say = |message: &Value| {
        writeln!(traced.stdin.as_mut().unwrap(), "{message}").unwrap();
        answers.read_line(&mut String::new()).unwrap();
    };
    say(&json!({"jsonrpc": "2.0", "method": "first"}));
    let mut follows = start(&["trace", "show", "trace", "--follow"]);
    let mut shown = BufReader::new(TimedReader::new(follows.stdout.take().unwrap()));
    let mut until = |part: &str| {
        let mut line = String::new();
        while !line.contains(part) {
            line.clear();
            assert_ne!(
                shown.read_line(&mut line).unwrap(),
                0,
                "the end before {part}"
            );
        }
    };
    until("← first");
    say(&json!({"jsonrpc": "2.0", "method": "second"}));
    until("← second");
    drop(traced.stdin.take());
    assert!(traced.wait().unwrap().success());
    until("end of recording");
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(follows.wait().unwrap().success());
}
