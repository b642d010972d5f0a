//! Transports: a pair of byte streams.
//!
//! A connection does not care where its bytes come from. This module has stdin and stdout
//! ([`stdio()`]), a pair in memory ([`memory`]), and [`Transport::new`] and [`Transport::of_futures`] for anything
//! else, a child process or a socket.

mod inspect;
#[cfg(all(unix, any(feature = "process", feature = "stdio")))]
mod pipe;
#[cfg(feature = "stdio")]
mod stdio;

use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "process")]
use tokio::process::{ChildStdin, ChildStdout};
use tokio_util::compat::{FuturesAsyncReadCompatExt, FuturesAsyncWriteCompatExt};

#[cfg(feature = "stdio")]
pub use stdio::stdio;

pub(crate) type Reader = Pin<Box<dyn AsyncRead + Send>>;
pub(crate) type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// A pair of byte streams.
pub struct Transport {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
}

impl Transport {
    /// Reads from `reader` and writes to `writer`. Both are dropped when the connection has ended.
    pub fn new(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> Self {
        Self {
            reader: Box::pin(reader),
            writer: Box::pin(writer),
        }
    }

    /// As [`new`](Self::new), for the streams of the crate `futures`, which other executors than tokio have.
    pub fn of_futures(
        reader: impl futures_io::AsyncRead + Send + 'static,
        writer: impl futures_io::AsyncWrite + Send + 'static,
    ) -> Self {
        Self::new(reader.compat(), writer.compat_write())
    }

    /// Talks to a child process that was started with piped stdin and stdout; `None` if it was not.
    #[cfg(feature = "process")]
    pub fn child(child: &mut tokio::process::Child) -> Option<Self> {
        Some(Self::pipes(child.stdout.take()?, child.stdin.take()?))
    }

    /// Reads from a child process's stdout and writes to its stdin.
    #[cfg(feature = "process")]
    #[must_use]
    pub fn pipes(stdout: ChildStdout, stdin: ChildStdin) -> Self {
        #[cfg(unix)]
        let stdin = pipe::Growing::new(stdin);
        Self::new(stdout, stdin)
    }

    /// The pair again, for a program that passes bytes on and does not speak the protocol.
    #[must_use]
    pub fn into_split(
        self,
    ) -> (
        impl AsyncRead + Send + Unpin + 'static,
        impl AsyncWrite + Send + Unpin + 'static,
    ) {
        (self.reader, self.writer)
    }
}

impl Transport {
    /// Shows each line that is read to `look`, before anything else is done with it. Lines of more
    /// than 64 MiB are passed over. `look` holds up reading while it runs.
    #[must_use]
    pub fn inspect(self, look: impl FnMut(&[u8]) + Send + Unpin + 'static) -> Self {
        Self {
            reader: Box::pin(inspect::Inspected::new(self.reader, look)),
            writer: self.writer,
        }
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

/// Two transports that are connected to each other, in memory. Each direction holds 64 KiB, as a
/// pipe does.
#[must_use]
pub fn memory() -> (Transport, Transport) {
    const PIPE: usize = 64 * 1024;
    let (a, b) = tokio::io::duplex(PIPE);
    let (a_reader, a_writer) = tokio::io::split(a);
    let (b_reader, b_writer) = tokio::io::split(b);
    (
        Transport::new(a_reader, a_writer),
        Transport::new(b_reader, b_writer),
    )
}
