//! Tests of `acp trace lint`, run as a user or a script would run it.

use std::fmt::Write as _;

use crate::common::{ACP, CommandResult, TestProject};
use serde_json::{Value, json};

const TRACE_HEADER: &str = r#"{"acp_trace":1,"started":"2026-01-01T00:00:00Z","command":["a"],"by":"acp 0","secrets":"redacted"}"#;

/// Lints a trace that contains these messages, one millisecond apart.
fn lint_messages(
    project: &TestProject,
    said: &[(&str, Value)],
    end: &[&str],
    flags: &[&str],
) -> CommandResult {
    let mut trace = format!("{TRACE_HEADER}\n");
    for (n, (from, message)) in said.iter().enumerate() {
        let record = json!({"t": n * 1000, "from": from, "len": 1, "msg": message});
        writeln!(trace, "{record}").unwrap();
    }
    for event in end {
        let record = json!({"t": said.len() * 1000, "event": event});
        writeln!(trace, "{record}").unwrap();
    }
    project.write_file("trace", &trace);
    lint_trace(project, flags)
}

fn lint_trace(project: &TestProject, flags: &[&str]) -> CommandResult {
    let mut command = project.acp_command(&["trace", "lint", "trace"]);
    CommandResult::from_output(command.args(flags).output().unwrap())
}

fn request(id: i64, method: &str, params: Value) -> (&'static str, Value) {
    (
        "client",
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
    )
}

fn response(id: i64, result: Value) -> (&'static str, Value) {
    (
        "agent",
        json!({"jsonrpc": "2.0", "id": id, "result": result}),
    )
}

/// Returns the messages up to the first prompt, which is on line 6.
fn prompt_exchange() -> Vec<(&'static str, Value)> {
    let prompt = json!({"sessionId": "one", "prompt": [{"type": "text", "text": "Say hello"}]});
    vec![
        request(0, "initialize", json!({"protocolVersion": 1})),
        response(0, json!({"protocolVersion": 1})),
        request(1, "session/new", json!({"cwd": "/", "mcpServers": []})),
        response(1, json!({"sessionId": "one"})),
        request(2, "session/prompt", prompt),
    ]
}

#[test]
fn correct_trace_has_no_findings() {
    let project = TestProject::new();
    let mut said = prompt_exchange();
    said.push(response(2, json!({"stopReason": "end_turn"})));
    let ended = lint_messages(
        &project,
        &said,
        &["client_closed", "agent_closed", "end"],
        &["--strict"],
    );
    ended
        .expect_code(0)
        .expect_stdout(&["6 messages, 0 MUST violations, 0 SHOULD violations"]);
}

/// Returns messages with one violation of each kind: an invalid shape, a violated MUST, a violated SHOULD, and a
/// request without a response.
fn faulty_messages() -> Vec<(&'static str, Value)> {
    let update = |session: &str, update: Value| {
        let params = json!({"sessionId": session, "update": update});
        (
            "agent",
            json!({"jsonrpc": "2.0", "method": "session/update", "params": params}),
        )
    };
    let mut said = prompt_exchange();
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
fn each_finding_names_line_rule_and_side() {
    let project = TestProject::new();
    let ended = lint_messages(&project, &faulty_messages(), &["agent_closed"], &[]).expect_code(1);
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
    ended.expect_stdout(&[
        "1 × MUST fs-not-offered, agent",
        "9 messages, 3 MUST violations, 1 SHOULD violation",
    ]);
}

#[test]
fn should_level_findings_fail_only_in_strict_mode_and_filters_apply() {
    let project = TestProject::new();
    let two = ["--session", "two"];
    lint_messages(&project, &faulty_messages(), &[], &two)
        .expect_code(0)
        .expect_stdout(&["session-unknown"]);
    lint_trace(&project, &["--session", "two", "--strict"]).expect_code(1);
    lint_trace(&project, &["--from", "client", "--strict"]).expect_code(0);
    let ended = lint_trace(&project, &["--method", "fs/*", "--format", "json"]).expect_code(1);
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
fn unreadable_trace_is_reported() {
    let project = TestProject::new();
    project.write_file("trace", "{}\n");
    lint_trace(&project, &[])
        .expect_code(2)
        .expect_stderr("trace: not a trace file");
    project.write_file(
        "trace",
        &format!(
            "{TRACE_HEADER}\nx\n{{\"t\":1,\"from\":\"agent\",\"len\":5,\"noise\":\"debug\"}}\n"
        ),
    );
    lint_trace(&project, &[])
        .expect_code(1)
        .expect_stderr("line 2: invalid record")
        .expect_stdout(&["3: MUST no-message: the agent"]);
}

/// Tests that this project's own agent and client cause no findings in a turn with a tool call, whether or not secrets
/// are recorded.
#[test]
fn acp_peers_have_no_findings() {
    for version in ["1", "2"] {
        let project = TestProject::new();
        let script = project.write_turn_script(
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
        project.run(&args).expect_code(0);
        let ended = lint_trace(&project, &["--strict", "--format", "json"]);
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

/// Tests that redacted secrets cause no findings.
#[test]
fn redacted_trace_has_no_findings() {
    let project = TestProject::new();
    let mut said = prompt_exchange();
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
    let mut trace = format!("{TRACE_HEADER}\n");
    for (from, message) in said {
        let record = json!({"t": 1, "from": from, "len": 1, "redacted": 1, "msg": message});
        writeln!(trace, "{record}").unwrap();
    }
    project.write_file("trace", &trace);
    lint_trace(&project, &["--strict"])
        .expect_code(0)
        .expect_stdout(&["6 messages"]);
}
