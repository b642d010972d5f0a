//! Process groups and their leaders.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};

use super::before_exec::before_exec;
use super::keeper;
use super::mark::GroupMark;
use super::processes::{GroupIdentity, RemainingProcesses, find_remaining};
use crate::process::ProcessExit;
use crate::sandbox::Sandbox;

/// How long to wait for processes that have been sent SIGKILL. Only a process that is stuck in the kernel, for example
/// on a dead network file system, takes this long to exit. Such a process is left behind.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest pause between two checks for remaining processes.
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A process group and its leader. Also keeps track of processes that have left the group, using the group's mark.
///
/// The leader is not reaped before the group has ended. While it exists, even as a zombie, its id cannot be reused, so
/// a signal to the group never reaches another process. That is why this uses the standard library's `Child`, which
/// reaps only on request, and not tokio's, which reaps on exit.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    id: Pid,
    mark: GroupMark,
    leader: Mutex<GroupLeader>,
    /// The group's sandbox. It must exist as long as any process in the group is running.
    sandbox: Option<Sandbox>,
}

#[derive(Debug)]
struct GroupLeader {
    /// The child process, or `None` once it has been reaped.
    child: Option<Child>,
    exit: Option<ProcessExit>,
}

/// The standard input and output of a child process.
pub(crate) type ChildPipes = (Option<ChildStdin>, Option<ChildStdout>);

impl ProcessGroup {
    /// Starts `command` as the leader of a new group, in a sandbox if one is given. Takes `command` by value, because
    /// the write ends of the pipes that it owns must be closed before the readers can see the end of the output.
    pub(crate) fn spawn(
        mut command: Command,
        sandbox: Option<&Sandbox>,
    ) -> io::Result<(Self, ChildPipes)> {
        // The handler must exist before the child can exit: whoever started this process may have set SIGCHLD to be
        // ignored, and then the system would discard exit statuses.
        let _ = signal(SignalKind::child())?;
        let mark = GroupMark::new();
        command.env(GroupMark::MARK_VARIABLE, mark.value());
        let line = keeper::keeper_message(&mark);
        let pipe = line.as_ref().map(keeper::KeeperMessage::pipe);
        before_exec(&mut command, line);
        // Even a child that fails to execute its program has registered with the keeper.
        let spawned = match sandbox {
            Some(sandbox) => {
                sandbox.prepare(&mut command);
                sandbox.run_confined(move || command.spawn()).flatten()
            }
            None => command.spawn(),
        };
        let mut child = spawned.inspect_err(|_| keeper::forget_group(&mark))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let id = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("invalid process id"))?;
        if let Some(pipe) = pipe {
            keeper::confirm_group(&pipe, &mark, id);
        }
        let group = Self {
            id,
            mark,
            leader: Mutex::new(GroupLeader {
                child: Some(child),
                exit: None,
            }),
            sandbox: sandbox.cloned(),
        };
        let stdin = stdin.map(ChildStdin::from_std).transpose()?;
        let stdout = stdout.map(ChildStdout::from_std).transpose()?;
        Ok((group, (stdin, stdout)))
    }

    /// Returns the process id of the group leader.
    pub(crate) fn id(&self) -> u32 {
        self.id.as_raw_pid().unsigned_abs()
    }

    fn leader(&self) -> MutexGuard<'_, GroupLeader> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the leader's exit status, or `None` if the leader is still running.
    fn try_wait(&self) -> Option<ProcessExit> {
        let mut leader = self.leader();
        if leader.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match rustix::process::waitid(WaitId::Pid(self.id), options) {
                Ok(Some(status)) => leader.exit = Some(process_exit(&status)),
                Ok(None) | Err(Errno::INTR) => {}
                // Other code in this program waits for any child and reaped this one: it has exited, but its status is
                // unknown, and its id may be reused from now on.
                Err(_) => {
                    leader.child = None;
                    leader.exit = Some(ProcessExit::unknown());
                    keeper::forget_group(&self.mark);
                }
            }
        }
        leader.exit.clone()
    }

    /// Waits for the leader to exit. Any number of callers may wait.
    pub(crate) async fn wait(&self) -> ProcessExit {
        // Listens before checking, so that no exit is missed between the two.
        let mut signals = signal(SignalKind::child()).ok();
        loop {
            if let Some(exit) = self.try_wait() {
                return exit;
            }
            match &mut signals {
                Some(signals) => drop(signals.recv().await),
                // The system cannot report exits, so poll.
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Kills the group immediately, but not processes that have left it. To kill those as well, use
    /// [`kill_and_wait`](Self::kill_and_wait).
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let leader = self.leader();
        if leader.child.is_some() {
            // This fails only if there is no process left to signal.
            let _ = rustix::process::kill_process_group(self.id, signal);
        }
    }

    /// Asks the processes in the group, and those that have left it, to exit.
    pub(crate) async fn terminate(&self) {
        self.signal(Signal::TERM);
        self.find_remaining(Some(Signal::TERM)).await;
    }

    /// Waits until all processes in the group, and those that have left it, have exited, or until `patience` has
    /// elapsed. Returns `true` if all have exited.
    pub(crate) async fn wait_all(&self, patience: Duration) -> bool {
        self.wait_until_empty(None, patience).await
    }

    /// Kills the group and the processes that have left it, and waits until they have exited or `patience` has elapsed.
    /// Returns `true` if they have exited.
    pub(crate) async fn kill_and_wait(&self, patience: Duration) -> bool {
        self.kill();
        self.wait_until_empty(Some(Signal::KILL), patience).await
    }

    /// Looks for remaining processes, and sends `signal` to those that have left the group.
    async fn find_remaining(&self, signal: Option<Signal>) -> RemainingProcesses {
        let known = self.identity();
        let looked = tokio::task::spawn_blocking(move || find_remaining(known, signal));
        looked.await.unwrap_or(RemainingProcesses::Unknown)
    }

    async fn wait_until_empty(&self, signal: Option<Signal>, patience: Duration) -> bool {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        // No system reports when a group becomes empty, so poll, at growing intervals.
        loop {
            if is_empty(self.find_remaining(signal).await) {
                return true;
            }
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
    }

    /// Returns the identity of the group. Includes the group's id only until the leader is reaped.
    fn identity(&self) -> GroupIdentity {
        GroupIdentity {
            group: self.leader().child.is_some().then_some(self.id),
            mark: self.mark.clone(),
        }
    }

    /// Kills the group and the processes that have left it, and waits until they have exited.
    pub(crate) async fn finish(&self) {
        self.kill();
        if tokio::time::timeout(KILL_TIMEOUT, self.wait())
            .await
            .is_err()
        {
            return;
        }
        self.kill_and_wait(KILL_TIMEOUT).await;
        let mut leader = self.leader();
        if let Some(child) = leader.child.take() {
            reap(child, &self.mark);
        }
    }
}

/// Reaps the leader after the group has ended. From then on, signals are no longer sent to the group.
fn reap(mut child: Child, mark: &GroupMark) {
    // In this order: once the leader is reaped, its id may be reused.
    keeper::forget_group(mark);
    let _ = child.wait();
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        let known = self.identity();
        let leader = self
            .leader
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(child) = leader.child.take() {
            // There may be no runtime left to wait in. If no thread can be started either, the leader stays unreaped,
            // so that its id is not reused, and the keeper does the rest.
            let id = self.id;
            let sandbox = self.sandbox.take();
            let reaper = std::thread::Builder::new().name("reaper".to_owned());
            let _ = reaper.spawn(move || {
                let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                while let Err(Errno::INTR) = rustix::process::waitid(WaitId::Pid(id), ended) {}
                kill_until_empty(&known);
                reap(child, &known.mark);
                drop(sandbox);
            });
        }
    }
}

/// After a group has ended, kills the processes that had left it, and waits until they have exited.
fn kill_until_empty(known: &GroupIdentity) {
    let start = Instant::now();
    while !is_empty(find_remaining(known.clone(), Some(Signal::KILL)))
        && start.elapsed() < KILL_TIMEOUT
    {
        std::thread::sleep(MAX_POLL_INTERVAL);
    }
}

/// Returns `true` if no process is known to remain.
fn is_empty(left: RemainingProcesses) -> bool {
    left != RemainingProcesses::Present
}

fn process_exit(status: &WaitIdStatus) -> ProcessExit {
    ProcessExit {
        code: status.exit_status(),
        signal: status.terminating_signal().map(signal_name),
    }
}

/// Converts a process's exit status from the standard library's type.
pub(crate) fn to_process_exit(status: ExitStatus) -> ProcessExit {
    ProcessExit {
        code: status.code(),
        signal: status.signal().map(signal_name),
    }
}

fn signal_name(number: i32) -> String {
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::VTALARM, "SIGVTALRM"),
        (Signal::PROF, "SIGPROF"),
        (Signal::IO, "SIGIO"),
        (Signal::SYS, "SIGSYS"),
    ];
    match names.iter().find(|(signal, _)| signal.as_raw() == number) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("SIG{number}"),
    }
}
