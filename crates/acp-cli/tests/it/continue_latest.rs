//! Tests of `acp run --continue`. In some tests, this test program also acts as the agent.

use std::process::Stdio;

use crate::common::{CommandResult, TestProject};
use crate::local_sessions::{WAIT_FOR_GO, status, wait_for, wait_for_file};

/// Returns how to continue the session of a run, as the run has printed it.
pub(crate) fn continuation(run: &CommandResult) -> String {
    let hint = run.find_line("continue with: acp run ");
    let options = hint.trim_start_matches("continue with: acp run ");
    options.trim_end_matches(" PROMPT").to_owned()
}

#[test]
fn session_of_this_directory_that_changed_last_is_continued() {
    let project = TestProject::new();
    std::fs::create_dir(project.file("below")).unwrap();
    let run = |line: &str| project.run_shell(line).expect_code(0);
    let first = continuation(&run("acp run '/read notes.txt:1-1'"));
    let second = continuation(&run("acp run '/read notes.txt:2-2'"));
    run("acp run --cwd below /help");
    let third_turn = run("acp run --continue '/read notes.txt:3-3'");
    // The history is not shown.
    assert!(third_turn.stdout.contains("third"), "{third_turn:?}");
    assert!(!third_turn.stdout.contains("second"), "{third_turn:?}");
    assert_eq!(continuation(&third_turn), second);
    run(&format!("acp run {first} /help"));
    assert_eq!(continuation(&run("acp run --continue /help")), first);
    let listed = run("acp sessions --cwd .").stdout;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let json = run("acp run --continue --format json '/read notes.txt:3-3'").stdout;
    assert!(json.contains("third"), "{json}");
    assert!(!json.contains("first"), "{json}");
}

#[test]
fn session_with_a_name_is_continued_by_its_name() {
    let project = TestProject::new();
    let run = |line: &str| project.run_shell(line).expect_code(0);
    run("acp run /help");
    run("acp run --no-server --session build /help");
    assert_eq!(
        continuation(&run("acp run --continue /help")),
        "--session build"
    );
    // So others can join it.
    run("acp sessions status build").expect_stdout(&["build"]);
}

#[test]
fn all_pages_are_searched() {
    for version in ["--protocol 1", "--protocol 2"] {
        let project = TestProject::new();
        let agent = project.test_agent_command(&format!(
            "{version} --opens load,resume --sessions 2500 --newest 2100"
        ));
        // The agent can open only its first session.
        project
            .run_shell(&format!("acp run {version} --continue hello -- {agent}"))
            .expect_code(1)
            .expect_stderr("session not found: sess_2100");
        let agent =
            project.test_agent_command(&format!("{version} --opens load,resume --sessions 2500"));
        project
            .run_shell(&format!("acp run {version} --continue hello -- {agent}"))
            .expect_code(0)
            .expect_stdout(&["you said hello"]);
    }
}

#[test]
fn error_says_what_to_do_instead() {
    let project = TestProject::new();
    let run = |flags: &str| {
        let agent = project.test_agent_command(flags);
        project.run_shell(&format!("acp run --continue hello -- {agent}"))
    };
    run("--opens load")
        .expect_code(2)
        .expect_stderr("cannot list its sessions")
        .expect_stderr("--resume ID");
    run("--sessions 3")
        .expect_code(2)
        .expect_stderr("neither loadSession nor sessionCapabilities.resume");
    run("--opens load --sessions 0")
        .expect_code(1)
        .expect_stderr("has no session in")
        .expect_stderr("acp sessions -- ");
    run("--opens load --endless")
        .expect_code(1)
        .expect_stderr("the agent's session list never ends");
    project
        .run_shell("acp run --continue /help")
        .expect_code(1)
        .expect_stderr("start one without --continue");
    for other in ["--session build", "--resume sess_0"] {
        project
            .run_shell(&format!("acp run --continue {other} hello"))
            .expect_code(2)
            .expect_stderr("cannot be used with");
    }
}

#[test]
fn session_with_a_running_turn_is_the_latest() {
    let project = TestProject::new();
    project
        .run_shell(&format!(
            "acp run --session build --no-wait --allow all '{WAIT_FOR_GO}'"
        ))
        .expect_code(0);
    wait_for_file(&project.file("begun"));
    // This one changes later, but it has ended.
    project
        .run_shell("acp run --no-server /help")
        .expect_code(0);
    let next = project
        .shell_command("acp run --continue --allow all '/run echo next'")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the prompt waits for the turn", || {
        let queue = status(&project)["queue"].clone();
        queue.to_string().contains("echo next").then_some(())
    });
    project.write_file("go", "");
    CommandResult::from_output(next.wait_with_output().unwrap())
        .expect_code(0)
        .expect_stdout(&["next"]);
}
