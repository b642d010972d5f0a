//! Tests of `acp trace replay`, which replays a recorded turn to a live agent or client.

use crate::common::{ACP, CommandResult, TestProject};

/// A turn in which the agent asks the client for a file.
const TURN_SCRIPT: &str =
    r#"{"say": "Let me see."}, {"read": {"path": "notes.txt"}}, {"say": "Done."}"#;

/// Records the turn and returns the client's output.
fn record_trace(project: &TestProject) -> String {
    let script = project.write_turn_script(TURN_SCRIPT);
    let args = [
        "--allow", "all", "go on", "--", ACP, "trace", "trace", "--", ACP, "agent", "--script",
        &script,
    ];
    project.run(&args).expect_code(0).stdout
}

/// Replays the client's side to an agent that plays this script.
fn replay_as_client(project: &TestProject, flags: &[&str], turn: &str) -> CommandResult {
    let script = project.write_turn_script(turn);
    let mut command = project.acp_command(&["trace", "replay", "trace", "--as", "client"]);
    command
        .args(flags)
        .args(["--", ACP, "agent", "--script", &script]);
    CommandResult::from_output(command.output().unwrap())
}

#[test]
fn agent_that_behaves_the_same_matches_the_recording() {
    let project = TestProject::new();
    record_trace(&project);
    let ended = replay_as_client(&project, &[], TURN_SCRIPT).expect_code(0);
    assert!(ended.stdout.ends_with(" 0 differences\n"), "{ended:?}");
}

#[test]
fn differences_of_an_agent_are_reported_with_their_location() {
    let project = TestProject::new();
    record_trace(&project);
    let other = r#"{"say": "Let me think."}, {"plan": [{"content": "Look", "status": "pending"}]}, {"say": "Done."}"#;
    let ended = replay_as_client(&project, &[], other).expect_code(1);
    let told = "agent_message_chunk: params.update.content.text changed from \"Let me see.\" to \"Let me think.\"";
    assert!(ended.stdout.contains(told), "{ended:?}");
    assert!(ended.stdout.contains("missing tool_call"), "{ended:?}");
    assert!(ended.stdout.contains("unexpected plan"), "{ended:?}");
    // A place that is ignored is not told of.
    let ended =
        replay_as_client(&project, &["--ignore", "params.update.content.*"], other).expect_code(1);
    assert!(!ended.stdout.contains("Let me think"), "{ended:?}");
}

#[test]
fn recorded_agent_serves_a_live_client() {
    let project = TestProject::new();
    let shown = record_trace(&project);
    let run = |prompt: &str| {
        let agent = [ACP, "trace", "replay", "trace", "--as", "agent"];
        let args = [&["--allow", "all", prompt, "--"][..], &agent].concat();
        project.run(&args).expect_code(0)
    };
    let again = run("go on");
    assert_eq!(again.stdout, shown);
    let other = run("stop it");
    assert_eq!(other.stdout, shown);
    let mut command = project.acp_command(&[
        "trace",
        "replay",
        "trace",
        "--as",
        "agent",
        "--timeout",
        "1",
    ]);
    let ended = CommandResult::from_output(command.output().unwrap()).expect_code(1);
    ended
        .expect_stderr("missing initialize")
        .expect_stderr("missing session/prompt");
}

#[test]
fn unreplayable_trace_is_reported() {
    let project = TestProject::new();
    record_trace(&project);
    let replay = |args: &[&str]| {
        let mut command = project.acp_command(&["trace", "replay"]);
        CommandResult::from_output(command.args(args).output().unwrap())
    };
    replay(&["trace", "--as", "client"])
        .expect_code(2)
        .expect_stderr("no agent command given");
    replay(&["trace", "--as", "agent", "--", "cat"])
        .expect_code(2)
        .expect_stderr("does not accept an agent command");
    replay(&["trace"]).expect_code(2);
    replay(&["notes.txt", "--as", "agent"])
        .expect_code(2)
        .expect_stderr("notes.txt: not a trace file");
    replay(&["trace", "--as", "client", "--", "no-such-agent"])
        .expect_code(3)
        .expect_stderr("command not found: `no-such-agent`");
}

#[test]
fn message_by_hand_is_not_expected_from_a_client() {
    let project = TestProject::new();
    for (by_hand, code) in [(",\"hand\":true", 0), ("", 1)] {
        let trace = format!(
            "{}\n{{\"t\":1,\"from\":\"client\",\"len\":1{by_hand},\"msg\":{}}}\n{{\"t\":2,\"from\":\"agent\",\"len\":1,\"msg\":{}}}\n",
            r#"{"acp_trace":1,"started":"2026-01-01T00:00:00Z","command":["a"],"by":"acp","secrets":"redacted"}"#,
            r#"{"jsonrpc":"2.0","id":"by-hand-1","method":"session/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"by-hand-1","result":{"sessions":[]}}"#,
        );
        project.write_file("by-hand", &trace);
        let args = ["trace", "replay", "by-hand", "--as", "agent"];
        let output = project.acp_command(&args).output().unwrap();
        let ended = CommandResult::from_output(output).expect_code(code);
        assert_eq!(ended.stdout, "", "nothing is sent to the client");
    }
}
