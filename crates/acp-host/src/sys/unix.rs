//! Unix: processes, pipes, and the finer points of opening files.

mod before_exec;
#[cfg(target_os = "linux")]
mod confined;
mod group;
mod keeper;
mod mark;
mod processes;

use std::ffi::OsStr;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, PermissionsExt};
use rustix::io::Errno;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

#[cfg(target_os = "linux")]
pub(crate) use confined::Confined;
pub(crate) use group::{Group, Pipes, exit_of};

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

/// The endings that programs have.
pub(crate) fn program_endings() -> Vec<String> {
    Vec::new()
}

/// Where programs are looked for when the environment has no `PATH`.
pub(crate) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Opening must neither wait, as for the other end of a fifo, nor take a terminal as one's own.
pub(crate) fn never_wait(options: &mut OpenOptions) {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed());
}

/// The file can be read by its owner only, from the start.
pub(crate) fn private(options: &mut OpenOptions) {
    options.mode(0o600);
}

/// Gives `file` the owner and the mode that `old` has. The owner as far as this process may. Set-id
/// bits go, as they do whenever a file is written.
pub(crate) fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let owner = rustix::fs::Uid::from_raw(old.uid());
        let group = rustix::fs::Gid::from_raw(old.gid());
        if rustix::fs::fchown(file, Some(owner), Some(group)).is_err() {
            let _ = rustix::fs::fchown(file, None, Some(group));
        }
    }
    let mut permissions = old.permissions();
    permissions.set_mode(old.mode() & 0o777);
    file.set_permissions(permissions)
}

/// Makes changes of the directory's entries last through a crash of the system, where it can be done.
pub(crate) fn sync_dir(dir: &Dir) {
    if let Ok(dir) = dir.open(".") {
        let _ = dir.sync_all();
    }
}
