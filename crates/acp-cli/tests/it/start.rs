//! Agents that do not start as they should: each ends in words of its own, and nothing is left.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use crate::common::patient::TimedReader;
use crate::common::{ACP, CommandResult, TestProject};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Answers what comes before a prompt.
const OPENS: &str = r#"read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}'
    read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}'"#;

/// Whether the process whose id is in a file is there still.
pub(crate) fn runs(project: &TestProject, file: &str) -> bool {
    let id: i32 = project.read(file).trim().parse().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let zombie = stat
        .rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('Z'));
    !zombie && test_kill_process(Pid::from_raw(id).unwrap()).is_ok()
}

#[test]
fn one_that_never_answers_is_said_to_be_slow_and_ended_by_ctrl_c() {
    let project = TestProject::new();
    let agent = "sleep 1000 & echo $! > child; echo $$ > agent; trap '' TERM; echo loading >&2; while :; do sleep 1000; done";
    let mut child = project
        .command(&["hi", "--", "sh", "-c", agent])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(TimedReader::new(child.stderr.take().unwrap()));
    let mut said = String::new();
    while !said.contains("waiting for the agent to respond (Ctrl-C: exit)") {
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    assert!(runs(&project, "agent") && runs(&project, "child"));
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert!(!runs(&project, "agent") && !runs(&project, "child"));
}

#[test]
fn one_that_crashes_leaves_the_end_of_what_it_said() {
    let project = TestProject::new();
    let agent = "i=0; while [ $i -lt 500 ]; do echo line $i >&2; i=$((i+1)); done; kill -SEGV $$";
    let ended = project
        .run(&["hi", "--", "sh", "-c", agent])
        .code(3)
        .says("the agent exited: signal SIGSEGV")
        .says("line 499");
    assert!(ended.stderr.lines().count() < 30, "{ended:#?}");
}

#[test]
fn one_that_ends_well_but_too_early_is_told_so() {
    let project = TestProject::new();
    project
        .run(&["hi", "--", "true"])
        .code(3)
        .says("the agent exited: exit code 0");
}

#[test]
fn one_that_closes_its_stdout_and_goes_on_is_ended() {
    let project = TestProject::new();
    let agent = "echo $$ > agent; echo closing >&2; exec >&-; while :; do sleep 1000; done";
    project
        .run(&["hi", "--", "sh", "-c", agent])
        .code(3)
        .says("the agent closed the connection:")
        .says("closing");
    assert!(!runs(&project, "agent"));
    // In the middle of a turn.
    let agent = format!("echo $$ > agent; {OPENS}; read -r line; exec >&-; exec sleep 1000");
    project
        .run(&["hi", "--", "sh", "-c", &agent])
        .code(3)
        .says("the agent closed the connection:");
    assert!(!runs(&project, "agent"));
}

#[test]
fn one_that_stops_reading_is_given_up() {
    let project = TestProject::new();
    // More than fits into the pipe and what waits to be written.
    project.write("long.txt", &"word ".repeat(1_000_000));
    let agent = format!("echo $$ > agent; {OPENS}; exec sleep 1000");
    let args = ["--timeout", "1", "--file", "long.txt"];
    project
        .run(&[&args[..], &["--", "sh", "-c", &agent]].concat())
        .code(6)
        .says("--timeout");
    assert!(!runs(&project, "agent"));

    // And by Ctrl-C twice, where there is no timeout.
    let agent = format!("echo $$ > agent; {OPENS}; head -c 1 > deaf; exec sleep 1000");
    let mut child = project
        .command(&["--file", "long.txt", "--", "sh", "-c", &agent])
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
    assert!(!runs(&project, "agent"));
}

#[test]
fn programs_are_found_as_a_shell_finds_them() {
    let project = TestProject::new();
    // As npm and uv install them: a link to a script elsewhere, which starts by its first line.
    for directory in ["with space", "bin"] {
        std::fs::create_dir(project.file(directory)).unwrap();
    }
    project.write(
        "with space/cli.sh",
        &format!("#!/bin/sh\nexec {ACP} agent \"$@\"\n"),
    );
    let script = project.file("with space/cli.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink(&script, project.file("bin/some-agent")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", project.file("bin").display());
    let run = |program: &str| {
        let mut command = project.command(&["/read notes.txt", "--", program, "--protocol", "1"]);
        CommandResult::of(command.env("PATH", &path).output().unwrap())
    };
    run("some-agent").code(0).shows(&["first"]);
    run("with space/cli.sh").code(0).shows(&["first"]);
    run(script.to_str().unwrap()).code(0).shows(&["first"]);
    run("with space/cli.sh --flag").code(3).says("separately");
    run("bin").code(3).says("command not found: `bin`");
    run("./notes.txt").code(3).says("not executable: `");
}
