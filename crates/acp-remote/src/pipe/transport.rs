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
pub(crate) trait MessageSink: Send + Sync + 'static {
    /// Writes bytes once there is space for them.
    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Ends the stream and waits until everything has been sent.
    fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends the stream. Called when the writer is dropped.
    fn close_writer(&self);
}

/// Tracks which halves of a transport have been dropped.
#[derive(Debug, Default)]
pub(crate) struct DroppedHalves {
    reader: AtomicBool,
    writer: AtomicBool,
    both: CancellationToken,
}

impl DroppedHalves {
    pub(super) fn drop_reader(&self) {
        self.reader.store(true, Ordering::SeqCst);
        self.notify_if_both_dropped();
    }

    pub(super) fn drop_writer(&self) {
        self.writer.store(true, Ordering::SeqCst);
        self.notify_if_both_dropped();
    }

    fn notify_if_both_dropped(&self) {
        if self.reader.load(Ordering::SeqCst) && self.writer.load(Ordering::SeqCst) {
            self.both.cancel();
        }
    }

    /// Waits until both the reader and the writer have been dropped.
    pub(crate) async fn wait_for_both_drops(&self) {
        self.both.cancelled().await;
    }

    /// Returns `true` if both the reader and the writer have been dropped.
    pub(crate) fn are_both_dropped(&self) -> bool {
        self.both.is_cancelled()
    }
}

/// Creates the transport for the two directions of a connection.
pub(crate) fn pipe_transport(
    incoming: Arc<IncomingPipe>,
    outgoing: Arc<impl MessageSink>,
) -> Transport {
    Transport::new(PipeReader(incoming), PipeWriter(outgoing))
}

struct PipeReader(Arc<IncomingPipe>);

impl AsyncRead for PipeReader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.poll_read(cx, buf)
    }
}

impl Drop for PipeReader {
    fn drop(&mut self) {
        self.0.close_reader();
    }
}

struct PipeWriter<S: MessageSink>(Arc<S>);

impl<S: MessageSink> AsyncWrite for PipeWriter<S> {
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

impl<S: MessageSink> Drop for PipeWriter<S> {
    fn drop(&mut self) {
        self.0.close_writer();
    }
}
