//! The keeper, a helper process. If this program exits without ending the processes it has started, the keeper ends
//! them.
//!
//! A program that is killed cannot kill its children. So before it starts anything, it starts a small shell script
//! (`keeper.sh`), which reads from a pipe to which only this program can write. Each group's leader registers its group
//! between fork and exec. The group is removed when it has ended. When the pipe is closed, the keeper kills the
//! remaining groups.
//!
//! Between fork and exec, every child of this process also holds the writing end of the pipe. That is intended: the
//! pipe is closed only after the last of them has registered.
//!
//! Nothing here waits for the keeper. A keeper that does not read is replaced.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeWriter, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::before_exec::before_exec;
use super::mark::GroupMark;

const SHELL_PATH: &str = "/bin/sh";

const KEEPER_SCRIPT: &str = include_str!("keeper.sh");

/// The directories in which the script first looks for programs.
const SEARCH_PATH: &str = "/usr/bin:/bin";

/// This process's keeper.
static KEEPER: Mutex<Keeper> = Mutex::new(Keeper {
    running: None,
    groups: BTreeMap::new(),
    has_warned: false,
});

struct Keeper {
    running: Option<KeeperProcess>,
    /// The running process groups, keyed by mark.
    groups: BTreeMap<String, Pid>,
    has_warned: bool,
}

struct KeeperProcess {
    shell: Child,
    /// The pipe to the keeper's standard input, in non-blocking mode.
    ///
    /// If a program has reset SIGPIPE, which Rust programs ignore by default, it is terminated when it writes to a
    /// keeper that has exited, as with any other pipe.
    pipe: Arc<PipeWriter>,
}

/// A message with which a child process registers itself with the keeper.
pub(super) struct KeeperMessage {
    pipe: Arc<PipeWriter>,
    /// The start of the line, up to the process id. The child adds the id, because the parent would learn it too late.
    prefix: String,
}

impl KeeperMessage {
    /// Returns the pipe to the keeper's standard input.
    pub(super) fn pipe(&self) -> Arc<PipeWriter> {
        Arc::clone(&self.pipe)
    }

    /// Sends the message without allocating or blocking. If sending fails, the child runs anyway.
    pub(super) fn send(&self, id: Pid) {
        // The mark has 32 digits, and an id has at most 10.
        let mut line = [0; 64];
        let mut rest = &mut line[..];
        if writeln!(rest, "{}{}", self.prefix, id.as_raw_pid()).is_ok() {
            let length = 64 - rest.len();
            // Lines this short arrive as a whole or not at all.
            let _ = rustix::io::write(&*self.pipe, line.get(..length).unwrap_or_default());
        }
    }
}

/// Makes sure that a keeper is running. Returns the message that the leader of a new group must send to it, or `None`
/// if this system cannot run a keeper.
pub(super) fn keeper_message(mark: &GroupMark) -> Option<KeeperMessage> {
    let mut keeper = lock_keeper();
    keeper.ensure_running();
    keeper.running.as_ref().map(|running| KeeperMessage {
        pipe: Arc::clone(&running.pipe),
        prefix: format!("add {} ", mark.id()),
    })
}

/// Records that the group is running and has been registered with the keeper that reads from `pipe`.
pub(super) fn confirm_group(pipe: &Arc<PipeWriter>, mark: &GroupMark, id: Pid) {
    let mut keeper = lock_keeper();
    keeper.groups.insert(mark.id().to_owned(), id);
    // Another keeper may have replaced it meanwhile.
    if let Some(running) = &keeper.running
        && !Arc::ptr_eq(&running.pipe, pipe)
    {
        keeper.send(&format!("add {} {}\n", mark.id(), id.as_raw_pid()));
    }
}

/// Removes a group that has ended. Must be called before its id can be reused.
pub(super) fn forget_group(mark: &GroupMark) {
    let mut keeper = lock_keeper();
    keeper.groups.remove(mark.id());
    keeper.send(&format!("del {}\n", mark.id()));
}

fn lock_keeper() -> MutexGuard<'static, Keeper> {
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// Starts a keeper unless there is one that is running and reading its input.
    fn ensure_running(&mut self) {
        if !self.running.as_mut().is_some_and(KeeperProcess::can_write) {
            self.replace();
        }
    }

    /// Starts a new keeper that knows all groups, and then ends the old one.
    fn replace(&mut self) {
        let groups = self
            .groups
            .iter()
            .map(|(mark, id)| format!("{mark}={}", id.as_raw_pid()));
        let started = KeeperProcess::start(&groups.collect::<Vec<_>>().join(" "));
        if let Err(error) = &started
            && !self.has_warned
        {
            self.has_warned = true;
            tracing::warn!(%error, "cannot start {SHELL_PATH}; if this program is killed, the processes it started will keep running");
        }
        if let Some(mut old) = std::mem::replace(&mut self.running, started.ok()) {
            // Before its pipe ends, when it would kill the groups, which now belong to the new keeper.
            let _ = old.shell.kill();
            let _ = old.shell.wait();
        }
    }

    /// Sends a line to the keeper, if there is one.
    fn send(&mut self, line: &str) {
        if let Some(running) = &self.running
            && (&*running.pipe).write_all(line.as_bytes()).is_err()
        {
            // The keeper has exited or hangs. If it hangs, it must not resume with outdated groups. Its replacement
            // gets everything that was to be sent.
            self.replace();
        }
    }
}

impl KeeperProcess {
    fn start(groups: &str) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        // The system's programs come first, because the user's could be anything.
        let mut path = OsString::from(SEARCH_PATH);
        if let Some(own) = std::env::var_os("PATH") {
            path.push(":");
            path.push(own);
        }
        let mut shell = Command::new(SHELL_PATH);
        shell
            .arg0("sh")
            .args(["-c", KEEPER_SCRIPT, "acp-keeper", groups])
            .current_dir("/")
            .env_clear()
            .envs([("PATH", path), ("LC_ALL", "C".into())])
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        before_exec(&mut shell, None);
        Ok(Self {
            shell: shell.spawn()?,
            pipe: Arc::new(writer),
        })
    }

    /// Returns `true` if the keeper is running and its pipe has capacity.
    fn can_write(&mut self) -> bool {
        // Checked first, so that a keeper that has exited is reaped.
        let ended = matches!(self.shell.try_wait(), Ok(Some(_)));
        let mut room = [PollFd::new(&*self.pipe, PollFlags::OUT)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let ready = poll(&mut room, Some(&now));
        !ended && ready.is_ok() && room.iter().all(|pipe| pipe.revents() == PollFlags::OUT)
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, kill_process, test_kill_process};

    use super::*;

    fn keeper_pid(keeper: &Keeper) -> Pid {
        let running = keeper.running.as_ref().unwrap();
        Pid::from_raw(running.shell.id().cast_signed()).unwrap()
    }

    #[test]
    fn hanging_or_exited_keeper_is_replaced_without_delay() {
        let mut keeper = Keeper {
            running: None,
            groups: BTreeMap::new(),
            has_warned: false,
        };
        keeper.ensure_running();
        let hangs = keeper_pid(&keeper);
        kill_process(hangs, Signal::STOP).unwrap();
        // This is more than any pipe holds. No process has this id.
        for _ in 0..40_000 {
            keeper.send("add 0123456789abcdef0123456789abcdef 999999999\n");
            if keeper_pid(&keeper) != hangs {
                break;
            }
        }
        let ended = keeper_pid(&keeper);
        assert_ne!(ended, hangs);
        assert!(test_kill_process(hangs).is_err());

        // The pipe of a keeper that has exited is broken.
        kill_process(ended, Signal::KILL).unwrap();
        let running = keeper.running.as_mut().unwrap();
        running.shell.wait().unwrap();
        assert!(!running.can_write());
        keeper.ensure_running();
        assert_ne!(keeper_pid(&keeper), ended);
        assert!(keeper.running.as_mut().unwrap().can_write());
    }
}
