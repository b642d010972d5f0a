//! Job objects, pipes, and program lookup on Windows.

use std::ffi::OsStr;
use std::io::{self, PipeReader};
use std::os::windows::io::OwnedHandle;
use std::os::windows::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use cap_std::fs::{Dir, File, Metadata, OpenOptions};
use process_wrap::tokio::{CommandWrap, JobObject, KillOnDrop};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, watch};

use crate::process::ProcessExit;
use crate::sandbox::Sandbox;

/// How long to wait for killed processes to exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// A process and everything it starts, held together by a job object.
///
/// The job kills its processes when its last handle is closed, which also happens when this process is killed.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    id: u32,
    kill: mpsc::Sender<()>,
    exit: watch::Receiver<Option<ProcessExit>>,
}

/// The standard input and output of a child process.
pub(crate) type ChildPipes = (Option<ChildStdin>, Option<ChildStdout>);

impl ProcessGroup {
    /// Starts `command` in a new job. This system has no sandboxes.
    pub(crate) fn spawn(
        command: Command,
        _sandbox: Option<&Sandbox>,
    ) -> io::Result<(Self, ChildPipes)> {
        let mut command = CommandWrap::from(tokio::process::Command::from(command));
        let mut child = command.wrap(KillOnDrop).wrap(JobObject).spawn()?;
        let pipes = (child.stdin().take(), child.stdout().take());
        let id = child.id().unwrap_or_default();
        let (kill, mut kills) = mpsc::channel(1);
        let (exits, exit) = watch::channel(None);
        // One task owns the child, because both killing and waiting need it. When the task ends, the job ends with all
        // of its processes.
        tokio::spawn(async move {
            loop {
                let ended = tokio::select! {
                    // This waits for the inner child, because the job's own wait covers all of its processes.
                    status = child.inner_mut().wait() => Some(status),
                    asked = kills.recv() => match asked {
                        Some(()) => None,
                        None => return,
                    },
                };
                match ended {
                    Some(status) => {
                        exits.send_replace(Some(
                            status.map_or_else(|_| ProcessExit::unknown(), to_process_exit),
                        ));
                        break;
                    }
                    None => drop(child.start_kill()),
                }
            }
            while kills.recv().await.is_some() {
                drop(child.start_kill());
            }
        });
        Ok((Self { id, kill, exit }, pipes))
    }

    /// Returns the process id of the leader.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Waits for the leader to exit. Any number of callers may wait.
    pub(crate) async fn wait(&self) -> ProcessExit {
        let mut exit = self.exit.clone();
        let exit = exit.wait_for(Option::is_some).await;
        exit.ok()
            .and_then(|exit| exit.clone())
            .unwrap_or_else(ProcessExit::unknown)
    }

    /// Kills the job, because there is no way to ask programs without a window to exit.
    pub(crate) async fn terminate(&self) {
        self.kill();
    }

    /// Kills the job immediately, without waiting.
    pub(crate) fn kill(&self) {
        // If the queue is full, it already contains a kill.
        let _ = self.kill.try_send(());
    }

    /// Waits until the leader has exited or `patience` has elapsed. Returns `true` if it has exited. When a job is
    /// killed, its other processes end together with the leader.
    pub(crate) async fn wait_all(&self, patience: Duration) -> bool {
        tokio::time::timeout(patience, self.wait()).await.is_ok()
    }

    /// Kills the job, which no process can leave, and waits until it has ended or `patience` has elapsed. Returns
    /// `true` if it has ended.
    pub(crate) async fn kill_and_wait(&self, patience: Duration) -> bool {
        self.kill();
        self.wait_all(patience).await
    }

    /// Kills the job and waits until it has ended.
    pub(crate) async fn finish(&self) {
        self.kill();
        self.wait_all(KILL_TIMEOUT).await;
    }
}

/// Converts a process's exit status from the standard library's type.
pub(crate) fn to_process_exit(status: ExitStatus) -> ProcessExit {
    ProcessExit {
        code: status.code(),
        signal: None,
    }
}

/// The read end of a pipe that a child process writes its output to.
#[derive(Debug)]
pub(crate) struct OutputPipe(tokio::fs::File);

impl OutputPipe {
    pub(crate) fn new(reader: PipeReader) -> io::Result<Self> {
        let file = std::fs::File::from(OwnedHandle::from(reader));
        Ok(Self(tokio::fs::File::from_std(file)))
    }

    /// Waits for output. Returns 0 at the end of the output. No output is lost if the future is dropped.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).await
    }

    /// Reads output that is already in the pipe. Waits briefly, since such pipes cannot be queried.
    pub(crate) async fn read_available(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let read = tokio::time::timeout(Duration::from_millis(50), self.0.read(buffer)).await;
        read.ok()?.ok()
    }
}

/// Returns a command that runs `line` in the system's shell.
pub(crate) fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd");
    // `cmd` does its own unquoting. With `/S`, it removes exactly the outer quotes.
    command.raw_arg("/D /S /C").raw_arg(format!("\"{line}\""));
    command
}

/// Returns a command that runs the program in `file`.
pub(crate) fn program(file: &Path, _name: &OsStr) -> Command {
    Command::new(file)
}

/// Returns the file extensions that programs have on Windows.
pub(crate) fn program_extensions() -> Vec<String> {
    let endings = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    endings
        .split(';')
        .filter(|ending| !ending.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The directories in which to look for programs if the environment has no `PATH`.
pub(crate) const DEFAULT_PATH: &str = r"C:\Windows\System32;C:\Windows";

/// Returns `true`, because every file counts as executable.
pub(crate) fn is_executable(_file: &Path) -> bool {
    true
}

/// Does nothing, because opening files does not block on Windows.
pub(crate) fn set_nonblocking(_options: &mut OpenOptions) {}

/// Does nothing, because new files inherit their directory's permissions.
pub(crate) fn set_private(_options: &mut OpenOptions) {}

/// Returns `None`, because files cannot be unnamed on Windows.
pub(crate) fn create_unnamed(_dir: &Dir, _private: bool) -> Option<File> {
    None
}

pub(crate) fn link_unnamed(_dir: &Dir, _file: &File, _name: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing, because permissions come from the directory, and read-only files are never replaced.
pub(crate) fn copy_attributes(_file: &File, _old: &File, _metadata: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Does nothing, because this system cannot sync directories to disk.
pub(crate) fn sync_dir(_dir: &Dir) {}

/// Does nothing. Only the same user's programs can open a process, and that cannot be changed on this system.
pub(crate) fn hide_this_process() {}

/// Does nothing, because handles are inherited only if requested.
pub(crate) fn close_inherited_in_children() {}

/// Returns an empty map, because on this system a process's environment cannot be read from a file.
pub(crate) fn take_variables(
    _wanted: impl Fn(&OsStr) -> bool,
) -> std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString> {
    std::collections::BTreeMap::new()
}
