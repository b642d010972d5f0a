//! Pipes that become larger when much is sent through them.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// How large such a pipe becomes, in bytes; at first it holds 64 KiB. A user may have 64 MiB in pipes in all
/// (`/proc/sys/fs/pipe-user-pages-soft`), so it is not as much as one may ask for.
const LARGE: usize = 256 * 1024;

/// From how many bytes in one piece on it does.
const MUCH: usize = 128 * 1024;

/// The writing end of what may be a pipe.
#[derive(Debug)]
pub(super) struct GrowingPipe<W> {
    inner: W,
    grow_attempted: bool,
}

impl<W> GrowingPipe<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            grow_attempted: false,
        }
    }
}

impl<W: AsFd> GrowingPipe<W> {
    /// With each time that a pipe is full or empty one process waits for the other to be woken.
    fn grow(&mut self) {
        self.grow_attempted = true;
        // Where it may not, or is no pipe, it stays as it is.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Err(error) = rustix::pipe::fcntl_setpipe_size(&self.inner, LARGE) {
            tracing::debug!(%error, "cannot enlarge the pipe");
        }
    }
}

impl<W: AsyncWrite + AsFd + Unpin> AsyncWrite for GrowingPipe<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if buf.len() >= MUCH && !self.grow_attempted {
            self.grow();
        }
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
