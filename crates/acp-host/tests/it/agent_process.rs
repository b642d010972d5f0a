//! Agents as real child processes.

use std::time::{Duration, Instant};

use crate::common::{PATIENCE, runs, soon};
use acp_host::{AgentCommand, AgentProcess, SpawnError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::sync::mpsc::unbounded_channel;

fn sh(script: &str) -> AgentCommand {
    AgentCommand::new("sh").args(["-c", script])
}

async fn pids(lines: &mut Lines<BufReader<ChildStdout>>, count: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    while pids.len() < count {
        pids.push(
            soon(lines.next_line())
                .await
                .unwrap()
                .unwrap()
                .parse()
                .unwrap(),
        );
    }
    assert!(pids.iter().all(|pid| runs(*pid)), "{pids:?}");
    pids
}

#[tokio::test]
async fn an_agent_that_ends_when_its_input_does() {
    let agent = AgentProcess::spawn(&sh("echo $$; cat; echo bye >&2; exit 7")).unwrap();
    let (mut stdin, stdout) = agent.take_stdio().unwrap();
    assert!(agent.take_stdio().is_none());
    let mut lines = BufReader::new(stdout).lines();
    assert_eq!(pids(&mut lines, 1).await, [agent.id()]);
    stdin.write_all(b"ping\n").await.unwrap();
    assert_eq!(soon(lines.next_line()).await.unwrap().unwrap(), "ping");
    assert_eq!(agent.try_wait(), None);
    drop(stdin);
    let start = Instant::now();
    let exit = soon(agent.shutdown(PATIENCE)).await;
    assert!(start.elapsed() < PATIENCE / 2);
    assert_eq!(
        (exit.code, exit.to_string().as_str()),
        (Some(7), "exit code 7")
    );
    assert_eq!(agent.output_tail(), "bye");
    assert_eq!(agent.try_wait(), Some(exit));
}

#[tokio::test]
async fn shutdown_closes_an_input_that_nobody_took() {
    let agent = AgentProcess::spawn(&sh("cat")).unwrap();
    let exit = soon(agent.shutdown(PATIENCE)).await;
    assert!(exit.success(), "{exit}");
}

#[tokio::test]
async fn an_agent_that_ignores_the_end_of_its_input_gets_sigterm() {
    let script =
        "trap 'echo asked to end >&2; exit 0' TERM; echo $$; while :; do sleep 1000 & wait; done";
    let agent = AgentProcess::spawn(&sh(script)).unwrap();
    let (stdin, stdout) = agent.take_stdio().unwrap();
    let pids = pids(&mut BufReader::new(stdout).lines(), 1).await;
    drop(stdin);
    let exit = soon(agent.shutdown(Duration::from_millis(200))).await;
    assert_eq!(agent.output_tail(), "asked to end");
    assert!(exit.success(), "{exit}");
    assert!(!runs(pids[0]));
}

#[tokio::test]
async fn an_agent_that_ignores_everything_is_killed_with_its_grandchildren() {
    let script = "trap '' TERM HUP; echo $$; (sleep 1000 & echo $!; sleep 1000) & echo $!; while :; do wait; sleep 1000; done";
    let agent = AgentProcess::spawn(&sh(script)).unwrap();
    let (stdin, stdout) = agent.take_stdio().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let pids = pids(&mut lines, 3).await;
    drop(stdin);
    let exit = soon(agent.shutdown(Duration::from_millis(200))).await;
    assert_eq!(exit.signal.as_deref(), Some("SIGKILL"));
    assert!(!pids.iter().any(|pid| runs(*pid)), "{pids:?}");
    assert_eq!(soon(lines.next_line()).await.unwrap(), None);
}

#[tokio::test]
async fn what_a_wrapper_leaves_behind_ends_too() {
    // The wrapper exits at once, but the processes it started hold the pipes.
    let script = "sleep 1000 & echo $!; (trap '' TERM; sleep 1000 & echo $!; wait) & read line";
    let agent = AgentProcess::spawn(&sh(script)).unwrap();
    let (stdin, stdout) = agent.take_stdio().unwrap();
    let pids = pids(&mut BufReader::new(stdout).lines(), 2).await;
    drop(stdin);
    let exit = soon(agent.wait()).await;
    assert_eq!(exit.code, Some(1));
    assert!(pids.iter().all(|pid| runs(*pid)));
    assert_eq!(soon(agent.shutdown(Duration::from_millis(200))).await, exit);
    assert!(!pids.iter().any(|pid| runs(*pid)), "{pids:?}");
}

#[tokio::test]
async fn dropping_ends_the_group() {
    let agent = AgentProcess::spawn(&sh("echo $$; sleep 1000 & echo $!; wait")).unwrap();
    let (_stdin, stdout) = agent.take_stdio().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let pids = pids(&mut lines, 2).await;
    drop(agent);
    // All of them have ended once nothing holds the pipe.
    assert_eq!(soon(lines.next_line()).await.unwrap(), None);
    soon(async {
        while pids.iter().any(|pid| runs(*pid)) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_crash_at_the_start_leaves_its_reason() {
    // A process that is left behind holds the pipe. Reporting the exit must not wait for it.
    let script =
        "i=0; while [ $i -lt 300 ]; do echo line $i >&2; i=$((i+1)); done; sleep 1000 & exit 42";
    let agent = AgentProcess::spawn(&sh(script)).unwrap();
    assert_eq!(soon(agent.wait()).await.code, Some(42));
    let expected: Vec<_> = (100..300).map(|i| format!("line {i}")).collect();
    assert_eq!(agent.output_tail(), expected.join("\n"));
    // The user sees the end of the output.
    let words = agent.stderr_excerpt();
    let words: Vec<&str> = words.lines().collect();
    assert_eq!(words[..2], ["", "last output:"]);
    assert_eq!((words[2], words.len()), ("  line 280", 22));

    let agent = AgentProcess::spawn(&sh("printf 'a\\033]0;title\\007b\\n\\n' >&2")).unwrap();
    soon(agent.wait()).await;
    let words = "\nlast output:\n  a]0;titleb";
    assert_eq!(agent.stderr_excerpt(), words);
    let agent = AgentProcess::spawn(&sh("exit 1")).unwrap();
    soon(agent.wait()).await;
    assert_eq!(agent.stderr_excerpt(), "");

    let agent = AgentProcess::spawn(&sh(
        "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo end >&2",
    ))
    .unwrap();
    soon(agent.wait()).await;
    let tail = agent.output_tail();
    assert!(
        tail.len() <= 64 * 1024 && tail.ends_with("xend"),
        "{}",
        tail.len()
    );

    let agent = AgentProcess::spawn(&sh("kill -SEGV $$")).unwrap();
    assert_eq!(soon(agent.wait()).await.to_string(), "signal SIGSEGV");
}

#[tokio::test]
async fn lines_of_stderr_are_passed_on() {
    let (sender, mut lines) = unbounded_channel();
    let pass = move |line: &str| drop(sender.send(line.to_owned()));
    let agent =
        AgentProcess::spawn_with(&sh("echo one >&2; read go; printf 'two\\nthree' >&2"), pass)
            .unwrap();
    assert_eq!(soon(lines.recv()).await.unwrap(), "one");
    soon(agent.shutdown(PATIENCE)).await;
    assert_eq!(soon(lines.recv()).await.unwrap(), "two");
    assert_eq!(soon(lines.recv()).await.unwrap(), "three");
    assert_eq!(soon(lines.recv()).await, None);
}

#[tokio::test]
async fn environment_and_directory() {
    let directory = tempfile::tempdir().unwrap();
    let cwd = directory.path().canonicalize().unwrap();
    let command = sh("pwd; echo $ACP_TEST ${PATH:+inherited}")
        .env("ACP_TEST", "x")
        .cwd(&cwd);
    let agent = AgentProcess::spawn(&command).unwrap();
    let (_stdin, stdout) = agent.take_stdio().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    assert_eq!(
        soon(lines.next_line()).await.unwrap().unwrap(),
        cwd.to_str().unwrap()
    );
    assert_eq!(
        soon(lines.next_line()).await.unwrap().unwrap(),
        "x inherited"
    );
    soon(agent.wait()).await;
}

#[tokio::test]
async fn what_cannot_be_started_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::write(&data, "no program").unwrap();
    let start = |command: AgentCommand| AgentProcess::spawn(&command).unwrap_err();

    let error = start(AgentCommand::new("no-such-agent"));
    assert!(matches!(error, SpawnError::NotInPath { .. }), "{error:?}");
    assert!(
        error
            .to_string()
            .contains("command not found: `no-such-agent`"),
        "{error}"
    );

    let error = start(AgentCommand::new("./no-such-agent"));
    assert!(matches!(error, SpawnError::NoSuchFile { .. }), "{error:?}");

    let error = start(AgentCommand::new("some-agent --acp"));
    assert!(
        matches!(error, SpawnError::ArgumentsInProgram { .. }),
        "{error:?}"
    );
    assert!(
        error
            .to_string()
            .contains("pass the program and its arguments separately"),
        "{error}"
    );

    let error = start(AgentCommand::new(&data));
    assert!(
        matches!(error, SpawnError::NotExecutable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("not executable: "), "{error}");

    let error = start(sh("true").cwd(directory.path().join("not there")));
    assert!(
        matches!(error, SpawnError::DirectoryNotFound { .. }),
        "{error:?}"
    );

    let error = start(sh("true").env("A", "nul\0"));
    assert!(matches!(error, SpawnError::System { .. }), "{error:?}");
    assert!(error.to_string().contains("cannot start"), "{error}");
}

#[tokio::test]
async fn a_program_in_the_terminal_has_what_it_is_given_and_its_end_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let script = "test \"$PLACE $1\" = 'vault in' && pwd > where; exit $2";
    let command = AgentCommand::new("sh")
        .args(["-c", script, "sh"])
        .cwd(dir.path());
    let run = |code: &str| command.clone().args(["in", code]).env("PLACE", "vault");
    assert!(soon(run("0").run_in_terminal()).await.unwrap().success());
    let place = std::fs::read_to_string(dir.path().join("where")).unwrap();
    let dir = dir.path().canonicalize().unwrap();
    assert_eq!(place.trim_end(), dir.to_str().unwrap());
    let exit = soon(run("3").run_in_terminal()).await.unwrap();
    assert_eq!(exit.code, Some(3));
    let exit = soon(sh("kill -TERM $$").run_in_terminal()).await.unwrap();
    assert_eq!(exit.signal.as_deref(), Some("SIGTERM"));
    let error = AgentCommand::new("no-such-program").run_in_terminal().await;
    assert!(matches!(error, Err(SpawnError::NotInPath { .. })));
}
