//! Tests of `acp run --format trace`.

use std::collections::HashMap;

use serde_json::Value;

use crate::common::{CommandResult, TestProject};

fn records(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn both_sides_are_printed_in_order_and_can_be_read_as_a_trace() {
    let project = TestProject::new();
    let run = |prompt: &str| {
        let args = ["--allow", "all", "--format", "trace", prompt];
        project.run(&args).expect_code(0).stdout
    };
    let trace = run("/run echo made > made");
    assert!(project.file("made").exists());
    let lines = records(&trace);
    assert_eq!(lines[0]["acp_trace"], 1);
    assert_eq!(lines[0]["secrets"], "redacted");
    assert_eq!(lines.last().unwrap()["event"], "end");
    let messages = &lines[1..lines.len() - 1];
    let methods: Vec<(&str, &str)> = messages
        .iter()
        .filter_map(|line| {
            Some((
                line["from"].as_str().unwrap(),
                line["msg"]["method"].as_str()?,
            ))
        })
        .collect();
    assert_eq!(methods[0], ("client", "initialize"));
    assert_eq!(methods[1], ("client", "session/new"));
    for expected in [
        ("client", "session/prompt"),
        ("agent", "session/update"),
        ("agent", "session/request_permission"),
        ("agent", "terminal/create"),
    ] {
        assert!(methods.contains(&expected), "{expected:?}: {methods:?}");
    }
    // Each request comes before its response, which the other side sends.
    let mut open = HashMap::new();
    for line in messages {
        let (from, message) = (line["from"].as_str().unwrap(), &line["msg"]);
        let id = message["id"].to_string();
        match (message.get("method"), message.get("id")) {
            (Some(_), Some(_)) => assert!(open.insert((from, id), ()).is_none(), "{line}"),
            (None, _) => {
                let asked_by = if from == "client" { "agent" } else { "client" };
                assert!(open.remove(&(asked_by, id)).is_some(), "{line}");
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");

    // What the client answered is there, too.
    let answers = |trace: &str| -> String {
        let lines = records(trace).into_iter();
        let sent =
            lines.filter(|line| line["from"] == "client" && line["msg"].get("method").is_none());
        sent.map(|line| line["msg"].to_string()).collect()
    };
    assert!(
        answers(&trace).contains(r#""outcome":"selected""#),
        "{trace}"
    );
    assert!(answers(&run("/read notes.txt")).contains("second"));

    project.write_file("run.trace", &trace);
    for (command, shown) in [
        ("show", "session/request_permis"),
        ("lint", "0 MUST violations"),
    ] {
        let output = project
            .acp_command(&["trace", command, "run.trace"])
            .output()
            .unwrap();
        CommandResult::from_output(output)
            .expect_code(0)
            .expect_stdout(&[shown]);
    }
}

#[test]
fn secrets_are_redacted() {
    let project = TestProject::new();
    let servers =
        r#"{"mcpServers": {"docs": {"command": "true", "env": {"DOCS_KEY": "hunter2hunter2"}}}}"#;
    project.write_file("mcp.json", servers);
    let args = [
        "--format",
        "trace",
        "--mcp",
        "mcp.json",
        "token is sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
    ];
    let ended = project.run(&args).expect_code(0);
    assert!(ended.stdout.contains("DOCS_KEY"), "{ended:?}");
    for secret in ["hunter2", "abcdefghijklmnop"] {
        assert!(!ended.stdout.contains(secret), "{secret}: {ended:?}");
    }
}

#[test]
fn trace_of_an_agent_that_fails_is_complete() {
    let project = TestProject::new();
    let args = [
        "--format",
        "trace",
        "go",
        "--",
        "sh",
        "-c",
        "read -r line; echo noise; exit 3",
    ];
    // Several times, because the agent's line arrives while the request is still being recorded.
    for _ in 0..10 {
        let ended = project.run(&args).expect_code(3);
        let lines = records(&ended.stdout);
        assert_eq!(lines[1]["msg"]["method"], "initialize");
        assert_eq!(lines[2]["noise"], "noise");
        assert_eq!(lines.last().unwrap()["event"], "end");
    }
}
