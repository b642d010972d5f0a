//! The keeper: a process beside this one that ends what this one has started, should this one end
//! without doing so.
//!
//! A program that is killed kills nobody. So before it starts anything, it starts a small shell script
//! (`keeper.sh`) that reads from a pipe whose writing end nobody else has. Each group is told to it, by
//! the leader itself between fork and exec, and taken back when it is gone. When the pipe ends, the
//! keeper ends the groups that are left.
//!
//! Between fork and exec every child of this process has the writing end, too. That is as it should be:
//! the pipe ends when the last of them has told of itself.
//!
//! Nothing here waits for the keeper: one that does not read is replaced.

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

const SHELL: &str = "/bin/sh";

const SCRIPT: &str = include_str!("keeper.sh");

/// Where the script looks for programs first.
const PATH: &str = "/usr/bin:/bin";

/// The keeper of this process.
static KEEPER: Mutex<Keeper> = Mutex::new(Keeper {
    running: None,
    groups: BTreeMap::new(),
    has_warned: false,
});

struct Keeper {
    running: Option<KeeperProcess>,
    /// The groups that there are, by their marks.
    groups: BTreeMap<String, Pid>,
    has_warned: bool,
}

struct KeeperProcess {
    shell: Child,
    /// Nothing waits that is written to it.
    ///
    /// A program that has undone what Rust's programs begin with, to ignore SIGPIPE, is ended by
    /// writing to a keeper that is gone, as by writing to any other child.
    pipe: Arc<PipeWriter>,
}

/// What a child tells the keeper of itself.
pub(super) struct KeeperMessage {
    pipe: Arc<PipeWriter>,
    /// All of the line but the process's id, which in time the child alone knows.
    prefix: String,
}

impl KeeperMessage {
    /// Where it is told.
    pub(super) fn pipe(&self) -> Arc<PipeWriter> {
        Arc::clone(&self.pipe)
    }

    /// Tells it, without allocating anything and without waiting. That the keeper does not hear of it
    /// is no reason not to run.
    pub(super) fn tell(&self, id: Pid) {
        // The mark has 32 digits, and an id has 10 at most.
        let mut line = [0; 64];
        let mut rest = &mut line[..];
        if writeln!(rest, "{}{}", self.prefix, id.as_raw_pid()).is_ok() {
            let length = 64 - rest.len();
            // Lines as short as this arrive whole or not at all.
            let _ = rustix::io::write(&*self.pipe, line.get(..length).unwrap_or_default());
        }
    }
}

/// Sees to it that there is a keeper, and gives what the leader of a new group is to tell it. `None` if
/// there can be none on this system.
pub(super) fn keeper_message(mark: &GroupMark) -> Option<KeeperMessage> {
    let mut keeper = lock_keeper();
    keeper.ensure_running();
    keeper.running.as_ref().map(|running| KeeperMessage {
        pipe: Arc::clone(&running.pipe),
        prefix: format!("add {} ", mark.own()),
    })
}

/// The group runs, and was told of to the keeper at the end of `pipe`.
pub(super) fn confirm_group(pipe: &Arc<PipeWriter>, mark: &GroupMark, id: Pid) {
    let mut keeper = lock_keeper();
    keeper.groups.insert(mark.own().to_owned(), id);
    // Another keeper may have taken its place meanwhile.
    if let Some(running) = &keeper.running
        && !Arc::ptr_eq(&running.pipe, pipe)
    {
        keeper.tell(&format!("add {} {}\n", mark.own(), id.as_raw_pid()));
    }
}

/// The group is gone. To be called while its id cannot be another's yet.
pub(super) fn forget(mark: &GroupMark) {
    let mut keeper = lock_keeper();
    keeper.groups.remove(mark.own());
    keeper.tell(&format!("del {}\n", mark.own()));
}

fn lock_keeper() -> MutexGuard<'static, Keeper> {
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// Starts a keeper if there is none that reads.
    fn ensure_running(&mut self) {
        if !self.running.as_mut().is_some_and(KeeperProcess::can_write) {
            self.replace();
        }
    }

    /// Starts a keeper that knows all the groups, and then ends the one there was.
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
            tracing::warn!(%error, "cannot start {SHELL}: if this program is killed, the processes it started keep running");
        }
        if let Some(mut old) = std::mem::replace(&mut self.running, started.ok()) {
            // Before its pipe ends, at which it would end the groups, which are none of its business now.
            let _ = old.shell.kill();
            let _ = old.shell.wait();
        }
    }

    /// Tells the keeper, if there is one.
    fn tell(&mut self, line: &str) {
        if let Some(running) = &self.running
            && (&*running.pipe).write_all(line.as_bytes()).is_err()
        {
            // It is gone, or it hangs: then it must not come to again with what it knew. What was to be
            // told, the next one knows.
            self.replace();
        }
    }
}

impl KeeperProcess {
    fn start(groups: &str) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        // The system's programs first: those of the user's may be anything.
        let mut path = OsString::from(PATH);
        if let Some(own) = std::env::var_os("PATH") {
            path.push(":");
            path.push(own);
        }
        let mut shell = Command::new(SHELL);
        shell
            .arg0("sh")
            .args(["-c", SCRIPT, "acp-keeper", groups])
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

    /// Whether it runs and there is room in its pipe.
    fn can_write(&mut self) -> bool {
        // Asked first, so that one that has ended is cleared away.
        let ended = matches!(self.shell.try_wait(), Ok(Some(_)));
        let mut room = [PollFd::new(&*self.pipe, PollFlags::OUT)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let asked = poll(&mut room, Some(&now));
        !ended && asked.is_ok() && room.iter().all(|pipe| pipe.revents() == PollFlags::OUT)
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, kill_process, test_kill_process};

    use super::*;

    fn id(keeper: &Keeper) -> Pid {
        let running = keeper.running.as_ref().unwrap();
        Pid::from_raw(running.shell.id().cast_signed()).unwrap()
    }

    #[test]
    fn one_that_hangs_or_has_ended_is_replaced_and_keeps_nobody_waiting() {
        let mut keeper = Keeper {
            running: None,
            groups: BTreeMap::new(),
            has_warned: false,
        };
        keeper.ensure_running();
        let hangs = id(&keeper);
        kill_process(hangs, Signal::STOP).unwrap();
        // As many as no pipe holds; no process has this id.
        for _ in 0..40_000 {
            keeper.tell("add 0123456789abcdef0123456789abcdef 999999999\n");
            if id(&keeper) != hangs {
                break;
            }
        }
        let ended = id(&keeper);
        assert_ne!(ended, hangs);
        assert!(test_kill_process(hangs).is_err());

        // The pipe of one that has ended is broken.
        kill_process(ended, Signal::KILL).unwrap();
        let running = keeper.running.as_mut().unwrap();
        running.shell.wait().unwrap();
        assert!(!running.can_write());
        keeper.ensure_running();
        assert_ne!(id(&keeper), ended);
        assert!(keeper.running.as_mut().unwrap().can_write());
    }
}
