//! `acp trace lint`, as a person or a script runs it.

use std::fmt::Write as _;

use crate::common::{ACP, CommandResult, TestProject};
use serde_json::{Value, json};

const HEADER: &str = r#"{"acp_trace":1,"started":"2026-01-01T00:00:00Z","command":["a"],"by":"acp 0","secrets":"redacted"}"#;

/// A trace of these messages, each a millisecond after the one before, and what is said of it.
fn lint(
    project: &TestProject,
    said: &[(&str, Value)],
    end: &[&str],
    flags: &[&str],
) -> CommandResult {
    let mut trace = format!("{HEADER}\n");
    for (n, (from, message)) in said.iter().enumerate() {
        let record = json!({"t": n * 1000, "from": from, "len": 1, "msg": message});
        writeln!(trace, "{record}").unwrap();
    }
    for event in end {
        let record = json!({"t": said.len() * 1000, "event": event});
        writeln!(trace, "{record}").unwrap();
    }
    project.write("trace", &trace);
    linted(project, flags)
}

fn linted(project: &TestProject, flags: &[&str]) -> CommandResult {
    let mut command = project.acp(&["trace", "lint", "trace"]);
    CommandResult::of(command.args(flags).output().unwrap())
}

fn ask(id: i64, method: &str, params: Value) -> (&'static str, Value) {
    (
        "client",
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
    )
}

fn answer(id: i64, result: Value) -> (&'static str, Value) {
    (
        "agent",
        json!({"jsonrpc": "2.0", "id": id, "result": result}),
    )
}

/// Up to the first prompt, on line 6.
fn prompted() -> Vec<(&'static str, Value)> {
    let prompt = json!({"sessionId": "one", "prompt": [{"type": "text", "text": "Say hello"}]});
    vec![
        ask(0, "initialize", json!({"protocolVersion": 1})),
        answer(0, json!({"protocolVersion": 1})),
        ask(1, "session/new", json!({"cwd": "/", "mcpServers": []})),
        answer(1, json!({"sessionId": "one"})),
        ask(2, "session/prompt", prompt),
    ]
}

#[test]
fn nothing_is_wrong_with_what_is_right() {
    let project = TestProject::new();
    let mut said = prompted();
    said.push(answer(2, json!({"stopReason": "end_turn"})));
    let ended = lint(
        &project,
        &said,
        &["client_closed", "agent_closed", "end"],
        &["--strict"],
    );
    ended
        .code(0)
        .shows(&["6 messages, 0 MUST violations, 0 SHOULD violations"]);
}

/// A conversation with one of each: a shape, a MUST, a SHOULD, a request without an answer.
fn wrong() -> Vec<(&'static str, Value)> {
    let update = |session: &str, update: Value| {
        let params = json!({"sessionId": session, "update": update});
        (
            "agent",
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}),
        )
    };
    let mut said = prompted();
    said.push(update(
        "one",
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}}),
    ));
    said.push((
        "agent",
        json!({"jsonrpc": "2.0", "id": "r", "method": "fs/read_text_file",
        "params": {"sessionId": "one", "path": "/a"}}),
    ));
    said.push((
        "client",
        json!({"jsonrpc": "2.0", "id": "r", "error": {"code": -32601, "message": "no"}}),
    ));
    said.push(update(
        "two",
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c"}),
    ));
    said
}

#[test]
fn each_line_says_where_what_and_who() {
    let project = TestProject::new();
    let ended = lint(&project, &wrong(), &["agent_closed"], &[]).code(1);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let expected = [
        "7: MUST schema: `params.update.content.text` is missing [schema] in agent_message_chunk",
        "8: MUST fs-not-offered: the agent calls `fs/read_text_file`, but the client does not support `fs.readTextFile` [file-system] in fs/read_text_file: /a",
        "10: SHOULD session-unknown: the agent sends `session/update` for unknown session \"two\" [session-setup] in tool_call_update",
        "6: MUST request-unanswered: the agent closed its output without responding to `session/prompt` [overview] in session/prompt: Say hello",
    ];
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}\n{expected}");
    }
    ended.shows(&[
        "1 × MUST fs-not-offered, agent",
        "9 messages, 3 MUST violations, 1 SHOULD violation",
    ]);
}

#[test]
fn a_should_fails_only_where_that_is_wanted_and_filters_choose() {
    let project = TestProject::new();
    let two = ["--session", "two"];
    lint(&project, &wrong(), &[], &two)
        .code(0)
        .shows(&["session-unknown"]);
    linted(&project, &["--session", "two", "--strict"]).code(1);
    linted(&project, &["--from", "client", "--strict"]).code(0);
    let ended = linted(&project, &["--method", "fs/*", "--format", "json"]).code(1);
    let lines: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[0]["rule"], "fs-not-offered");
    assert_eq!(lines[0]["line"], 8);
    assert_eq!(lines[0]["message"]["session"], "one");
    assert_eq!(lines[1]["must"], 1);
}

#[test]
fn what_cannot_be_read_is_told() {
    let project = TestProject::new();
    project.write("trace", "{}\n");
    linted(&project, &[])
        .code(2)
        .says("trace: not a trace file");
    project.write(
        "trace",
        &format!("{HEADER}\nx\n{{\"t\":1,\"from\":\"agent\",\"len\":5,\"noise\":\"debug\"}}\n"),
    );
    linted(&project, &[])
        .code(1)
        .says("line 2: invalid record")
        .shows(&["3: MUST no-message: the agent"]);
}

/// What our own agent and client say to each other, in a turn with a tool, is right; recorded with and without secrets.
#[test]
fn our_own_peers_are_right() {
    for version in ["1", "2"] {
        let project = TestProject::new();
        let script = project.script(
            r#"{"say": "Let me "}, {"plan": [{"content": "Look", "status": "in_progress"}]}, {"read": {"path": "notes.txt"}}, {"run": {"command": "echo hi"}}, {"say": "done"}"#,
        );
        let args = [
            "--protocol",
            version,
            "--allow",
            "all",
            "go on",
            "--",
            ACP,
            "trace",
            "trace",
            "--",
            ACP,
            "agent",
            "--protocol",
            version,
            "--script",
            &script,
        ];
        project.run(&args).code(0);
        let ended = linted(&project, &["--strict", "--format", "json"]);
        let told = ended
            .stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let mut told: Vec<Value> = told.collect();
        let sums = told.pop().unwrap();
        assert!(sums["messages"].as_u64().unwrap() > 15, "{sums}");
        // Fields that the library has from a later draft of version 2 than the schema.
        let later = [
            ".type` is not in the specification",
            "`result.messageId` is not in the specification",
        ];
        told.retain(|told| {
            let text = told["text"].as_str().unwrap();
            version == "1" || !later.iter().any(|later| text.contains(later))
        });
        assert!(told.is_empty(), "{version}: {told:#?}");
    }
}

/// Secrets that were taken out leave no fault behind.
#[test]
fn what_was_redacted_is_right() {
    let project = TestProject::new();
    let mut said = prompted();
    let server = json!({"type": "http", "name": "a", "url": "[redacted]",
        "headers": [{"name": "Authorization", "value": "[redacted]"}]});
    said[1].1["result"]["agentCapabilities"] = json!({"mcpCapabilities": {"http": true}});
    said[2].1["params"]["mcpServers"] = json!([server]);
    // Two ids that look the same now.
    let (new, first) = (said[2].1.clone(), said[3].1.clone());
    said[3].1["result"]["sessionId"] = json!("[redacted]");
    said.insert(4, ("client", new));
    said.insert(5, ("agent", first));
    said[5].1["result"]["sessionId"] = json!("[redacted]");
    said.truncate(6);
    let mut trace = format!("{HEADER}\n");
    for (from, message) in said {
        let record = json!({"t": 1, "from": from, "len": 1, "redacted": 1, "msg": message});
        writeln!(trace, "{record}").unwrap();
    }
    project.write("trace", &trace);
    linted(&project, &["--strict"])
        .code(0)
        .shows(&["6 messages"]);
}
