//! Unix: process groups and pipes.

use std::ffi::OsStr;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use process_wrap::std::{CommandWrap, CommandWrapper, ProcessSession};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};

use crate::process::Exit;

/// How long to wait for processes that were sent SIGKILL. Only one that hangs inside the kernel, on a
/// dead network file system for example, takes that long; it is then left behind.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// A process that leads its own process group, and that group.
///
/// The leader is not reaped before the group is done with: as long as it is there, if only as a
/// zombie, nobody else can get its id, so that a signal to the group can never hit strangers. That is
/// why this builds on the standard library's `Child`, which reaps only when asked; tokio's and
/// process-wrap's reap on exit.
#[derive(Debug)]
pub(crate) struct Group {
    id: Pid,
    leader: Mutex<Leader>,
}

#[derive(Debug)]
struct Leader {
    /// Absent once reaped.
    child: Option<Child>,
    exit: Option<Exit>,
}

/// What a child was given pipes for.
pub(crate) type Pipes = (Option<ChildStdin>, Option<ChildStdout>);

impl Group {
    /// Starts `command` as the leader of a new group. `command` is consumed so that the writing ends
    /// of pipes that it holds are closed, without which they would never read as ended.
    pub(crate) fn spawn(mut command: Command) -> io::Result<(Self, Pipes)> {
        // A handler must be there before the child can end: whoever started this process may have
        // set SIGCHLD to be ignored, and then the system would throw exit statuses away.
        let _ = signal(SignalKind::child())?;
        // A session of its own rather than only a group: without a controlling terminal, a program
        // that wants to ask for a password fails, instead of being stopped by the terminal for ever.
        // process-wrap has what that takes between fork and exec.
        ProcessSession.pre_spawn(&mut command, &CommandWrap::with_new("", |_| ()))?;
        let mut child = command.spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let id = i32::try_from(child.id())
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("the process has no usable id"))?;
        let group = Self {
            id,
            leader: Mutex::new(Leader {
                child: Some(child),
                exit: None,
            }),
        };
        let stdin = stdin.map(ChildStdin::from_std).transpose()?;
        let stdout = stdout.map(ChildStdout::from_std).transpose()?;
        Ok((group, (stdin, stdout)))
    }

    /// The process id of the leader.
    pub(crate) fn id(&self) -> u32 {
        self.id.as_raw_pid().unsigned_abs()
    }

    fn leader(&self) -> std::sync::MutexGuard<'_, Leader> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the leader ended, if it has.
    fn try_exit(&self) -> Option<Exit> {
        let mut leader = self.leader();
        if leader.exit.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match rustix::process::waitid(WaitId::Pid(self.id), options) {
                Ok(Some(status)) => leader.exit = Some(exit(&status)),
                Ok(None) | Err(Errno::INTR) => {}
                // Someone else in this program waits for any child and took this one: its end is
                // known, its status is not, and its id may be another's from now on.
                Err(_) => {
                    leader.child = None;
                    leader.exit = Some(Exit::unknown());
                }
            }
        }
        leader.exit.clone()
    }

    /// Waits for the leader to end. Any number of callers may.
    pub(crate) async fn exited(&self) -> Exit {
        // Listening before looking, so that no end falls between the two.
        let mut signals = signal(SignalKind::child()).ok();
        loop {
            if let Some(exit) = self.try_exit() {
                return exit;
            }
            match &mut signals {
                Some(signals) => drop(signals.recv().await),
                // The system refuses to tell of ends: this looks for them.
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    fn signal(&self, signal: Signal) {
        let leader = self.leader();
        if leader.child.is_some() {
            // It fails only when nothing is left that could be signalled.
            let _ = rustix::process::kill_process_group(self.id, signal);
        }
    }

    /// Asks the group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the group.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Waits, at most this long, until no process of the group runs. Returns whether that is so.
    pub(crate) async fn emptied(&self, patience: Duration) -> bool {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        let id = self.id;
        // No system tells when a group becomes empty, so this looks, ever more seldom.
        loop {
            let runs = tokio::task::spawn_blocking(move || group_runs(id))
                .await
                .unwrap_or(false);
            if !runs {
                return true;
            }
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Ends the group and waits until it is gone.
    pub(crate) async fn finish(&self) {
        self.kill();
        if tokio::time::timeout(KILL_PATIENCE, self.exited())
            .await
            .is_err()
        {
            return;
        }
        // Nothing is signalled from here on, so that the leader can go, which makes it cheap to see
        // that the group has gone, too.
        if let Some(mut child) = self.leader().child.take() {
            let _ = child.wait();
        }
        self.emptied(KILL_PATIENCE).await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        let leader = self
            .leader
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(mut child) = leader.child.take()
            && let Ok(None) = child.try_wait()
        {
            // It has yet to notice. There may be no runtime any more to wait in.
            let reaper = std::thread::Builder::new().name("reaper".to_owned());
            let _ = reaper.spawn(move || child.wait());
        }
    }
}

/// Whether any process of the group still runs. Zombies do not count: where nobody adopts orphans, as
/// in many containers, they stay for ever.
fn group_runs(id: Pid) -> bool {
    if rustix::process::test_kill_process_group(id).is_err() {
        return false;
    }
    #[cfg(target_os = "linux")]
    if let Ok(processes) = std::fs::read_dir("/proc") {
        let id = id.as_raw_pid().to_string();
        return processes.flatten().any(|process| {
            if !process
                .file_name()
                .as_encoded_bytes()
                .iter()
                .all(u8::is_ascii_digit)
            {
                return false;
            }
            let stat = std::fs::read(process.path().join("stat")).unwrap_or_default();
            let stat = String::from_utf8_lossy(&stat);
            // The name, in parentheses, may itself hold spaces and parentheses. After it come the
            // state, the parent and the group.
            let mut fields = stat
                .rsplit(')')
                .next()
                .unwrap_or_default()
                .split_ascii_whitespace();
            let state = fields.next();
            fields.nth(1) == Some(&*id) && !matches!(state, Some("Z" | "X"))
        });
    }
    true
}

fn exit(status: &WaitIdStatus) -> Exit {
    Exit {
        code: status.exit_status(),
        signal: status.terminating_signal().map(signal_name),
    }
}

/// How a process ended.
pub(crate) fn exit_of(status: ExitStatus) -> Exit {
    Exit {
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

/// The reading end of a pipe that a child writes to.
#[derive(Debug)]
pub(crate) struct OutputPipe(pipe::Receiver);

impl OutputPipe {
    pub(crate) fn new(reader: PipeReader) -> io::Result<Self> {
        pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).map(Self)
    }

    /// Waits for output; 0 is its end. Nothing is lost when the future is dropped.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).await
    }

    /// What is there already, without waiting for more.
    pub(crate) async fn read_now(&mut self, buffer: &mut [u8]) -> Option<usize> {
        // Asking the system itself: the runtime may not have heard yet of what has just arrived.
        loop {
            match rustix::io::read(&self.0, &mut *buffer) {
                Ok(read) => return Some(read),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

/// A command that has the system's shell carry out `line`.
pub(crate) fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg0("sh").arg("-c").arg(line);
    command
}

/// A command that runs the program in `file`, which sees itself called `name`.
pub(crate) fn program(file: &Path, name: &OsStr) -> Command {
    let mut command = Command::new(file);
    command.arg0(name);
    command
}

/// The files that may be meant by a program's name.
pub(crate) fn program_files(name: PathBuf) -> impl Iterator<Item = PathBuf> {
    std::iter::once(name)
}

/// Where programs are looked for when the environment has no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}
