//! Windows: job objects, pipes, and how programs are found.

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

/// How long to wait for processes that were ended.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// A process with all that it starts, in a job object.
///
/// The job ends its processes when nobody holds it any more, so also when this process is killed.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    id: u32,
    kill: mpsc::Sender<()>,
    exit: watch::Receiver<Option<ProcessExit>>,
}

/// What a child was given pipes for.
pub(crate) type ChildPipes = (Option<ChildStdin>, Option<ChildStdout>);

impl ProcessGroup {
    /// Starts `command` in a new job. There is no sandbox on this system.
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
        // One task has the child, because killing needs it as much as waiting does. With the task,
        // the job ends, and with the job, all of its processes.
        tokio::spawn(async move {
            loop {
                let ended = tokio::select! {
                    // The inner child: the job's own wait is for all of its processes.
                    status = child.inner_mut().wait() => Some(status),
                    asked = kills.recv() => match asked {
                        Some(()) => None,
                        None => return,
                    },
                };
                match ended {
                    Some(status) => {
                        exits.send_replace(Some(
                            status.map_or_else(|_| ProcessExit::unknown(), exit_of),
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

    /// The process id of the leader.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Waits for the leader to end. Any number of callers may.
    pub(crate) async fn wait(&self) -> ProcessExit {
        let mut exit = self.exit.clone();
        let exit = exit.wait_for(Option::is_some).await;
        exit.ok()
            .and_then(|exit| exit.clone())
            .unwrap_or_else(ProcessExit::unknown)
    }

    /// There is no polite way that reaches programs without a window.
    pub(crate) async fn terminate(&self) {
        self.kill();
    }

    /// Ends the job.
    pub(crate) fn kill(&self) {
        // A full queue holds the same wish already.
        let _ = self.kill.try_send(());
    }

    /// Waits, at most this long, until the leader has ended. Returns whether it has. The rest of a
    /// job that was ended ends with it.
    pub(crate) async fn wait_empty(&self, patience: Duration) -> bool {
        tokio::time::timeout(patience, self.wait()).await.is_ok()
    }

    /// Ends the job, which nobody can leave, and waits for that, at most this long. Returns whether it
    /// has ended.
    pub(crate) async fn kill_and_wait(&self, patience: Duration) -> bool {
        self.kill();
        self.wait_empty(patience).await
    }

    /// Ends the job and waits until it is gone.
    pub(crate) async fn finish(&self) {
        self.kill();
        self.wait_empty(KILL_PATIENCE).await;
    }
}

/// How a process ended.
pub(crate) fn exit_of(status: ExitStatus) -> ProcessExit {
    ProcessExit {
        code: status.code(),
        signal: None,
    }
}

/// The reading end of a pipe that a child writes to.
#[derive(Debug)]
pub(crate) struct OutputPipe(tokio::fs::File);

impl OutputPipe {
    pub(crate) fn new(reader: PipeReader) -> io::Result<Self> {
        let file = std::fs::File::from(OwnedHandle::from(reader));
        Ok(Self(tokio::fs::File::from_std(file)))
    }

    /// Waits for output; 0 is its end. Nothing is lost when the future is dropped.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).await
    }

    /// What is there already. Such pipes cannot be asked, so that a moment of silence must do.
    pub(crate) async fn read_now(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let read = tokio::time::timeout(Duration::from_millis(50), self.0.read(buffer)).await;
        read.ok()?.ok()
    }
}

/// A command that has the system's shell carry out `line`.
pub(crate) fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd");
    // cmd does its own unquoting: with /S it takes off exactly the outer quotes.
    command.raw_arg("/D /S /C").raw_arg(format!("\"{line}\""));
    command
}

/// A command that runs the program in `file`.
pub(crate) fn program(file: &Path, _name: &OsStr) -> Command {
    Command::new(file)
}

/// The endings that programs have.
pub(crate) fn program_endings() -> Vec<String> {
    let endings = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    endings
        .split(';')
        .filter(|ending| !ending.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Where programs are looked for when the environment has no `PATH`.
pub(crate) const DEFAULT_PATH: &str = r"C:\Windows\System32;C:\Windows";

/// Being a file is all there is to it.
pub(crate) fn is_executable(_file: &Path) -> bool {
    true
}

/// Opening files does not wait here.
pub(crate) fn set_nonblocking(_options: &mut OpenOptions) {}

/// New files have the rights that their directory gives.
pub(crate) fn set_private(_options: &mut OpenOptions) {}

/// There are no files without a name here.
pub(crate) fn create_unnamed(_dir: &Dir, _private: bool) -> Option<File> {
    None
}

pub(crate) fn give_name(_dir: &Dir, _file: &File, _name: &OsStr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Rights come from the directory, and a read-only file is not replaced in the first place.
pub(crate) fn keep_attributes(_file: &File, _old: &File, _metadata: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Directories cannot be written through to disk here.
pub(crate) fn sync_dir(_dir: &Dir) {}

/// A process is opened by those of the same user, which nothing here changes.
pub(crate) fn hide_this_process() {}

/// Handles are passed on only where that is asked for.
pub(crate) fn close_inherited_in_children() {}

/// The environment of a process is not read by a file.
pub(crate) fn take_variables(
    _wanted: impl Fn(&OsStr) -> bool,
) -> std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString> {
    std::collections::BTreeMap::new()
}
