//! Tests of cancelling at every point in a turn: the turn must end as `cancelled` and leave no processes behind.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

use crate::common::patient::TimedReader;
use crate::common::{ACP, CommandResult, TestProject};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

fn child_pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap()
}

/// Runs `acp run` with a script, waits until it has shown some text, and interrupts it.
fn run_and_interrupt(
    project: &TestProject,
    args: &[&str],
    turn: &str,
    shown: &str,
) -> CommandResult {
    let script = project.write_turn_script(turn);
    let [env, config] = project.environment_allowing_commands();
    let mut all = args.to_vec();
    all.extend(["go", "--", &env, &config, ACP, "agent", "--script", &script]);
    let mut child = project
        .agent_command(&all)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(TimedReader::new(child.stdout.take().unwrap()));
    let mut seen = String::new();
    while !seen.contains(shown) {
        assert_ne!(
            stdout.read_line(&mut seen).unwrap(),
            0,
            "ended before {shown:?}: {seen}"
        );
    }
    kill_process(child_pid(&child), Signal::INT).unwrap();
    std::io::Read::read_to_string(&mut stdout, &mut seen).unwrap();
    let mut ended = CommandResult::from_output(child.wait_with_output().unwrap());
    ended.stdout = seen;
    ended
}

/// Returns `true` if the process with the id in the file is still running.
fn is_running(project: &TestProject, file: &str) -> bool {
    let id: i32 = project.read_file(file).trim().parse().unwrap();
    // One that has ended but that nobody has asked after (a zombie) does not run.
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let zombie = stat
        .rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('Z'));
    !zombie && test_kill_process(Pid::from_raw(id).unwrap()).is_ok()
}

#[test]
fn cancel_ends_a_streaming_run() {
    let project = TestProject::new();
    run_and_interrupt(
        &project,
        &[],
        r#"{"say": "talking\n"}, {"hang": true}"#,
        "talking",
    )
    .expect_code(130)
    .expect_stderr("cancelled");
}

#[test]
fn one_signal_ends_a_run_whose_agent_ignores_the_cancellation() {
    let project = TestProject::new();
    let agent = r#"while IFS= read -r line; do
        case $line in
        *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}' ;;
        *'"session/new"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}' ;;
        *'"session/prompt"'*) touch begun ;;
        esac
    done"#;
    let agent = ["--output", "result.json", "go", "--", "sh", "-c", agent];
    let child = project
        .agent_command(&agent)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    crate::local_sessions::wait_for_file(&project.file("begun"));
    kill_process(child_pid(&child), Signal::TERM).unwrap();
    CommandResult::from_output(child.wait_with_output().unwrap())
        .expect_code(130)
        .expect_stderr("the agent did not stop");
    assert!(
        project
            .read_file("result.json")
            .contains("\"exitCode\":130")
    );
}

#[test]
fn cancel_kills_a_client_terminal_with_its_children() {
    let project = TestProject::new();
    // The command is shown as well: what it prints must not be part of it.
    let turn = r#"{"run": {"command": "sleep 1000 & echo $! > child; echo $$ > parent; echo star''ted; wait"}}"#;
    run_and_interrupt(&project, &["--allow", "all"], turn, "started\n")
        .expect_code(130)
        .expect_stderr("cancelled");
    assert!(!is_running(&project, "parent"));
    assert!(!is_running(&project, "child"));
}

#[test]
fn cancel_kills_a_command_started_by_the_agent() {
    let project = TestProject::new();
    // In mode code the agent does not ask for what its user's rules allow, and this client offers no terminal.
    // The command is shown as well: what it prints must not be part of it.
    let turn = r#"{"run": {"command": "sleep 1000 & echo $! > child; echo $$ > parent; echo star''ted; wait"}}"#;
    run_and_interrupt(
        &project,
        &["--allow", "reads", "--sandbox=off", "--mode", "code"],
        turn,
        "started\n",
    )
    .expect_code(130);
    assert!(!is_running(&project, "parent"));
    assert!(!is_running(&project, "child"));
}

#[test]
#[cfg(target_os = "linux")]
fn killed_run_leaves_no_agent_and_no_commands() {
    let project = TestProject::new();
    // The command is shown as well: what it prints must not be part of it.
    let turn = r#"{"run": {"command": "sleep 1000 & echo $! > child; setsid sh -c 'echo $$ > daemon; exec sleep 1000' & echo $PPID > agent; echo $$ > parent; until test -s daemon; do sleep 0.01; done; echo star''ted; wait"}}"#;
    let script = project.write_turn_script(turn);
    for allow in ["all", "reads"] {
        // In a terminal of the run's, and in a process of the agent's.
        let mut child = project
            .agent_command(&[
                "--allow",
                allow,
                "--sandbox=off",
                "--mode",
                "code",
                "go",
                "--",
            ])
            .args(project.environment_allowing_commands())
            .args([ACP, "agent", "--script", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(TimedReader::new(child.stdout.take().unwrap()));
        let mut seen = String::new();
        while !seen.contains("started\n") {
            assert_ne!(stdout.read_line(&mut seen).unwrap(), 0, "{seen}");
        }
        let files = ["parent", "child", "daemon", "agent"];
        assert!(files.iter().all(|file| is_running(&project, file)));
        child.kill().unwrap();
        child.wait().unwrap();
        let start = Instant::now();
        while let Some(left) = files.iter().find(|file| is_running(&project, file)) {
            assert!(start.elapsed() < Duration::from_secs(30), "{left} runs");
            // Nobody is told of the end of a process that is not its child: this looks.
            std::thread::sleep(Duration::from_millis(10));
        }
        for file in files {
            std::fs::remove_file(project.file(file)).unwrap();
        }
    }
}

#[test]
fn second_interrupt_ends_an_unresponsive_agent() {
    let project = TestProject::new();
    let agent = r#"echo $$ > agent
        while read -r line; do case $line in
          *'"initialize"'*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}';;
          *'"session/new"'*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}';;
          *'"session/prompt"'*) printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"deaf\n"}}}}';;
          *'"session/cancel"'*) printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"what?\n"}}}}';;
        esac; done; sleep 1000"#;
    let mut child = project
        .agent_command(&["go", "--", "sh", "-c", agent])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(TimedReader::new(child.stdout.take().unwrap()));
    for (said, interrupts) in [("deaf", true), ("what?", true)] {
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert!(line.contains(said), "{line:?}");
        if interrupts {
            kill_process(child_pid(&child), Signal::INT).unwrap();
        }
    }
    CommandResult::from_output(child.wait_with_output().unwrap()).expect_code(130);
    assert!(!is_running(&project, "agent"));
}

#[test]
fn cancel_ends_an_agent_behind_a_wrapper() {
    let project = TestProject::new();
    // As `npx` and its like do it: the agent is a child of what was started, and something else too.
    let wrapper = format!("sleep 1000 & echo $! > sleeper; {ACP} agent; echo done");
    project
        .run(&["/read notes.txt", "--", "sh", "-c", &wrapper])
        .expect_code(0);
    assert!(!is_running(&project, "sleeper"));
}
