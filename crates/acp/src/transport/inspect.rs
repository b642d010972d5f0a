//! A reader and a writer that pass each line to a callback.

use std::io;
use std::pin::Pin;
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

/// A writer that passes each line to a callback once it has been written.
pub(super) struct InspectingWriter<F> {
    inner: TransportWriter,
    framer: Framer,
    on_line: F,
}

impl<F: FnMut(&[u8])> InspectingWriter<F> {
    pub(super) fn new(inner: TransportWriter, look: F) -> Self {
        Self {
            inner,
            framer: Framer::new(MAX_LINE_BYTES),
            on_line: look,
        }
    }
}

impl<F: FnMut(&[u8]) + Unpin> AsyncWrite for InspectingWriter<F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let polled = this.inner.as_mut().poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = polled {
            this.framer
                .spare_capacity()
                .extend_from_slice(bytes.get(..written).unwrap_or_default());
            while let Some(frame) = this.framer.next() {
                if let Frame::Line(line) = frame {
                    (this.on_line)(line);
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
