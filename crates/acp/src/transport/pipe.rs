//! Enlarges pipes for large writes. Linux only.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;

/// The capacity of an enlarged pipe, in bytes. The default is 64 KiB. Larger capacities are possible, but each user's
/// pipes share a limit of 64 MiB (`/proc/sys/fs/pipe-user-pages-soft`).
const ENLARGED_CAPACITY: usize = 256 * 1024;

/// The minimum size, in bytes, of a write that enlarges the pipe.
const ENLARGING_WRITE_BYTES: usize = 128 * 1024;

/// A writer that enlarges its pipe before the first large write. Writers that are not pipes also work.
#[derive(Debug)]
pub(super) struct GrowingPipe<W> {
    inner: W,
    has_tried_to_grow: bool,
}

impl<W> GrowingPipe<W> {
    pub(super) fn new(inner: W) -> Self {
        Self {
            inner,
            has_tried_to_grow: false,
        }
    }
}

impl<W: AsFd> GrowingPipe<W> {
    /// Enlarges the pipe. A larger pipe is full or empty less often, so the processes wait less for each other.
    fn grow(&mut self) {
        self.has_tried_to_grow = true;
        // If this is not allowed, or `inner` is not a pipe, the size stays the same.
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Err(error) = rustix::pipe::fcntl_setpipe_size(&self.inner, ENLARGED_CAPACITY) {
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
        if buf.len() >= ENLARGING_WRITE_BYTES && !self.has_tried_to_grow {
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
