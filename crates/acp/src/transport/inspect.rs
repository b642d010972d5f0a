//! A reader and a writer that pass each line to a callback.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{TransportReader, TransportWriter};
use crate::connection::frame::{Frame, Framer};

/// The maximum length of an inspected line, in bytes. Longer lines are skipped.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// A reader that passes each line to a callback before returning it.
pub(super) struct InspectingReader<F> {
    inner: TransportReader,
    framer: Framer,
    on_line: F,
}

impl<F: FnMut(&[u8])> InspectingReader<F> {
    pub(super) fn new(inner: TransportReader, look: F) -> Self {
        Self {
            inner,
            framer: Framer::new(MAX_LINE_BYTES),
            on_line: look,
        }
    }
}

impl<F: FnMut(&[u8]) + Unpin> AsyncRead for InspectingReader<F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        let polled = this.inner.as_mut().poll_read(cx, buf);
        if let Poll::Ready(Ok(())) = polled {
            this.framer
                .spare_capacity()
                .extend_from_slice(buf.filled().get(before..).unwrap_or_default());
            while let Some(frame) = this.framer.next() {
                if let Frame::Line(line) = frame {
                    (this.on_line)(line);
                }
            }
        }
        polled
    }
}

/// The direction of an inspected line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineDirection {
    /// The line was received from the peer.
    Received,
    /// The line was sent to the peer.
    Sent,
}

/// A callback for both directions, which a reader and a writer share.
pub(super) struct SharedCallback<F>(Arc<Mutex<F>>);

impl<F> Clone for SharedCallback<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: FnMut(LineDirection, &[u8])> SharedCallback<F> {
    pub(super) fn new(look: F) -> Self {
        Self(Arc::new(Mutex::new(look)))
    }

    fn lock(&self) -> MutexGuard<'_, F> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a received line to the callback. If lines are being written, waits until they have been passed, because
    /// this line may respond to one of them.
    pub(super) fn receive(&self, line: &[u8]) {
        (self.lock())(LineDirection::Received, line);
    }
}

/// A writer that passes each line to a callback once it has been written. It locks the callback before it writes, so that
/// no response can be passed before its request.
pub(super) struct InspectingWriter<F> {
    inner: TransportWriter,
    framer: Framer,
    callback: SharedCallback<F>,
}

impl<F: FnMut(LineDirection, &[u8])> InspectingWriter<F> {
    pub(super) fn new(inner: TransportWriter, callback: SharedCallback<F>) -> Self {
        Self {
            inner,
            framer: Framer::new(MAX_LINE_BYTES),
            callback,
        }
    }
}

impl<F: FnMut(LineDirection, &[u8])> AsyncWrite for InspectingWriter<F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let mut look = this.callback.lock();
        let polled = this.inner.as_mut().poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = polled {
            this.framer
                .spare_capacity()
                .extend_from_slice(bytes.get(..written).unwrap_or_default());
            while let Some(frame) = this.framer.next() {
                if let Frame::Line(line) = frame {
                    look(LineDirection::Sent, line);
                }
            }
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.as_mut().poll_shutdown(cx)
    }
}
