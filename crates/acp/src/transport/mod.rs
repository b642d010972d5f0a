//! Transports: pairs of byte streams that carry messages.
//!
//! A connection does not care where its bytes come from. This module has transports for stdin and stdout ([`stdio()`]),
//! for two sides in one process ([`memory`]), and for a child process that exits when its connection ends
//! ([`Transport::spawn`]). [`Transport::new`] and [`Transport::from_futures`] are for all other streams, such as
//! sockets.

#[cfg(feature = "process")]
mod child;
mod inspect;
#[cfg(all(unix, any(feature = "process", feature = "stdio")))]
mod pipe;
#[cfg(feature = "stdio")]
mod stdio;

#[cfg(feature = "process")]
use std::borrow::BorrowMut;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "process")]
use tokio::process::{ChildStdin, ChildStdout};
use tokio_util::compat::{FuturesAsyncReadCompatExt, FuturesAsyncWriteCompatExt};

pub use inspect::LineDirection;
#[cfg(feature = "stdio")]
pub use stdio::stdio;

pub(crate) type TransportReader = Pin<Box<dyn AsyncRead + Send>>;
pub(crate) type TransportWriter = Pin<Box<dyn AsyncWrite + Send>>;

/// A pair of byte streams that carry messages.
pub struct Transport {
    pub(crate) reader: TransportReader,
    pub(crate) writer: TransportWriter,
    /// The maximum time for closing the writer at the end of the connection, after all messages are written. If it is
    /// not zero, closing the writer ends a process. The writer is then closed even after a failed write, while the
    /// process's output is read and discarded.
    pub(crate) close_timeout: Duration,
}

impl Transport {
    /// Creates a transport that reads from `reader` and writes to `writer`. The streams are dropped when the connection
    /// ends.
    pub fn new(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
    ) -> Self {
        Self::from_boxed(Box::pin(reader), Box::pin(writer))
    }

    fn from_boxed(reader: TransportReader, writer: TransportWriter) -> Self {
        Self {
            reader,
            writer,
            close_timeout: Duration::ZERO,
        }
    }

    /// Creates a transport like [`new`](Self::new), but from streams that implement the `futures` traits, as used by
    /// executors other than tokio.
    pub fn from_futures(
        reader: impl futures_io::AsyncRead + Send + 'static,
        writer: impl futures_io::AsyncWrite + Send + 'static,
    ) -> Self {
        Self::new(reader.compat(), writer.compat_write())
    }

    /// Starts a child process and creates a transport over its stdin and stdout. The process ends with the connection.
    ///
    /// When the connection ends, the process's stdin is closed. The process then has five seconds to exit, in which an
    /// agent can save its state. After that, it is killed. The connection's [`Driver`](crate::Driver) waits for the
    /// process to exit, without spawning a task. In the meantime, the process's output is read and dropped, so that a
    /// full pipe does not keep it from exiting. If tokio's clock is paused, the process is killed at once.
    ///
    /// The process is killed at once, and reaped later by tokio's runtime, if
    ///
    /// - the transport is dropped unused, or the driver is dropped before it completes;
    /// - the process does not read the remaining messages within two seconds after the end of the connection;
    /// - both halves of [`into_split`](Self::into_split) are dropped and the writing half was not closed.
    ///
    /// Processes that the child has started keep running. The `AgentProcess` of the crate `acp-host` also ends those.
    /// It explains why a program cannot be started, stores what agents print to stderr, and has a sandbox. Use it for
    /// untrusted agents, and in programs that users keep open. Use this method for tests, scripts and your own agents.
    ///
    /// If the process fails, its status is reported as [`CloseReason::Transport`](crate::CloseReason::Transport):
    /// `the process exited (exit status: 1)`.
    ///
    /// The command's stderr is unchanged: by default, it is the stderr of this process. To read it, give the command
    /// the writing end of [`std::io::pipe`], read the other end on a thread, and drop the command, which holds the
    /// writing end open.
    ///
    /// ```no_run
    /// use acp::Transport;
    /// use acp::client::connect;
    /// # use acp::testing::NoopClient;
    /// use tokio::process::Command;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let transport = Transport::spawn(Command::new("some-agent").arg("--acp"))?;
    /// let (handshake, driver) = connect(transport, NoopClient);
    /// let work = async { handshake.await?.new_session("/").await?.prompt("Hello").await };
    /// let stopped = driver.run(work).await?;
    /// // The agent has exited.
    /// # let _ = stopped;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The process cannot be started, there is no tokio runtime, or stderr is
    /// [`Stdio::piped`](std::process::Stdio::piped), which nothing would read.
    ///
    /// # Panics
    /// The tokio runtime has no I/O driver (`enable_io`).
    #[cfg(feature = "process")]
    pub fn spawn(mut command: impl BorrowMut<tokio::process::Command>) -> std::io::Result<Self> {
        child::spawn(command.borrow_mut())
    }

    /// Creates a transport from the stdin and stdout of a child process, or returns `None` if either is not piped.
    /// Unlike with [`spawn`](Self::spawn), the caller must end the process.
    #[cfg(feature = "process")]
    pub fn child(child: &mut tokio::process::Child) -> Option<Self> {
        Some(Self::pipes(child.stdout.take()?, child.stdin.take()?))
    }

    /// Creates a transport that reads from a child process's stdout and writes to its stdin.
    #[cfg(feature = "process")]
    #[must_use]
    pub fn pipes(stdout: ChildStdout, stdin: ChildStdin) -> Self {
        #[cfg(unix)]
        let stdin = pipe::GrowingPipe::new(stdin);
        Self::new(stdout, stdin)
    }

    /// Splits the transport into its two streams, for programs that pass bytes through unchanged.
    ///
    /// Shutting down the writing half ends a process started by [`spawn`](Self::spawn) and waits for it to exit. In the
    /// meantime, read or drop the reading half: a process whose stdout is full cannot exit.
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
    /// Passes each incoming line to `look` before it is handled, except for lines longer than 64 MiB. Nothing is read
    /// while `look` runs.
    #[must_use]
    pub fn inspect(self, look: impl FnMut(&[u8]) + Send + Unpin + 'static) -> Self {
        Self {
            reader: Box::pin(inspect::InspectingReader::new(self.reader, look)),
            ..self
        }
    }

    /// Passes each line of both directions to `look`, except for lines longer than 64 MiB: a received line before it is
    /// handled, and a sent line once it has been written. A response is always passed after its request. Nothing is
    /// read or written while `look` runs.
    #[must_use]
    pub fn inspect_both(self, look: impl FnMut(LineDirection, &[u8]) + Send + 'static) -> Self {
        let callback = inspect::SharedCallback::new(look);
        let writer = inspect::InspectingWriter::new(self.writer, callback.clone());
        let inspected = Self {
            writer: Box::pin(writer),
            ..self
        };
        inspected.inspect(move |line| callback.receive(line))
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

/// Creates two transports connected in memory. Each direction buffers up to 64 KiB, like a pipe.
#[must_use]
pub fn memory() -> (Transport, Transport) {
    const PIPE_CAPACITY: usize = 64 * 1024;
    let (a, b) = tokio::io::duplex(PIPE_CAPACITY);
    let (a_reader, a_writer) = tokio::io::split(a);
    let (b_reader, b_writer) = tokio::io::split(b);
    (
        Transport::new(a_reader, a_writer),
        Transport::new(b_reader, b_writer),
    )
}
