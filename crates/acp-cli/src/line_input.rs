//! Reads terminal input. Also saves and restores the terminal's settings, discards early input, and detects whether
//! stdin is piped.

/// The saved settings of a terminal. Code that hides input normally restores them itself, but cannot if the process is
/// terminated first.
#[cfg(unix)]
pub(crate) struct TerminalSettings {
    terminal: std::fs::File,
    saved: rustix::termios::Termios,
}

#[cfg(unix)]
impl TerminalSettings {
    /// Reads the settings of the process's terminal. Returns `None` if there is no terminal.
    pub(crate) fn capture() -> Option<Self> {
        let terminal = std::fs::File::open("/dev/tty").ok()?;
        let before = rustix::termios::tcgetattr(&terminal).ok()?;
        Some(Self {
            terminal,
            saved: before,
        })
    }

    /// Restores the saved settings.
    pub(crate) fn restore(&self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        // Fails if the terminal was closed; then there is nothing to restore.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.saved);
    }
}

/// A placeholder that does nothing. On this system, a read can be interrupted only by killing the process.
#[cfg(not(unix))]
pub(crate) struct TerminalSettings;

#[cfg(not(unix))]
impl TerminalSettings {
    pub(crate) fn capture() -> Option<Self> {
        None
    }

    pub(crate) fn restore(&self) {}
}

/// Discards unread input, including an incomplete line. Returns `true` if there was any.
#[cfg(unix)]
pub(crate) fn discard(terminal: &std::fs::File) -> bool {
    use rustix::termios::{
        LocalModes, OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr,
    };
    // Nothing will be read from a closed terminal either.
    let Ok(before) = tcgetattr(terminal) else {
        return false;
    };
    // In canonical mode, only the system knows of an unfinished line.
    let mut raw = before.clone();
    raw.local_modes.remove(LocalModes::ICANON);
    let _ = tcsetattr(terminal, OptionalActions::Now, &raw);
    let waiting = rustix::io::ioctl_fionread(terminal).unwrap_or_default();
    let _ = tcsetattr(terminal, OptionalActions::Flush, &before);
    let _ = tcflush(terminal, QueueSelector::IFlush);
    waiting > 0
}

/// Does nothing, since early input cannot be discarded on this system.
#[cfg(not(unix))]
pub(crate) fn discard(_: &std::fs::File) -> bool {
    false
}

/// The maximum length of a line, in bytes. Terminals allow less.
const MAX_LINE_LEN: usize = 64 * 1024;

/// The lines that the user enters in response to one question. Anything typed later is left unread.
#[cfg(unix)]
pub(crate) struct TypedLines {
    terminal: std::fs::File,
    buffer: Vec<u8>,
}

#[cfg(unix)]
impl TypedLines {
    pub(crate) fn open() -> Option<Self> {
        use rustix::fs::{Mode, OFlags, open};
        // A blocking read cannot be cancelled: it would take the line that answers the next question.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = open("/dev/tty", flags, Mode::empty()).ok()?;
        Some(Self {
            terminal: terminal.into(),
            buffer: Vec::new(),
        })
    }

    /// Discards all pending input. Returns `true` if there was any.
    pub(crate) fn discard(&mut self) -> bool {
        let read = !self.buffer.is_empty();
        self.buffer.clear();
        discard(&self.terminal) || read
    }

    /// Reads the next line. Returns `None` at the end of input.
    pub(crate) async fn next(&mut self) -> Option<String> {
        use std::io::{ErrorKind, Read};
        let mut bytes = [0; 4096];
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            match self.terminal.read(&mut bytes) {
                Ok(0) => return None,
                Ok(n) if self.buffer.len() + n <= MAX_LINE_LEN => {
                    self.buffer
                        .extend_from_slice(bytes.get(..n).unwrap_or_default());
                }
                Ok(_) => self.buffer.clear(),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // On macOS, `/dev/tty` cannot be polled for readiness.
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    tokio::time::sleep(POLL_INTERVAL).await
                }
                Err(_) => return None,
            }
        }
    }
}

/// How often to check for input while a question is open.
#[cfg(unix)]
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);

/// The lines that the user enters on the console. A single thread reads them all, because a read cannot be cancelled.
#[cfg(not(unix))]
pub(crate) struct TypedLines(tokio::sync::MutexGuard<'static, tokio::sync::mpsc::Receiver<String>>);

#[cfg(not(unix))]
impl TypedLines {
    pub(crate) fn open() -> Option<Self> {
        use std::io::{BufRead, BufReader, Read};
        use std::sync::LazyLock;
        use tokio::sync::{Mutex, mpsc};
        static TYPED_LINES: LazyLock<Mutex<mpsc::Receiver<String>>> = LazyLock::new(|| {
            let (sender, receiver) = mpsc::channel(1);
            std::thread::spawn(move || {
                let Ok(console) = std::fs::File::open("CONIN$") else {
                    return;
                };
                let mut console = BufReader::new(console);
                loop {
                    let mut line = String::new();
                    let read = (&mut console)
                        .take(MAX_LINE_LEN as u64)
                        .read_line(&mut line);
                    if !read.is_ok_and(|n| n > 0) || sender.blocking_send(line).is_err() {
                        return;
                    }
                }
            });
            Mutex::new(receiver)
        });
        TYPED_LINES.try_lock().ok().map(Self)
    }

    /// Discards all pending complete lines. Returns `true` if there were any.
    pub(crate) fn discard(&mut self) -> bool {
        let mut any = false;
        while self.0.try_recv().is_ok() {
            any = true;
        }
        any
    }

    /// Returns the next line, or `None` at the end of input.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.0.recv().await
    }
}

/// Returns `true` if stdin is a file or a pipe, and `false` if it is a terminal, `/dev/null` or closed.
#[cfg(unix)]
pub(crate) fn is_piped() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let kind = stdin.and_then(|stdin| std::fs::File::from(stdin).metadata());
    let kind = kind.map(|metadata| metadata.file_type());
    kind.is_ok_and(|kind| kind.is_file() || kind.is_fifo() || kind.is_socket())
}

/// Returns `true` if stdin is not a terminal. `NUL` counts as piped, but reading it ends immediately.
#[cfg(not(unix))]
pub(crate) fn is_piped() -> bool {
    use std::io::IsTerminal;
    !std::io::stdin().is_terminal()
}
