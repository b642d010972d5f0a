//! `acp trace replay`: a recorded turn again, with a live agent and with a live client.

use crate::common::{ACP, CommandResult, TestProject};

/// A turn in which the client is asked for a file.
const TURN: &str = r#"{"say": "Let me see."}, {"read": {"path": "notes.txt"}}, {"say": "Done."}"#;

/// Records it, and gives what the client showed.
fn recorded(project: &TestProject) -> String {
    let script = project.script(TURN);
    let args = [
        "--allow", "all", "go on", "--", ACP, "trace", "trace", "--", ACP, "agent", "--script",
        &script,
    ];
    project.run(&args).code(0).stdout
}

/// Plays the client to an agent with this script.
fn as_client(project: &TestProject, flags: &[&str], turn: &str) -> CommandResult {
    let script = project.script(turn);
    let mut command = project.acp(&["trace", "replay", "trace", "--as", "client"]);
    command
        .args(flags)
        .args(["--", ACP, "agent", "--script", &script]);
    CommandResult::of(command.output().unwrap())
}

#[test]
fn an_agent_that_does_the_same_again_is_as_recorded() {
    let project = TestProject::new();
    recorded(&project);
    let ended = as_client(&project, &[], TURN).code(0);
    assert!(ended.stdout.ends_with(" 0 differences\n"), "{ended:?}");
}

#[test]
fn what_an_agent_does_differently_is_told_by_its_place() {
    let project = TestProject::new();
    recorded(&project);
    let other = r#"{"say": "Let me think."}, {"plan": [{"content": "Look", "status": "pending"}]}, {"say": "Done."}"#;
    let ended = as_client(&project, &[], other).code(1);
    let told = "agent_message_chunk: params.update.content.text changed from \"Let me see.\" to \"Let me think.\"";
    assert!(ended.stdout.contains(told), "{ended:?}");
    assert!(ended.stdout.contains("missing tool_call"), "{ended:?}");
    assert!(ended.stdout.contains("unexpected plan"), "{ended:?}");
    // A place that is ignored is not told of.
    let ended = as_client(&project, &["--ignore", "params.update.content.*"], other).code(1);
    assert!(!ended.stdout.contains("Let me think"), "{ended:?}");
}

#[test]
fn the_recorded_agent_serves_a_live_client() {
    let project = TestProject::new();
    let shown = recorded(&project);
    let run = |prompt: &str| {
        let agent = [ACP, "trace", "replay", "trace", "--as", "agent"];
        let args = [&["--allow", "all", prompt, "--"][..], &agent].concat();
        project.run(&args).code(0)
    };
    let again = run("go on");
    assert_eq!(again.stdout, shown);
    let other = run("stop it");
    assert_eq!(other.stdout, shown);
    let mut command = project.acp(&[
        "trace",
        "replay",
        "trace",
        "--as",
        "agent",
        "--timeout",
        "1",
    ]);
    let ended = CommandResult::of(command.output().unwrap()).code(1);
    ended
        .says("missing initialize")
        .says("missing session/prompt");
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let project = TestProject::new();
    recorded(&project);
    let replay = |args: &[&str]| {
        let mut command = project.acp(&["trace", "replay"]);
        CommandResult::of(command.args(args).output().unwrap())
    };
    replay(&["trace", "--as", "client"])
        .code(2)
        .says("no agent command given");
    replay(&["trace", "--as", "agent", "--", "cat"])
        .code(2)
        .says("takes no agent command");
    replay(&["trace"]).code(2);
    replay(&["notes.txt", "--as", "agent"])
        .code(2)
        .says("notes.txt: not a trace file");
    replay(&["trace", "--as", "client", "--", "no-such-agent"])
        .code(3)
        .says("command not found: `no-such-agent`");
}
