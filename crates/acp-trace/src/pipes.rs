//! Provides the blocking byte streams that a relay reads and writes.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, BorrowedFd};

use tokio::process::{ChildStdin, ChildStdout};

/// A byte stream that a relay reads.
#[derive(Debug)]
pub struct PipeInput(File);

/// A byte stream that a relay writes.
#[derive(Debug)]
pub struct PipeOutput(File);

impl PipeInput {
    /// Reads some bytes. Returns 0 at the end of the stream.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => system::wait(&self.0, false)?,
                // The other end of a terminal or socket may close with a reset. That closes the stream all the same.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
                read => return read,
            }
        }
    }

    /// Increases the capacity of the stream if it is a pipe and the system allows it.
    pub(super) fn enlarge(&self, bytes: usize) {
        system::enlarge(&self.0, bytes);
    }
}

impl PipeOutput {
    pub(super) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.0.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => system::wait(&self.0, true)?,
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    pub(super) fn enlarge(&self, bytes: usize) {
        system::enlarge(&self.0, bytes);
    }
}

#[cfg(target_os = "linux")]
impl AsFd for PipeInput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(target_os = "linux")]
impl AsFd for PipeOutput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<File> for PipeInput {
    fn from(file: File) -> Self {
        Self(file)
    }
}

impl From<File> for PipeOutput {
    fn from(file: File) -> Self {
        Self(file)
    }
}

/// Takes over this process's stdin and stdout. No other code in the process may use them, so that closing one of them
/// really closes it.
///
/// # Errors
/// The streams cannot be taken, for example because one of them is closed.
pub fn stdio() -> io::Result<(PipeInput, PipeOutput)> {
    let (input, output) = system::stdio()?;
    Ok((PipeInput(input), PipeOutput(output)))
}

/// Takes over the pipes that are connected to an agent.
///
/// # Errors
/// The pipes cannot be made blocking.
pub fn child(stdin: ChildStdin, stdout: ChildStdout) -> io::Result<(PipeOutput, PipeInput)> {
    let (stdin, stdout) = system::child(stdin, stdout)?;
    Ok((PipeOutput(stdin), PipeInput(stdout)))
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;

    use rustix::event::{PollFd, PollFlags, poll};
    use tokio::process::{ChildStdin, ChildStdout};

    pub(super) fn stdio() -> io::Result<(File, File)> {
        // Take private copies, which child processes do not inherit.
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
        Ok((input.into(), output.into()))
    }

    pub(super) fn child(stdin: ChildStdin, stdout: ChildStdout) -> io::Result<(File, File)> {
        Ok((
            stdin.into_owned_fd()?.into(),
            stdout.into_owned_fd()?.into(),
        ))
    }

    /// Waits until the file is readable or writable. The file may be in non-blocking mode. Other processes share that
    /// mode, so it is not changed here.
    pub(super) fn wait(file: &File, write: bool) -> io::Result<()> {
        let flags = if write { PollFlags::OUT } else { PollFlags::IN };
        match poll(&mut [PollFd::new(file, flags)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn enlarge(file: &File, bytes: usize) {
        // If that is not allowed, if this is not a pipe, or if the pipe is already larger, its size does not change.
        if rustix::pipe::fcntl_getpipe_size(file).is_ok_and(|size| size < bytes) {
            let _ = rustix::pipe::fcntl_setpipe_size(file, bytes);
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn enlarge(_: &File, _: usize) {}
}

#[cfg(windows)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::windows::io::AsHandle;

    use tokio::process::{ChildStdin, ChildStdout};

    pub(super) fn stdio() -> io::Result<(File, File)> {
        let input = io::stdin().as_handle().try_clone_to_owned()?;
        let output = io::stdout().as_handle().try_clone_to_owned()?;
        Ok((input.into(), output.into()))
    }

    pub(super) fn child(stdin: ChildStdin, stdout: ChildStdout) -> io::Result<(File, File)> {
        Ok((
            stdin.into_owned_handle()?.into(),
            stdout.into_owned_handle()?.into(),
        ))
    }

    #[allow(clippy::unnecessary_wraps, reason = "this function can fail on Unix")]
    pub(super) fn wait(_: &File, _: bool) -> io::Result<()> {
        std::thread::yield_now();
        Ok(())
    }

    pub(super) fn enlarge(_: &File, _: usize) {}
}
