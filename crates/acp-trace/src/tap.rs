//! Implements taps, which are pipes into which the kernel copies the bytes that pass between two other pipes.
//!
//! Only Linux supports taps, and only for pipes, which connect nearly all programs. Everywhere else, the bytes are read
//! and written.

use std::fs::File;
use std::io;

use super::pipes::{PipeInput, PipeOutput};

/// The end of a pipe into which the kernel copies bytes.
#[derive(Debug)]
pub(super) struct PipeTap(#[cfg_attr(not(target_os = "linux"), allow(dead_code))] File);

#[cfg(target_os = "linux")]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::{Errno, retry_on_intr};
    use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size};
    use rustix::pipe::{pipe_with, splice, tee};

    use crate::pipes::{PipeInput, PipeOutput};
    use crate::tap::PipeTap;

    pub(super) fn open(
        input: &PipeInput,
        output: &PipeOutput,
        room: usize,
    ) -> Option<(PipeTap, File)> {
        for end in [input.as_fd(), output.as_fd()] {
            fcntl_getpipe_size(end).ok()?;
        }
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        // A small pipe would soon be full. A user who has many pipes cannot get larger ones.
        fcntl_setpipe_size(&writer, room).ok()?;
        Some((PipeTap(writer.into()), reader.into()))
    }

    fn wait(end: impl AsFd, flags: PollFlags) -> io::Result<()> {
        retry_on_intr(|| poll(&mut [PollFd::new(&end, flags)], None))?;
        Ok(())
    }

    pub(super) fn copy(tap: &File, input: &PipeInput, most: usize) -> io::Result<usize> {
        loop {
            match tee(input.as_fd(), tap, most, SpliceFlags::empty()) {
                Err(Errno::INTR) => {}
                // The parent process may have put it into non-blocking mode.
                Err(Errno::AGAIN) => {
                    wait(input.as_fd(), PollFlags::IN)?;
                    wait(tap, PollFlags::OUT)?;
                }
                copied => return Ok(copied?),
            }
        }
    }

    pub(super) fn pass(
        input: &PipeInput,
        output: &PipeOutput,
        mut length: usize,
    ) -> io::Result<()> {
        while length > 0 {
            let (from, to) = (input.as_fd(), output.as_fd());
            match splice(from, None, to, None, length, SpliceFlags::empty()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(passed) => length = length.saturating_sub(passed),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(to, PollFlags::OUT)?,
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io;

    use crate::pipes::{PipeInput, PipeOutput};
    use crate::tap::PipeTap;

    pub(super) fn open(_: &PipeInput, _: &PipeOutput, _: usize) -> Option<(PipeTap, File)> {
        None
    }

    pub(super) fn copy(_: &File, _: &PipeInput, _: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn pass(_: &PipeInput, _: &PipeOutput, _: usize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl PipeTap {
    /// Opens a tap with this capacity, in bytes. Returns the tap and the end to read from, or `None` if the system does
    /// not support taps.
    pub(super) fn open(
        input: &PipeInput,
        output: &PipeOutput,
        room: usize,
    ) -> Option<(Self, File)> {
        system::open(input, output, room)
    }

    /// Waits for bytes and for free capacity, then copies at most `most` bytes into the tap without consuming them.
    /// Returns the number of bytes copied, or 0 at the end of the stream.
    pub(super) fn copy(&self, input: &PipeInput, most: usize) -> io::Result<usize> {
        system::copy(&self.0, input, most)
    }

    /// Passes the copied bytes on to the output.
    pub(super) fn pass(
        &self,
        input: &PipeInput,
        output: &PipeOutput,
        length: usize,
    ) -> io::Result<()> {
        system::pass(input, output, length)
    }
}
