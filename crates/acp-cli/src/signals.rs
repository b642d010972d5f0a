//! Handles Ctrl-C and other signals that terminate the process.

use std::io;

/// A signal that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitSignal {
    /// Ctrl-C.
    Interrupt,
    /// `SIGTERM`, or a signal that the terminal was closed.
    #[cfg_attr(not(unix), allow(dead_code))]
    Terminate,
}

/// Receives signals that would otherwise terminate the process immediately.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> ExitSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ExitSignal::Interrupt,
            _ = self.terminate.recv() => ExitSignal::Terminate,
            _ = self.hangup.recv() => ExitSignal::Terminate,
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> ExitSignal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        ExitSignal::Interrupt
    }
}
