//! Stdin and the terminal where something is typed: its settings while that is not shown, what was typed too early, and
//! whether something is piped in.

/// The settings as they were. Whoever hides what is typed gives them back itself, but not where it is stopped.
#[cfg(unix)]
pub(crate) struct Settings {
    terminal: std::fs::File,
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl Settings {
    /// Those of the terminal that this process has, if it has one.
    pub(crate) fn now() -> Option<Self> {
        let terminal = std::fs::File::open("/dev/tty").ok()?;
        let before = rustix::termios::tcgetattr(&terminal).ok()?;
        Some(Self { terminal, before })
    }

    /// Gives them back.
    pub(crate) fn restore(&self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        // A terminal that was closed has none to give back.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Nothing stops a process there while it reads, but what ends it at once.
#[cfg(not(unix))]
pub(crate) struct Settings;

#[cfg(not(unix))]
impl Settings {
    pub(crate) fn now() -> Option<Self> {
        None
    }

    pub(crate) fn restore(&self) {}
}

/// Forgets what was typed there before anything was asked.
#[cfg(unix)]
pub(crate) fn forget(terminal: &std::fs::File) {
    // Of a terminal that is gone nothing will be read either.
    let _ = rustix::termios::tcflush(terminal, rustix::termios::QueueSelector::IFlush);
}

/// What was typed early stays there.
#[cfg(not(unix))]
pub(crate) fn forget(_: &std::fs::File) {}

/// Whether stdin is a file or a pipe, and not a terminal, `/dev/null` or closed.
#[cfg(unix)]
pub(crate) fn is_piped() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let kind = stdin.and_then(|stdin| std::fs::File::from(stdin).metadata());
    let kind = kind.map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_file() || kind.is_fifo() || kind.is_socket())
}

/// What is no terminal may be a pipe; `NUL` ends at once.
#[cfg(not(unix))]
pub(crate) fn is_piped() -> bool {
    use std::io::IsTerminal;
    !std::io::stdin().is_terminal()
}
