//! A transport to a child process that exits when its connection ends.

use std::io;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, Shared};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::Transport;
use crate::connection::timeout;

/// How long a process may take to exit after its stdin is closed. An agent that uses [`serve`](crate::agent::serve)
/// continues for up to two seconds (its [`Limits::linger`](crate::Limits::linger)), and then writes its remaining
/// output for up to two more. A shorter limit would kill agents that behave correctly.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a closing connection waits for its process to exit, including the time to kill it. The extra second allows
/// for a busy system.
const CLOSE_TIMEOUT: Duration = EXIT_TIMEOUT.saturating_add(Duration::from_secs(1));

/// How long to wait for the exit status of a process whose pipes are closed.
const STATUS_TIMEOUT: Duration = Duration::from_millis(200);

#[cfg(unix)]
type Stdin = super::pipe::GrowingPipe<ChildStdin>;
#[cfg(not(unix))]
type Stdin = ChildStdin;

/// Starts a process that exits when its transport is closed.
pub(super) fn spawn(command: &mut Command) -> io::Result<Transport> {
    // Without a runtime, tokio panics.
    tokio::runtime::Handle::try_current().map_err(io::Error::other)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn().map_err(|e| {
        let program = command.as_std().get_program().display();
        io::Error::new(e.kind(), format!("cannot start `{program}`: {e}"))
    })?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), None) = pipes else {
        // Returning drops the process, which kills it. Otherwise, it would block forever once the pipe is full.
        let message = "stderr must not be `Stdio::piped()`, because nothing would read it; use `std::io::pipe` or a file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    };
    #[cfg(unix)]
    let stdin = Stdin::new(stdin);
    let process = ChildProcess::new(child);
    let output = ProcessOutput {
        stdout,
        process: process.clone(),
        end: FailureReport::default(),
    };
    let input = ProcessInput {
        stage: ProcessStage::Running(stdin),
        process,
        end: FailureReport::default(),
    };
    Ok(Transport {
        reader: Box::pin(output),
        writer: Box::pin(input),
        close_timeout: CLOSE_TIMEOUT,
    })
}

/// A child process. Dropping the last clone kills the process, and tokio reaps it.
#[derive(Clone)]
struct ChildProcess {
    /// The exit status, or `None` if the operating system reports none.
    exit: Shared<BoxFuture<'static, Option<ExitStatus>>>,
    kill_token: CancellationToken,
}

impl ChildProcess {
    fn new(mut child: Child) -> Self {
        let kill = CancellationToken::new();
        let killed = kill.clone();
        let exit = async move {
            if let Some(exited) = killed.run_until_cancelled(child.wait()).await {
                return exited.ok();
            }
            if let Err(error) = child.start_kill() {
                tracing::warn!(%error, "cannot kill the process");
            }
            child.wait().await.ok()
        };
        Self {
            exit: exit.boxed().shared(),
            kill_token: kill,
        }
    }

    /// Waits for the process to exit, and kills it if it does not exit in time.
    async fn wait_or_kill(self) {
        if timeout(EXIT_TIMEOUT, self.exit.clone()).await.is_none() {
            tracing::debug!("the process did not exit after its stdin was closed; killing it");
            self.kill_token.cancel();
            self.exit.await;
        }
    }

    /// Returns an error if the process has failed. Call this only after one of the process's pipes was closed.
    async fn wait_for_failure(self) -> Option<io::Error> {
        let status = timeout(STATUS_TIMEOUT, self.exit).await??;
        let message = format!("the process exited ({status})");
        (!status.success()).then(|| io::Error::new(io::ErrorKind::BrokenPipe, message))
    }
}

/// Tracks whether a process's failure has been reported at the end of one of its pipes.
#[derive(Default)]
enum FailureReport {
    /// The pipe is still open.
    #[default]
    Pending,
    /// The pipe was closed, and the reader is waiting for the exit status of the process.
    Checking(BoxFuture<'static, Option<io::Error>>),
    /// The exit status has been reported.
    Reported,
}

impl FailureReport {
    /// Waits for the exit status, and returns an error if the process failed. Returns the error only once.
    fn poll_failure(
        &mut self,
        process: &ChildProcess,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Error>> {
        if matches!(self, Self::Pending) {
            *self = Self::Checking(process.clone().wait_for_failure().boxed());
        }
        let Self::Checking(check) = self else {
            return Poll::Ready(None);
        };
        let failure = ready!(check.as_mut().poll(cx));
        *self = Self::Reported;
        Poll::Ready(failure)
    }
}

/// A process's stdout. At the end of the output, it reports whether the process failed.
struct ProcessOutput {
    stdout: ChildStdout,
    process: ChildProcess,
    end: FailureReport,
}

impl AsyncRead for ProcessOutput {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if matches!(this.end, FailureReport::Pending) {
            let room = buf.remaining();
            ready!(Pin::new(&mut this.stdout).poll_read(cx, buf))?;
            if room == 0 || buf.remaining() < room {
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Ready(match ready!(this.end.poll_failure(&this.process, cx)) {
            Some(failure) => Err(failure),
            None => Ok(()),
        })
    }
}

/// A process's stdin. Closing it waits for the process to exit.
struct ProcessInput {
    stage: ProcessStage,
    process: ChildProcess,
    end: FailureReport,
}

/// The state of a process: running, exiting or exited.
enum ProcessStage {
    Running(Stdin),
    /// The process's stdin was closed, but the process has not exited yet.
    Exiting(BoxFuture<'static, ()>),
    Exited,
}

impl AsyncWrite for ProcessInput {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if let (ProcessStage::Running(stdin), FailureReport::Pending) = (&mut this.stage, &this.end)
        {
            match ready!(Pin::new(stdin).poll_write(cx, buf)) {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
                written => return Poll::Ready(written),
            }
        }
        let failure = ready!(this.end.poll_failure(&this.process, cx));
        let failure = failure.unwrap_or_else(|| io::ErrorKind::BrokenPipe.into());
        Poll::Ready(Err(failure))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stage {
            ProcessStage::Running(stdin) => Pin::new(stdin).poll_flush(cx),
            ProcessStage::Exiting(_) | ProcessStage::Exited => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match &mut this.stage {
                ProcessStage::Running(stdin) => {
                    // An error only means that the process no longer reads. Dropping the pipe closes it.
                    let _ = ready!(Pin::new(stdin).poll_shutdown(cx));
                    this.stage = ProcessStage::Exiting(this.process.clone().wait_or_kill().boxed());
                }
                ProcessStage::Exiting(ending) => {
                    ready!(ending.as_mut().poll(cx));
                    this.stage = ProcessStage::Exited;
                }
                ProcessStage::Exited => return Poll::Ready(Ok(())),
            }
        }
    }
}
