//! Pipes that grow when large writes go through them.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// The enlarged size of a pipe, in bytes; the default is 64 KiB. It is less than the maximum, because all pipes of a
/// user may take only 64 MiB together (`/proc/sys/fs/pipe-user-pages-soft`).
const LARGE: usize = 256 * 1024;

/// The smallest write that makes a pipe grow, in bytes.
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
    /// Enlarges the pipe: each time it is full or empty, one process waits until the other wakes.
    fn grow(&mut self) {
        self.grow_attempted = true;
        // If this is not allowed, or not a pipe, the size stays as it is.
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
