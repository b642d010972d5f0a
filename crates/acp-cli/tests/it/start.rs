//! Tests of agents that fail to start. Each kind of failure must have its own message, and no processes may be left
//! behind.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use crate::common::patient::TimedReader;
use crate::common::{ACP, CommandResult, TestProject};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Shell commands that respond to the requests before the prompt.
const RESPOND_TO_INITIALIZE: &str = r#"read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
    read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}'"#;

/// Returns `true` if the process with the id in the file is still running.
pub(crate) fn is_running(project: &TestProject, file: &str) -> bool {
    let id: i32 = project.read_file(file).trim().parse().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let zombie = stat
        .rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('Z'));
    !zombie && test_kill_process(Pid::from_raw(id).unwrap()).is_ok()
}

#[test]
fn silent_agent_is_reported_as_slow_and_ended_by_ctrl_c() {
    let project = TestProject::new();
    let agent = "sleep 1000 & echo $! > child; echo $$ > agent; trap '' TERM; echo loading >&2; while :; do sleep 1000; done";
    let mut child = project
        .agent_command(&["hi", "--", "sh", "-c", agent])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(TimedReader::new(child.stderr.take().unwrap()));
    let mut said = String::new();
    while !said.contains("waiting for the agent to respond (Ctrl-C: exit)") {
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    assert!(is_running(&project, "agent") && is_running(&project, "child"));
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(!is_running(&project, "agent") && !is_running(&project, "child"));
}

#[test]
fn crashed_agent_is_reported_with_its_last_output() {
    let project = TestProject::new();
    let agent = "i=0; while [ $i -lt 500 ]; do echo line $i >&2; i=$((i+1)); done; kill -SEGV $$";
    let ended = project
        .run(&["hi", "--", "sh", "-c", agent])
        .expect_code(3)
        .expect_stderr("the agent exited: signal SIGSEGV")
        .expect_stderr("line 499");
    assert!(ended.stderr.lines().count() < 30, "{ended:#?}");
}

#[test]
fn agent_that_exits_too_early_is_reported() {
    let project = TestProject::new();
    project
        .run(&["hi", "--", "true"])
        .expect_code(3)
        .expect_stderr("the agent exited: exit code 0");
}

#[test]
fn agent_that_closes_stdout_is_killed() {
    let project = TestProject::new();
    let agent = "echo $$ > agent; echo closing >&2; exec >&-; while :; do sleep 1000; done";
    project
        .run(&["hi", "--", "sh", "-c", agent])
        .expect_code(3)
        .expect_stderr("the agent closed the connection:")
        .expect_stderr("closing");
    assert!(!is_running(&project, "agent"));
    // In the middle of a turn.
    let agent = format!(
        "echo $$ > agent; {RESPOND_TO_INITIALIZE}; read -r line; exec >&-; exec sleep 1000"
    );
    project
        .run(&["hi", "--", "sh", "-c", &agent])
        .expect_code(3)
        .expect_stderr("the agent closed the connection:");
    assert!(!is_running(&project, "agent"));
}

#[test]
fn agent_that_stops_reading_is_ended_by_timeout_or_ctrl_c() {
    let project = TestProject::new();
    // More than fits into the pipe and what waits to be written.
    project.write_file("long.txt", &"word ".repeat(1_000_000));
    let agent = format!("echo $$ > agent; {RESPOND_TO_INITIALIZE}; exec sleep 1000");
    let args = ["--timeout", "1", "--file", "long.txt"];
    project
        .run(&[&args[..], &["--", "sh", "-c", &agent]].concat())
        .expect_code(6)
        .expect_stderr("--timeout");
    assert!(!is_running(&project, "agent"));

    // And by Ctrl-C twice, where there is no timeout.
    let agent =
        format!("echo $$ > agent; {RESPOND_TO_INITIALIZE}; head -c 1 > deaf; exec sleep 1000");
    let mut child = project
        .agent_command(&["--file", "long.txt", "--", "sh", "-c", &agent])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // The prompt has begun to arrive. The file is there, and empty, as soon as the agent waits for it.
    while std::fs::read(project.file("deaf")).map_or(true, |read| read.is_empty()) {
        assert!(child.try_wait().unwrap().is_none());
    }
    let mut stderr = BufReader::new(TimedReader::new(child.stderr.take().unwrap()));
    let mut said = String::new();
    kill_process(id, Signal::INT).unwrap();
    stderr.read_line(&mut said).unwrap();
    if !said.contains("cancelling") {
        stderr.read_to_string(&mut said).unwrap();
        panic!("{}: {said:?}", child.wait().unwrap());
    }
    kill_process(id, Signal::INT).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(!is_running(&project, "agent"));
}

#[test]
fn programs_are_found_in_path_like_a_shell_does() {
    let project = TestProject::new();
    // As npm and uv install them: a link to a script elsewhere, which starts by its first line.
    for directory in ["with space", "bin"] {
        std::fs::create_dir(project.file(directory)).unwrap();
    }
    project.write_file(
        "with space/cli.sh",
        &format!("#!/bin/sh\nexec {ACP} agent \"$@\"\n"),
    );
    let script = project.file("with space/cli.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&script, project.file("bin/some-agent")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", project.file("bin").display());
    let run = |program: &str| {
        let mut command =
            project.agent_command(&["/read notes.txt", "--", program, "--protocol", "1"]);
        CommandResult::from_output(command.env("PATH", &path).output().unwrap())
    };
    run("some-agent").expect_code(0).expect_stdout(&["first"]);
    run("with space/cli.sh")
        .expect_code(0)
        .expect_stdout(&["first"]);
    run(script.to_str().unwrap())
        .expect_code(0)
        .expect_stdout(&["first"]);
    run("with space/cli.sh --flag")
        .expect_code(3)
        .expect_stderr("separately");
    run("bin")
        .expect_code(3)
        .expect_stderr("command not found: `bin`");
    run("./notes.txt")
        .expect_code(3)
        .expect_stderr("not executable: `");
}
