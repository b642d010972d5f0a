//! Checks that a client leaves no processes behind, however it exits.
//!
//! The client is another process of this test program.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, runs, soon};
use acp_host::{AgentCommand, AgentProcess, HostTerminals, SessionTerminals};
use acp_wire::v1::{
    CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, TerminalId,
    TerminalOutputRequest, WaitForTerminalExitRequest,
};
use rustix::process::{Pid, Signal, kill_process};

/// The environment variable with the role of the client.
const PART: &str = "ACP_TEST_PART";

/// A shell line that starts a child, a grandchild, a daemon in a session of its own, a daemon of that daemon, and one
/// whose parents have all exited. It prints the ids of the daemons, and then waits.
const FAMILY: &str = "sleep 1000 & (sleep 1000 & sleep 1000) &
    setsid sh -c 'echo $$; setsid sh -c \"echo \\$\\$; exec sleep 1000\" & exec sleep 1000' &
    (setsid sh -c '(sh -c \"echo \\$\\$; exec sleep 1000\" &)' &)
    wait";

/// The number of ids that [`FAMILY`] prints.
const DAEMONS: usize = 3;

fn sh(script: &str) -> CreateTerminalRequest {
    CreateTerminalRequest::new("s", "sh").args(["-c".to_owned(), script.to_owned()])
}

fn terminals() -> SessionTerminals {
    HostTerminals::new().session("/", |_| ())
}

async fn create(terminals: &SessionTerminals, script: &str) -> TerminalId {
    terminals.create(&sh(script)).await.unwrap().terminal_id
}

async fn release(terminals: &SessionTerminals, id: &TerminalId) {
    let request = ReleaseTerminalRequest::new("s", id);
    soon(terminals.release(&request)).await.unwrap();
}

async fn printed(terminals: &SessionTerminals, id: &TerminalId) -> String {
    let request = TerminalOutputRequest::new("s", id);
    terminals.output(&request).await.unwrap().output
}

/// Waits until the daemons of a family are running, and returns their ids.
async fn daemons(terminals: &SessionTerminals, id: &TerminalId) -> Vec<u32> {
    let known = async {
        loop {
            let text = printed(terminals, id).await;
            if text.lines().count() == DAEMONS && text.ends_with('\n') {
                return text.lines().map(|line| line.parse().unwrap()).collect();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let daemons: Vec<u32> = soon(known).await;
    assert!(daemons.iter().all(|id| runs(*id)), "{daemons:?}");
    daemons
}

/// Runs as the client if this program was started as one. Otherwise, it tests nothing.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "skipped: runs as part of the other tests"]
async fn the_client() {
    match std::env::var(PART).as_deref() {
        // Has an agent and terminals, and keeps starting and ending more until it is killed.
        Ok("works") => {
            println!("begins");
            let agent = AgentProcess::spawn(&AgentCommand::new("sh").args(["-c", FAMILY])).unwrap();
            let terminals = terminals();
            create(&terminals, FAMILY).await;
            loop {
                let id = create(&terminals, FAMILY).await;
                let short = create(&terminals, "true").await;
                release(&terminals, &short).await;
                release(&terminals, &id).await;
                assert_eq!(agent.try_wait(), None);
            }
        }
        // Exits by itself while things are still running.
        Ok("ends") => {
            let terminals = terminals();
            let id = create(&terminals, FAMILY).await;
            daemons(&terminals, &id).await;
            println!("runs");
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).unwrap();
            std::process::exit(0);
        }
        // Prints the signal handling of the processes it starts.
        Ok("signals") => {
            let terminals = terminals();
            let look = CreateTerminalRequest::new("s", "grep")
                .args(["-E", "^Sig(Ign|Blk)", "/proc/self/status"].map(str::to_owned));
            let id = terminals.create(&look).await.unwrap().terminal_id;
            let exit = WaitForTerminalExitRequest::new("s", &id);
            terminals.wait_for_exit(&exit).await.unwrap();
            print!("{}", printed(&terminals, &id).await);
        }
        _ => {}
    }
}

/// A client that was started. All of its processes are recognized by a variable in their environment.
struct OrphanedClient {
    child: Child,
    stdout: BufReader<ChildStdout>,
    token: String,
}

fn random() -> u64 {
    RandomState::new().hash_one(0)
}

impl OrphanedClient {
    fn start(part: &str, token: &str) -> Self {
        let mut this = Command::new(std::env::current_exe().unwrap());
        this.args(["--exact", "orphans::the_client", "--ignored", "--nocapture"]);
        Self::start_as(this, part, token)
    }

    fn start_as(mut command: Command, part: &str, token: &str) -> Self {
        // Even the keeper gets `PATH` and few other variables.
        let path = std::env::var("PATH").unwrap();
        let mut child = command
            .env(PART, part)
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
    fn keeper(&self) -> Pid {
        let keepers: Vec<u32> = carriers(&self.token)
            .into_iter()
            .filter(|id| described(*id).contains("acp-keeper"))
            .collect();
        assert_eq!(keepers.len(), 1, "{keepers:?}");
        Pid::from_raw(keepers[0].cast_signed()).unwrap()
    }
}

/// Returns all processes that have `token` in their environment. A zombie has no environment.
fn carriers(token: &str) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    ids.filter(|id| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(token)
    })
    .collect()
}

fn described(id: u32) -> String {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    format!("{id} {}", String::from_utf8_lossy(&line).replace('\0', " "))
}

/// Waits until no process has the token.
fn nobody_is_left(token: &str, when: &str) {
    let start = Instant::now();
    loop {
        let left = carriers(token);
        if left.is_empty() {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "killed {when}: {:#?}",
            left.into_iter().map(described).collect::<Vec<_>>()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_outlives_a_client_that_is_killed_at_any_moment() {
    // Use the same deadline for all of them. A process that is overlooked while it executes a program is seen later.
    let token = format!("token-{:x}", random());
    for round in 0..20 {
        let mut client = OrphanedClient::start("works", &token);
        client.wait_for("begins");
        // From the very first spawn to the time when everything is running.
        let moment = match round {
            0 => Duration::ZERO,
            1..10 => Duration::from_micros(random() % 20_000),
            _ => Duration::from_micros(random() % 300_000),
        };
        std::thread::sleep(moment);
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        nobody_is_left(&token, &format!("after {moment:?}"));
    }
    nobody_is_left(&token, "before");
}

#[test]
fn nothing_outlives_a_client_that_ends_and_its_output_ends_with_it() {
    let token = format!("token-{:x}", random());
    let mut client = OrphanedClient::start("ends", &token);
    client.wait_for("runs");
    let keeper = client.keeper();
    // Shows that the exit does not wait for the output.
    kill_process(keeper, Signal::STOP).unwrap();
    drop(client.child.stdin.take());
    assert!(client.child.wait().unwrap().success());
    let daemons = carriers(&token);
    assert!(daemons.len() > DAEMONS, "{daemons:?}");
    client.stdout.read_to_end(&mut Vec::new()).unwrap();
    kill_process(keeper, Signal::CONT).unwrap();
    nobody_is_left(&token, "by itself");
}

#[test]
fn a_keeper_that_is_gone_or_hangs_holds_nothing_up_and_is_replaced() {
    for (signal, token) in [Signal::KILL, Signal::STOP].map(|s| (s, format!("t-{:x}", random()))) {
        let mut client = OrphanedClient::start("works", &token);
        client.wait_for("begins");
        let known = Instant::now();
        while !carriers(&token)
            .iter()
            .any(|id| described(*id).contains("acp-keeper"))
        {
            assert!(known.elapsed() < PATIENCE);
        }
        let keeper = client.keeper();
        kill_process(keeper, signal).unwrap();
        // A keeper that hangs is noticed only when its pipe is full.
        if signal == Signal::KILL {
            let gone = Instant::now();
            while runs(keeper.as_raw_pid().unsigned_abs())
                || !carriers(&token)
                    .iter()
                    .any(|id| described(*id).contains("acp-keeper"))
            {
                assert!(gone.elapsed() < PATIENCE);
            }
        }
        assert!(client.child.try_wait().unwrap().is_none());
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        if signal == Signal::STOP {
            kill_process(keeper, Signal::CONT).unwrap();
        }
        nobody_is_left(&token, "with a broken keeper");
    }
}

#[test]
fn signals_that_were_ignored_are_as_programs_expect_them() {
    let this = std::env::current_exe().unwrap();
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            "trap '' HUP INT QUIT TERM PIPE USR1; exec \"$@\"",
            "sh",
        ])
        .arg(this)
        .args(["--exact", "orphans::the_client", "--ignored", "--nocapture"]);
    let mut client = OrphanedClient::start_as(shell, "signals", "token");
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
async fn release_kill_close_and_drop_end_daemons_too() {
    let terminals = terminals();
    let id = create(&terminals, FAMILY).await;
    let ids = daemons(&terminals, &id).await;
    let other = create(&terminals, FAMILY).await;
    let others = daemons(&terminals, &other).await;
    release(&terminals, &id).await;
    assert!(!ids.iter().any(|id| runs(*id)), "{ids:?}");
    // No other process has them.
    assert!(others.iter().all(|id| runs(*id)), "{others:?}");

    let request = KillTerminalRequest::new("s", &other);
    soon(terminals.kill(&request)).await.unwrap();
    assert!(!others.iter().any(|id| runs(*id)), "{others:?}");

    let id = create(&terminals, FAMILY).await;
    let ids = daemons(&terminals, &id).await;
    soon(terminals.close()).await;
    assert!(!ids.iter().any(|id| runs(*id)), "{ids:?}");

    let terminals = self::terminals();
    let id = create(&terminals, FAMILY).await;
    let ids = daemons(&terminals, &id).await;
    drop(terminals);
    soon(async {
        while ids.iter().any(|id| runs(*id)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A daemon that moves from process to process is hard to find: each process is gone when it is inspected, and the next
/// one did not exist yet when processes were listed.
#[tokio::test]
async fn release_ends_a_daemon_that_is_still_becoming_one() {
    const HOPS: &str =
        "hop() { [ $1 = 0 ] && exec sleep 1000; (hop $(($1 - 1)) &) }; echo $$; hop 60";
    let terminals = terminals();
    let token = format!("token-{:x}", random());
    for _ in 0..50 {
        let script = format!("HERE={token} setsid sh -c '{HOPS}'");
        let id = create(&terminals, &script).await;
        soon(async {
            while printed(&terminals, &id).await.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        release(&terminals, &id).await;
        let left = carriers(&token);
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn the_end_of_the_runtime_ends_daemons_too() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (terminals, ids) = runtime.block_on(async {
        let terminals = terminals();
        let id = create(&terminals, FAMILY).await;
        let ids = daemons(&terminals, &id).await;
        (terminals, ids)
    });
    // Its tasks are dropped wherever they are.
    drop(runtime);
    drop(terminals);
    let start = Instant::now();
    while ids.iter().any(|id| runs(*id)) {
        assert!(start.elapsed() < PATIENCE, "{ids:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn an_agent_s_daemons_are_asked_to_end_and_then_ended() {
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
        let line = soon(lines.next_line()).await.unwrap().unwrap();
        ids.push(line.parse().unwrap());
    }
    drop(stdin);
    let exit = soon(agent.shutdown(Duration::from_secs(1))).await;
    assert!(exit.success(), "{exit}");
    assert!(!ids.iter().any(|id| runs(*id)), "{ids:?}");
    let tail = agent.output_tail();
    assert!(tail.lines().any(|line| line == "asked"), "{tail}");
}

/// Returns the descriptors that child processes inherit because this process inherited them too.
fn passed_on() -> BTreeSet<u32> {
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
async fn children_have_no_descriptors_but_their_own() {
    // The shell has closed the directory it was reading by then.
    const SCRIPT: &str = "for fd in /proc/$$/fd/*; do test -e $fd && echo ${fd##*/}; done; true";
    let passed_on = passed_on();
    let terminals = std::sync::Arc::new(terminals());
    // Start many at once, so that some start while the pipes of others are only half created.
    let looks = (0..20).map(|_| {
        let terminals = terminals.clone();
        tokio::spawn(async move {
            let id = create(&terminals, SCRIPT).await;
            let exit = WaitForTerminalExitRequest::new("s", &id);
            soon(terminals.wait_for_exit(&exit)).await.unwrap();
            let text = printed(&terminals, &id).await;
            release(&terminals, &id).await;
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
