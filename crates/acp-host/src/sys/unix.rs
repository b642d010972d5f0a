//! Processes and pipes on Unix.

mod before_exec;
#[cfg(target_os = "linux")]
mod confined;
mod group;
mod keeper;
mod mark;
mod own_process;
mod processes;

use std::ffi::OsStr;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

#[cfg(target_os = "linux")]
pub(crate) use confined::ConfinementThread;
pub(crate) use group::{ChildPipes, ProcessGroup, to_process_exit};
pub(crate) use own_process::{close_inherited_in_children, hide_this_process, take_variables};

/// The read end of a pipe that a child process writes its output to.
#[derive(Debug)]
pub(crate) struct OutputPipe(pipe::Receiver);

impl OutputPipe {
    pub(crate) fn new(reader: PipeReader) -> io::Result<Self> {
        pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).map(Self)
    }

    /// Waits for output. Returns 0 at the end of the output. No output is lost if the future is dropped.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).await
    }

    /// Reads output that is already in the pipe. Does not wait.
    pub(crate) async fn read_available(&mut self, buffer: &mut [u8]) -> Option<usize> {
        // Asks the system directly, because the runtime may not have noticed what has just arrived.
        loop {
            match rustix::io::read(&self.0, &mut *buffer) {
                Ok(read) => return Some(read),
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Returns a command that runs `line` in the system's shell.
pub(crate) fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.arg0("sh").arg("-c").arg(line);
    command
}

/// Returns a command that runs the program in `file`, with `name` as its `argv[0]`.
pub(crate) fn program(file: &Path, name: &OsStr) -> Command {
    let mut command = Command::new(file);
    command.arg0(name);
    command
}

/// Returns an empty list, because programs have no file extensions on Unix.
pub(crate) fn program_extensions() -> Vec<String> {
    Vec::new()
}

/// The directories in which to look for programs if the environment has no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}
