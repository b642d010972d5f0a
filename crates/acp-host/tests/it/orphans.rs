//! Tests that a client leaves no processes behind, no matter how it exits.
//!
//! The client is another process of this test program.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{TIMEOUT, is_running, with_timeout};
use acp_host::{AgentCommand, AgentProcess, HostTerminals, SessionTerminals};
use acp_wire::v1::{
    CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, TerminalId,
    TerminalOutputRequest, WaitForTerminalExitRequest,
};
use rustix::process::{Pid, Signal, kill_process};

/// The environment variable that contains the client's role.
const CLIENT_ROLE_VARIABLE: &str = "ACP_TEST_PART";

/// A shell line that starts a child, a grandchild, a daemon in a separate session, a daemon started by that daemon, and
/// a daemon whose parents have all exited. It prints the ids of the daemons and then waits.
const PROCESS_FAMILY_SCRIPT: &str = "sleep 1000 & (sleep 1000 & sleep 1000) &
    setsid sh -c 'echo $$; setsid sh -c \"echo \\$\\$; exec sleep 1000\" & exec sleep 1000' &
    (setsid sh -c '(sh -c \"echo \\$\\$; exec sleep 1000\" &)' &)
    wait";

/// The number of ids that [`PROCESS_FAMILY_SCRIPT`] prints.
const DAEMON_COUNT: usize = 3;

fn shell_request(script: &str) -> CreateTerminalRequest {
    CreateTerminalRequest::new("s", "sh").args(["-c".to_owned(), script.to_owned()])
}

fn session_terminals() -> SessionTerminals {
    HostTerminals::new().session("/", |_| ())
}

async fn create_terminal(terminals: &SessionTerminals, script: &str) -> TerminalId {
    terminals
        .create(&shell_request(script))
        .await
        .unwrap()
        .terminal_id
}

async fn release_terminal(terminals: &SessionTerminals, id: &TerminalId) {
    let request = ReleaseTerminalRequest::new("s", id);
    with_timeout(terminals.release(&request)).await.unwrap();
}

async fn read_output(terminals: &SessionTerminals, id: &TerminalId) -> String {
    let request = TerminalOutputRequest::new("s", id);
    terminals.output(&request).await.unwrap().output
}

/// Waits until the daemons of a family are running, and returns their ids.
async fn wait_for_daemons(terminals: &SessionTerminals, id: &TerminalId) -> Vec<u32> {
    let known = async {
        loop {
            let text = read_output(terminals, id).await;
            if text.lines().count() == DAEMON_COUNT && text.ends_with('\n') {
                return text.lines().map(|line| line.parse().unwrap()).collect();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let daemons: Vec<u32> = with_timeout(known).await;
    assert!(daemons.iter().all(|id| is_running(*id)), "{daemons:?}");
    daemons
}

/// Not a real test: runs the client, if this program was started as one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "skipped: runs as part of the other tests"]
async fn run_client_role() {
    match std::env::var(CLIENT_ROLE_VARIABLE).as_deref() {
        // Has an agent and terminals, and keeps starting and ending more until it is killed.
        Ok("works") => {
            println!("begins");
            let agent =
                AgentProcess::spawn(&AgentCommand::new("sh").args(["-c", PROCESS_FAMILY_SCRIPT]))
                    .unwrap();
            let terminals = session_terminals();
            create_terminal(&terminals, PROCESS_FAMILY_SCRIPT).await;
            loop {
                let id = create_terminal(&terminals, PROCESS_FAMILY_SCRIPT).await;
                let short = create_terminal(&terminals, "true").await;
                release_terminal(&terminals, &short).await;
                release_terminal(&terminals, &id).await;
                assert_eq!(agent.try_wait(), None);
            }
        }
        // Exits by itself while things are still running.
        Ok("ends") => {
            let terminals = session_terminals();
            let id = create_terminal(&terminals, PROCESS_FAMILY_SCRIPT).await;
            wait_for_daemons(&terminals, &id).await;
            println!("runs");
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
            std::process::exit(0);
        }
        // Prints the signal handling of the processes it starts.
        Ok("signals") => {
            let terminals = session_terminals();
            let look = CreateTerminalRequest::new("s", "grep")
                .args(["-E", "^Sig(Ign|Blk)", "/proc/self/status"].map(str::to_owned));
            let id = terminals.create(&look).await.unwrap().terminal_id;
            let exit = WaitForTerminalExitRequest::new("s", &id);
            terminals.wait_for_exit(&exit).await.unwrap();
            print!("{}", read_output(&terminals, &id).await);
        }
        _ => {}
    }
}

/// A client started by the test. A variable in their environment identifies all of its processes.
struct OrphanedClient {
    child: Child,
    stdout: BufReader<ChildStdout>,
    token: String,
}

fn random_number() -> u64 {
    RandomState::new().hash_one(0)
}

impl OrphanedClient {
    fn start(part: &str, token: &str) -> Self {
        let mut this = Command::new(std::env::current_exe().unwrap());
        this.args([
            "--exact",
            "orphans::run_client_role",
            "--ignored",
            "--nocapture",
        ]);
        Self::start_from_command(this, part, token)
    }

    fn start_from_command(mut command: Command, part: &str, token: &str) -> Self {
        // Even the keeper gets `PATH` and few other variables.
        let path = std::env::var("PATH").unwrap();
        let mut child = command
            .env(CLIENT_ROLE_VARIABLE, part)
            .env("PATH", format!("{path}:/{token}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            stdout,
            token: token.to_owned(),
        }
    }

    fn wait_for(&mut self, line: &str) {
        let mut seen = String::new();
        while !seen.contains(line) {
            assert_ne!(self.stdout.read_line(&mut seen).unwrap(), 0, "{seen}");
        }
    }

    /// Returns the process id of the client's keeper.
    fn keeper_pid(&self) -> Pid {
        let keepers: Vec<u32> = processes_with_token(&self.token)
            .into_iter()
            .filter(|id| describe_process(*id).contains("acp-keeper"))
            .collect();
        assert_eq!(keepers.len(), 1, "{keepers:?}");
        Pid::from_raw(keepers[0].cast_signed()).unwrap()
    }
}

/// Returns all processes that have `token` in their environment. Zombies have no environment.
fn processes_with_token(token: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(token)
    })
    .collect()
}

fn describe_process(id: u32) -> String {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    format!("{id} {}", String::from_utf8_lossy(&line).replace('\0', " "))
}

/// Waits until no process has the token in its environment.
fn assert_no_processes_left(token: &str, when: &str) {
    let start = Instant::now();
    loop {
        let left = processes_with_token(token);
        if left.is_empty() {
            return;
        }
        assert!(
            start.elapsed() < TIMEOUT,
            "killed {when}: {:#?}",
            left.into_iter().map(describe_process).collect::<Vec<_>>()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn killed_client_leaves_no_processes() {
    // Use the same deadline for all of them. A process that is overlooked while it executes a program is seen later.
    let token = format!("token-{:x}", random_number());
    for round in 0..20 {
        let mut client = OrphanedClient::start("works", &token);
        client.wait_for("begins");
        // From the very first spawn to the time when everything is running.
        let moment = match round {
            0 => Duration::ZERO,
            1..10 => Duration::from_micros(random_number() % 20_000),
            _ => Duration::from_micros(random_number() % 300_000),
        };
        std::thread::sleep(moment);
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        assert_no_processes_left(&token, &format!("after {moment:?}"));
    }
    assert_no_processes_left(&token, "before");
}

#[test]
fn exiting_client_leaves_no_processes_and_closes_its_output() {
    let token = format!("token-{:x}", random_number());
    let mut client = OrphanedClient::start("ends", &token);
    client.wait_for("runs");
    let keeper = client.keeper_pid();
    // Shows that the exit does not wait for the output.
    kill_process(keeper, Signal::STOP).unwrap();
    drop(client.child.stdin.take());
    assert!(client.child.wait().unwrap().success());
    let daemons = processes_with_token(&token);
    assert!(daemons.len() > DAEMON_COUNT, "{daemons:?}");
    client.stdout.read_to_end(&mut Vec::new()).unwrap();
    kill_process(keeper, Signal::CONT).unwrap();
    assert_no_processes_left(&token, "by itself");
}

#[test]
fn missing_or_hanging_keeper_is_replaced_without_delay() {
    for (signal, token) in
        [Signal::KILL, Signal::STOP].map(|s| (s, format!("t-{:x}", random_number())))
    {
        let mut client = OrphanedClient::start("works", &token);
        client.wait_for("begins");
        let known = Instant::now();
        while !processes_with_token(&token)
            .iter()
            .any(|id| describe_process(*id).contains("acp-keeper"))
        {
            assert!(known.elapsed() < TIMEOUT);
        }
        let keeper = client.keeper_pid();
        kill_process(keeper, signal).unwrap();
        // A keeper that hangs is noticed only when its pipe is full.
        if signal == Signal::KILL {
            let gone = Instant::now();
            while is_running(keeper.as_raw_pid().unsigned_abs())
                || !processes_with_token(&token)
                    .iter()
                    .any(|id| describe_process(*id).contains("acp-keeper"))
            {
                assert!(gone.elapsed() < TIMEOUT);
            }
        }
        assert!(client.child.try_wait().unwrap().is_none());
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        if signal == Signal::STOP {
            kill_process(keeper, Signal::CONT).unwrap();
        }
        assert_no_processes_left(&token, "with a broken keeper");
    }
}

#[test]
fn ignored_signals_are_reset_for_programs() {
    let this = std::env::current_exe().unwrap();
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            "trap '' HUP INT QUIT TERM PIPE USR1; exec \"$@\"",
            "sh",
        ])
        .arg(this)
        .args([
            "--exact",
            "orphans::run_client_role",
            "--ignored",
            "--nocapture",
        ]);
    let mut client = OrphanedClient::start_from_command(shell, "signals", "token");
    let mut shown = String::new();
    client.stdout.read_to_string(&mut shown).unwrap();
    assert!(client.child.wait().unwrap().success());
    // Two signals belong to the C library and cannot be set.
    let own: u64 = 1 << 31 | 1 << 32;
    for name in ["SigBlk:", "SigIgn:"] {
        let set = shown.lines().find_map(|line| line.strip_prefix(name));
        let set = u64::from_str_radix(set.unwrap().trim(), 16).unwrap();
        assert_eq!(set & !own, 0, "{shown}");
    }
}

#[tokio::test]
async fn release_kill_close_and_drop_end_daemons() {
    let terminals = session_terminals();
    let id = create_terminal(&terminals, PROCESS_FAMILY_SCRIPT).await;
    let ids = wait_for_daemons(&terminals, &id).await;
    let other = create_terminal(&terminals, PROCESS_FAMILY_SCRIPT).await;
    let others = wait_for_daemons(&terminals, &other).await;
    release_terminal(&terminals, &id).await;
    assert!(!ids.iter().any(|id| is_running(*id)), "{ids:?}");
    // No other process has them.
    assert!(others.iter().all(|id| is_running(*id)), "{others:?}");

    let request = KillTerminalRequest::new("s", &other);
    with_timeout(terminals.kill(&request)).await.unwrap();
    assert!(!others.iter().any(|id| is_running(*id)), "{others:?}");

    let id = create_terminal(&terminals, PROCESS_FAMILY_SCRIPT).await;
    let ids = wait_for_daemons(&terminals, &id).await;
    with_timeout(terminals.close()).await;
    assert!(!ids.iter().any(|id| is_running(*id)), "{ids:?}");

    let terminals = self::session_terminals();
    let id = create_terminal(&terminals, PROCESS_FAMILY_SCRIPT).await;
    let ids = wait_for_daemons(&terminals, &id).await;
    drop(terminals);
    with_timeout(async {
        while ids.iter().any(|id| is_running(*id)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// Tests a daemon that moves from process to process, which makes it hard to find. By the time one of its processes is
/// inspected, it has exited, and its successor did not exist yet when the processes were listed.
#[tokio::test]
async fn release_ends_a_process_that_is_daemonizing() {
    const DAEMONIZING_SCRIPT: &str =
        "hop() { [ $1 = 0 ] && exec sleep 1000; (hop $(($1 - 1)) &) }; echo $$; hop 60";
    let terminals = session_terminals();
    let token = format!("token-{:x}", random_number());
    for _ in 0..50 {
        let script = format!("HERE={token} setsid sh -c '{DAEMONIZING_SCRIPT}'");
        let id = create_terminal(&terminals, &script).await;
        with_timeout(async {
            while read_output(&terminals, &id).await.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        release_terminal(&terminals, &id).await;
        let left = processes_with_token(&token);
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn runtime_shutdown_ends_daemons() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (terminals, ids) = runtime.block_on(async {
        let terminals = session_terminals();
        let id = create_terminal(&terminals, PROCESS_FAMILY_SCRIPT).await;
        let ids = wait_for_daemons(&terminals, &id).await;
        (terminals, ids)
    });
    // Its tasks are dropped wherever they are.
    drop(runtime);
    drop(terminals);
    let start = Instant::now();
    while ids.iter().any(|id| is_running(*id)) {
        assert!(start.elapsed() < TIMEOUT, "{ids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn agent_daemons_are_terminated_then_killed() {
    // The agent exits when its input ends, and leaves two daemons: one handles the signal, and one ignores it.
    let script =
        "setsid sh -c 'trap \"echo asked >&2; exit\" TERM; echo $$; while :; do sleep 0.05; done' &
        setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' &
        cat";
    let agent = AgentProcess::spawn(&AgentCommand::new("sh").args(["-c", script])).unwrap();
    let (stdin, stdout) = agent.take_stdio().unwrap();
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(stdout));
    let mut ids: Vec<u32> = Vec::new();
    while ids.len() < 2 {
        let line = with_timeout(lines.next_line()).await.unwrap().unwrap();
        ids.push(line.parse().unwrap());
    }
    drop(stdin);
    let exit = with_timeout(agent.shutdown(Duration::from_secs(1))).await;
    assert!(exit.success(), "{exit}");
    assert!(!ids.iter().any(|id| is_running(*id)), "{ids:?}");
    let tail = agent.output_tail();
    assert!(tail.lines().any(|line| line == "asked"), "{tail}");
}

/// Returns the file descriptors that this process has inherited and that its child processes would inherit, too.
fn inheritable_descriptors() -> BTreeSet<u32> {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let entries = std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let info = std::fs::read_to_string(entry.path()).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
            let number = entry.file_name().to_str()?.parse().ok()?;
            (flags & CLOSE_ON_EXEC == 0).then_some(number)
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn children_inherit_no_descriptors() {
    // The shell has closed the directory it was reading by then.
    const LIST_DESCRIPTORS: &str =
        "for fd in /proc/$$/fd/*; do test -e $fd && echo ${fd##*/}; done; true";
    let passed_on = inheritable_descriptors();
    let terminals = std::sync::Arc::new(session_terminals());
    // Start many at once, so that some start while the pipes of others are only half created.
    let looks = (0..20).map(|_| {
        let terminals = terminals.clone();
        tokio::spawn(async move {
            let id = create_terminal(&terminals, LIST_DESCRIPTORS).await;
            let exit = WaitForTerminalExitRequest::new("s", &id);
            with_timeout(terminals.wait_for_exit(&exit)).await.unwrap();
            let text = read_output(&terminals, &id).await;
            release_terminal(&terminals, &id).await;
            text
        })
    });
    for look in looks.collect::<Vec<_>>() {
        let text = look.await.unwrap();
        let numbers: BTreeSet<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert!(numbers.is_superset(&BTreeSet::from([0, 1, 2])), "{text}");
        let strange: Vec<_> = numbers
            .iter()
            .filter(|n| **n > 2 && !passed_on.contains(n))
            .collect();
        assert!(strange.is_empty(), "{strange:?} of {numbers:?}");
    }
}
