//! The transport that the library reads from and writes to.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use acp::Transport;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

use super::IncomingPipe;

/// The destination of the bytes that a transport writes.
pub(crate) trait Sink: Send + Sync + 'static {
    /// Writes bytes, once there is room.
    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Ends the stream, and waits until everything has been sent.
    fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends the stream, because the writer was dropped.
    fn close_writer(&self);
}

/// Which halves of a transport were dropped.
#[derive(Debug, Default)]
pub(crate) struct DroppedHalves {
    reader: AtomicBool,
    writer: AtomicBool,
    both: CancellationToken,
}

impl DroppedHalves {
    pub(super) fn reader(&self) {
        self.reader.store(true, Ordering::SeqCst);
        self.check();
    }

    pub(super) fn writer(&self) {
        self.writer.store(true, Ordering::SeqCst);
        self.check();
    }

    fn check(&self) {
        if self.reader.load(Ordering::SeqCst) && self.writer.load(Ordering::SeqCst) {
            self.both.cancel();
        }
    }

    /// Waits until the reader and the writer were dropped.
    pub(crate) async fn wait_both(&self) {
        self.both.cancelled().await;
    }

    /// Returns `true` if the reader and the writer were dropped.
    pub(crate) fn both(&self) -> bool {
        self.both.is_cancelled()
    }
}

/// Creates the transport over the two directions of a connection.
pub(crate) fn transport(incoming: Arc<IncomingPipe>, outgoing: Arc<impl Sink>) -> Transport {
    Transport::new(Reader(incoming), Writer(outgoing))
}

struct Reader(Arc<IncomingPipe>);

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(cx, buf)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.close_reader();
    }
}

struct Writer<S: Sink>(Arc<S>);

impl<S: Sink> AsyncWrite for Writer<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_shutdown(cx)
    }
}

impl<S: Sink> Drop for Writer<S> {
    fn drop(&mut self) {
        self.0.close_writer();
    }
}
