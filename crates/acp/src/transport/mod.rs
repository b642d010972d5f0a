//! Transports: a pair of byte streams.
//!
//! A connection does not care where its bytes come from. This module has stdin and stdout
//! ([`stdio()`]), a pair in memory ([`memory`]), a child process that ends with its connection
//! ([`Transport::spawn`]), and [`Transport::new`] and [`Transport::from_futures`] for anything else, such as a socket.

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

#[cfg(feature = "stdio")]
pub use stdio::stdio;

pub(crate) type TransportReader = Pin<Box<dyn AsyncRead + Send>>;
pub(crate) type TransportWriter = Pin<Box<dyn AsyncWrite + Send>>;

/// A pair of byte streams.
pub struct Transport {
    pub(crate) reader: TransportReader,
    pub(crate) writer: TransportWriter,
    /// How long closing the writer may take at the end of a connection, beside the time for what was still to be
    /// written.
    pub(crate) close_timeout: Duration,
}

impl Transport {
    /// Reads from `reader` and writes to `writer`. Both are dropped when the connection has ended.
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

    /// As [`new`](Self::new), for the streams of the crate `futures`, which other executors than tokio have.
    pub fn from_futures(
        reader: impl futures_io::AsyncRead + Send + 'static,
        writer: impl futures_io::AsyncWrite + Send + 'static,
    ) -> Self {
        Self::new(reader.compat(), writer.compat_write())
    }

    /// Starts a child process, talks to it through its stdin and stdout, and ends it with the connection.
    ///
    /// When the connection is over its stdin is closed, and it has two seconds to end by itself, in which agents
    /// write down what they keep. Then it is killed. The connection's [`Driver`](crate::Driver) ends after that: the
    /// process is gone, and nothing is left of it. Nothing is spawned for this; the driver waits. Its stdout is not read
    /// meanwhile: an agent that still prints more than a pipe holds is killed. On a paused clock of tokio's it has no time
    /// at all.
    ///
    /// It is killed at once, and tokio's runtime takes its status as it runs on, if
    ///
    /// - the transport is dropped unused, or the driver before its end;
    /// - it has not read in two seconds what was sent to it before the end;
    /// - both halves of [`into_split`](Self::into_split) are dropped, and the one for writing was not closed.
    ///
    /// What the process has started is its own to end. The crate `acp-host` has an `AgentProcess` that ends that too,
    /// says clearly why a program cannot be started, keeps what agents print to stderr, and has a sandbox: use it in
    /// programs that people keep open and for untrusted agents; use this for tests, scripts and agents of your own.
    ///
    /// A process that fails by itself is told with its status: `the process has ended (exit status: 1)`, as
    /// [`CloseReason::Transport`](crate::CloseReason::Transport).
    ///
    /// The command's stderr is left as it is: this process's own, if nothing else is said. To read it, give the command
    /// the writing end of [`std::io::pipe`], read the other on a thread, and drop the command, which holds its end open.
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
    /// // The agent has ended.
    /// # let _ = stopped;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// It cannot be started, there is no tokio runtime, or stderr is [`Stdio::piped`](std::process::Stdio::piped),
    /// which nobody would read.
    ///
    /// # Panics
    /// As tokio does, if the runtime has no I/O (`enable_io`).
    #[cfg(feature = "process")]
    pub fn spawn(mut command: impl BorrowMut<tokio::process::Command>) -> std::io::Result<Self> {
        child::spawn(command.borrow_mut())
    }

    /// Talks to a child process that was started with piped stdin and stdout; `None` if it was not. It is the
    /// caller's to end; [`spawn`](Self::spawn) does that.
    #[cfg(feature = "process")]
    pub fn child(child: &mut tokio::process::Child) -> Option<Self> {
        Some(Self::pipes(child.stdout.take()?, child.stdin.take()?))
    }

    /// Reads from a child process's stdout and writes to its stdin.
    #[cfg(feature = "process")]
    #[must_use]
    pub fn pipes(stdout: ChildStdout, stdin: ChildStdin) -> Self {
        #[cfg(unix)]
        let stdin = pipe::GrowingPipe::new(stdin);
        Self::new(stdout, stdin)
    }

    /// The pair again, for a program that passes bytes on and does not speak the protocol. Closing the half for
    /// writing (`shutdown`) ends a process that [`spawn`](Self::spawn) has started, and waits for it.
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
            reader: Box::pin(inspect::InspectingReader::new(self.reader, look)),
            ..self
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
