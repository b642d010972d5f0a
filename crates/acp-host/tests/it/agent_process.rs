//! Tests of agents that run as real child processes.

use std::time::{Duration, Instant};

use crate::common::{TIMEOUT, is_running, with_timeout};
use acp_host::{AgentCommand, AgentProcess, SpawnError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::sync::mpsc::unbounded_channel;

fn shell_command(script: &str) -> AgentCommand {
    AgentCommand::new("sh").args(["-c", script])
}

async fn read_pids(lines: &mut Lines<BufReader<ChildStdout>>, count: usize) -> Vec<u32> {
    let mut pids = Vec::new();
    while pids.len() < count {
        pids.push(
            with_timeout(lines.next_line())
                .await
                .unwrap()
                .unwrap()
                .parse()
                .unwrap(),
        );
    }
    assert!(pids.iter().all(|pid| is_running(*pid)), "{pids:?}");
    pids
}

#[tokio::test]
async fn agent_exits_when_its_stdin_closes() {
    let agent = AgentProcess::spawn(&shell_command("echo $$; cat; echo bye >&2; exit 7")).unwrap();
    let (mut stdin, stdout) = agent.take_stdio().unwrap();
    assert!(agent.take_stdio().is_none());
    let mut lines = BufReader::new(stdout).lines();
    assert_eq!(read_pids(&mut lines, 1).await, [agent.id()]);
    stdin.write_all(b"ping\n").await.unwrap();
    assert_eq!(
        with_timeout(lines.next_line()).await.unwrap().unwrap(),
        "ping"
    );
    assert_eq!(agent.try_wait(), None);
    drop(stdin);
    let start = Instant::now();
    let exit = with_timeout(agent.shutdown(TIMEOUT)).await;
    assert!(start.elapsed() < TIMEOUT / 2);
    assert_eq!(
        (exit.code, exit.to_string().as_str()),
        (Some(7), "exit code 7")
    );
    assert_eq!(agent.output_tail(), "bye");
    assert_eq!(agent.try_wait(), Some(exit));
}

#[tokio::test]
async fn shutdown_closes_untaken_stdin() {
    let agent = AgentProcess::spawn(&shell_command("cat")).unwrap();
    let exit = with_timeout(agent.shutdown(TIMEOUT)).await;
    assert!(exit.success(), "{exit}");
}

#[tokio::test]
async fn agent_that_ignores_closed_stdin_gets_sigterm() {
    let script =
        "trap 'echo asked to end >&2; exit 0' TERM; echo $$; while :; do sleep 1000 & wait; done";
    let agent = AgentProcess::spawn(&shell_command(script)).unwrap();
    let (stdin, stdout) = agent.take_stdio().unwrap();
    let pids = read_pids(&mut BufReader::new(stdout).lines(), 1).await;
    drop(stdin);
    let exit = with_timeout(agent.shutdown(Duration::from_millis(200))).await;
    assert_eq!(agent.output_tail(), "asked to end");
    assert!(exit.success(), "{exit}");
    assert!(!is_running(pids[0]));
}

#[tokio::test]
async fn unresponsive_agent_is_killed_with_its_grandchildren() {
    let script = "trap '' TERM HUP; echo $$; (sleep 1000 & echo $!; sleep 1000) & echo $!; while :; do wait; sleep 1000; done";
    let agent = AgentProcess::spawn(&shell_command(script)).unwrap();
    let (stdin, stdout) = agent.take_stdio().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let pids = read_pids(&mut lines, 3).await;
    drop(stdin);
    let exit = with_timeout(agent.shutdown(Duration::from_millis(200))).await;
    assert_eq!(exit.signal.as_deref(), Some("SIGKILL"));
    assert!(!pids.iter().any(|pid| is_running(*pid)), "{pids:?}");
    assert_eq!(with_timeout(lines.next_line()).await.unwrap(), None);
}

#[tokio::test]
async fn processes_left_by_a_wrapper_are_ended() {
    // The wrapper exits at once, but the processes it started hold the pipes.
    let script = "sleep 1000 & echo $!; (trap '' TERM; sleep 1000 & echo $!; wait) & read line";
    let agent = AgentProcess::spawn(&shell_command(script)).unwrap();
    let (stdin, stdout) = agent.take_stdio().unwrap();
    let pids = read_pids(&mut BufReader::new(stdout).lines(), 2).await;
    drop(stdin);
    let exit = with_timeout(agent.wait()).await;
    assert_eq!(exit.code, Some(1));
    assert!(pids.iter().all(|pid| is_running(*pid)));
    assert_eq!(
        with_timeout(agent.shutdown(Duration::from_millis(200))).await,
        exit
    );
    assert!(!pids.iter().any(|pid| is_running(*pid)), "{pids:?}");
}

#[tokio::test]
async fn drop_ends_the_process_group() {
    let agent = AgentProcess::spawn(&shell_command("echo $$; sleep 1000 & echo $!; wait")).unwrap();
    let (_stdin, stdout) = agent.take_stdio().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    let pids = read_pids(&mut lines, 2).await;
    drop(agent);
    // All of them have ended once nothing holds the pipe.
    assert_eq!(with_timeout(lines.next_line()).await.unwrap(), None);
    with_timeout(async {
        while pids.iter().any(|pid| is_running(*pid)) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn startup_crash_is_explained_by_stderr() {
    // A process that is left behind holds the pipe. Reporting the exit must not wait for it.
    let script =
        "i=0; while [ $i -lt 300 ]; do echo line $i >&2; i=$((i+1)); done; sleep 1000 & exit 42";
    let agent = AgentProcess::spawn(&shell_command(script)).unwrap();
    assert_eq!(with_timeout(agent.wait()).await.code, Some(42));
    let expected: Vec<_> = (100..300).map(|i| format!("line {i}")).collect();
    assert_eq!(agent.output_tail(), expected.join("\n"));
    // The user sees the end of the output.
    let words = agent.stderr_excerpt();
    let words: Vec<&str> = words.lines().collect();
    assert_eq!(words[..2], ["", "last output:"]);
    assert_eq!((words[2], words.len()), ("  line 280", 22));

    let agent =
        AgentProcess::spawn(&shell_command("printf 'a\\033]0;title\\007b\\n\\n' >&2")).unwrap();
    with_timeout(agent.wait()).await;
    let words = "\nlast output:\n  a]0;titleb";
    assert_eq!(agent.stderr_excerpt(), words);
    let agent = AgentProcess::spawn(&shell_command("exit 1")).unwrap();
    with_timeout(agent.wait()).await;
    assert_eq!(agent.stderr_excerpt(), "");

    let agent = AgentProcess::spawn(&shell_command(
        "head -c 1000000 /dev/zero | tr '\\0' x >&2; echo end >&2",
    ))
    .unwrap();
    with_timeout(agent.wait()).await;
    let tail = agent.output_tail();
    assert!(
        tail.len() <= 64 * 1024 && tail.ends_with("xend"),
        "{}",
        tail.len()
    );

    let agent = AgentProcess::spawn(&shell_command("kill -SEGV $$")).unwrap();
    assert_eq!(
        with_timeout(agent.wait()).await.to_string(),
        "signal SIGSEGV"
    );
}

#[tokio::test]
async fn stderr_lines_are_passed_on() {
    let (sender, mut lines) = unbounded_channel();
    let pass = move |line: &str| drop(sender.send(line.to_owned()));
    let agent = AgentProcess::spawn_with(
        &shell_command("echo one >&2; read go; printf 'two\\nthree' >&2"),
        pass,
    )
    .unwrap();
    assert_eq!(with_timeout(lines.recv()).await.unwrap(), "one");
    with_timeout(agent.shutdown(TIMEOUT)).await;
    assert_eq!(with_timeout(lines.recv()).await.unwrap(), "two");
    assert_eq!(with_timeout(lines.recv()).await.unwrap(), "three");
    assert_eq!(with_timeout(lines.recv()).await, None);
}

#[tokio::test]
async fn environment_and_directory_are_set() {
    let directory = tempfile::tempdir().unwrap();
    let cwd = directory.path().canonicalize().unwrap();
    let command = shell_command("pwd; echo $ACP_TEST ${PATH:+inherited}")
        .env("ACP_TEST", "x")
        .cwd(&cwd);
    let agent = AgentProcess::spawn(&command).unwrap();
    let (_stdin, stdout) = agent.take_stdio().unwrap();
    let mut lines = BufReader::new(stdout).lines();
    assert_eq!(
        with_timeout(lines.next_line()).await.unwrap().unwrap(),
        cwd.to_str().unwrap()
    );
    assert_eq!(
        with_timeout(lines.next_line()).await.unwrap().unwrap(),
        "x inherited"
    );
    with_timeout(agent.wait()).await;
}

#[tokio::test]
async fn spawn_errors_are_explained() {
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

    let error = start(shell_command("true").cwd(directory.path().join("not there")));
    assert!(
        matches!(error, SpawnError::DirectoryNotFound { .. }),
        "{error:?}"
    );

    let error = start(shell_command("true").env("A", "nul\0"));
    assert!(matches!(error, SpawnError::System { .. }), "{error:?}");
    assert!(error.to_string().contains("cannot start"), "{error}");
}

#[tokio::test]
async fn program_in_the_terminal_inherits_it_and_reports_its_exit() {
    let dir = tempfile::tempdir().unwrap();
    let script = "test \"$PLACE $1\" = 'vault in' && pwd > where; exit $2";
    let command = AgentCommand::new("sh")
        .args(["-c", script, "sh"])
        .cwd(dir.path());
    let run = |code: &str| command.clone().args(["in", code]).env("PLACE", "vault");
    assert!(
        with_timeout(run("0").run_in_terminal())
            .await
            .unwrap()
            .success()
    );
    let place = std::fs::read_to_string(dir.path().join("where")).unwrap();
    let dir = dir.path().canonicalize().unwrap();
    assert_eq!(place.trim_end(), dir.to_str().unwrap());
    let exit = with_timeout(run("3").run_in_terminal()).await.unwrap();
    assert_eq!(exit.code, Some(3));
    let exit = with_timeout(shell_command("kill -TERM $$").run_in_terminal())
        .await
        .unwrap();
    assert_eq!(exit.signal.as_deref(), Some("SIGTERM"));
    let error = AgentCommand::new("no-such-program").run_in_terminal().await;
    assert!(matches!(error, Err(SpawnError::NotInPath { .. })));
}
